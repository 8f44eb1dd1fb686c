use heaptally_profile::model::{Profile, WindowKind};
use heaptally_profile::pprof;
use heaptally_profile::view::Selection;
use heaptally_report::Options;
use heaptally_report::json::json;
use serde_json::Value;

use crate::fixture::{Fixture, everything, freed};
use crate::schema::{check, undescribed};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../schema/report.v1.schema.json")).expect("the schema is JSON")
}

fn report(profile: &Profile) -> Value {
    serde_json::from_str(&json(profile, &Options::default())).expect("the report is JSON")
}

#[test]
fn reports_conform_to_the_schema() {
    let schema = schema();
    for profile in [everything(), Profile::default()] {
        let report = report(&profile);
        let mut errors = Vec::new();
        check(&schema, &schema, &report, "", &mut errors);
        assert_eq!(errors, [""; 0]);
    }
}

#[test]
fn the_schema_describes_every_field() {
    let schema = schema();
    let mut names = Vec::new();
    undescribed(&schema, &schema, &report(&everything()), "", &mut names);
    assert_eq!(names, [""; 0]);
}

#[test]
fn the_schema_misses_nothing_that_is_wrong() {
    let schema = schema();
    let mut wrong = report(&everything());
    wrong["windows"][1]["rows"][0]["counts"]["allocations"] = Value::from("many");
    wrong["windows"][1]["rows"][0]["capture"] = Value::from("half");
    wrong["frames"][0].as_object_mut().unwrap().remove("kind");
    let mut errors = Vec::new();
    check(&schema, &schema, &wrong, "", &mut errors);
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn everything_that_can_be_shown() {
    let mut profile = everything();
    // 3,000 equal frames tell nothing here.
    let walk = profile.stacks.iter_mut().max_by_key(|stack| stack.locations.len()).unwrap();
    walk.locations.drain(4..3000);
    insta::assert_json_snapshot!(report(&profile));
}

#[test]
fn every_frame_of_a_recursion_is_there() {
    let report = report(&everything());
    assert_eq!(report["windows"][1]["rows"][1]["stack"].as_array().unwrap().len(), 3003);
}

#[test]
fn a_call_site_is_one_of_the_frames() {
    let report = report(&everything());
    let row = &report["windows"][1]["rows"][0];
    let at = row["call_site_position"].as_u64().unwrap();
    assert_eq!(row["call_site"], row["stack"][at as usize]);
    let site = &report["frames"][row["call_site"].as_u64().unwrap() as usize];
    assert_eq!(site["function"], "header::push_value");
}

#[test]
fn windows_can_be_chosen() {
    let selection = Selection { windows: vec!["process".into()], ..Selection::default() };
    let options = Options { selection, ..Options::default() };
    let report: Value = serde_json::from_str(&json(&everything(), &options)).unwrap();
    assert_eq!(report["windows"].as_array().unwrap().len(), 1);
    assert_eq!(report["windows"][0]["rows"][0]["counts"]["allocations"], 5);
}

#[test]
fn a_profile_from_a_file_gives_the_same_report() {
    let mut profile = everything();
    profile.images[0].pid = 4711;
    profile.threads[0].tid = 4712;
    let from_file = pprof::read(&pprof::write(&profile)).unwrap();
    assert_eq!(json(&from_file, &Options::default()), json(&profile, &Options::default()));
}

#[test]
fn three_in_ten_iterations_are_not_zero() {
    let mut fixture = Fixture::new();
    let window = fixture.window("w", WindowKind::Process, 10);
    let stack = fixture.stack("malloc", "f main");
    fixture.row(window, stack, freed(3, 24));
    let report = report(&fixture.profile);
    assert_eq!(report["windows"][0]["rows"][0]["per_iteration"]["allocations"], 0.3);
    assert_eq!(report["windows"][0]["rows"][0]["share"], 1.0);
}

#[test]
fn no_raw_control_character_is_left() {
    let json = json(&everything(), &Options::default());
    assert!(json.contains("\\u001b"));
    assert!(json.trim_end_matches('\n').chars().all(|character| !character.is_control()));
}
