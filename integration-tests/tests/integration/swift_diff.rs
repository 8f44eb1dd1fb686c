//! Comparisons of programs that a Swift compiler built.

use integration_tests::swift_report::record;
use serde_json::Value;

#[test]
fn the_answer_is_the_first_line() {
    let (Some(base), Some(change)) = (record("S16_diff_base", &[]), record("S16_diff_change", &[])) else {
        return;
    };
    let text = base.diff(&change, &[]);
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(
        first, "+20.00 allocs/iter in \"parse\": Parser.name(_:)  src/S16_diff_change.swift:11 (new)",
        "{text}"
    );
    assert!(text.contains("from Parser.header(_:) ← parse(_:) ← main"), "{text}");
    let json: Value = serde_json::from_str(&base.diff(&change, &["--format", "json"])).expect("JSON");
    let window = &json["windows"][0];
    assert_eq!(window["entries"].as_array().map(Vec::len), Some(1), "{window:#}");
    assert_eq!(window["entries"][0]["allocations"]["change_per_iteration"], 20.0, "{window:#}");
}

/// A program and itself built otherwise: how many stacks are paired and not, but for dispatch's own.
#[test]
fn a_program_is_paired_with_its_own_rebuilds() {
    // Frames of user code are the same; what is not paired are allocations of the other build alone.
    for (base, change, only_in_change) in [
        // A C string, which the caller makes of the window's name.
        ("S01_class_instances", "S01_class_instances-onone", 1),
        ("S04_closures", "S04_closures-onone", 3),
        ("S09_async", "S09_async-onone", 1),
        ("S06_dictionary", "S06_dictionary-separate-debug", 0),
        ("S17_async_shapes", "S17_async_shapes-fp", 0),
        ("S17_async_shapes", "S17_async_shapes-static", 0),
    ] {
        let (Some(one), Some(other)) = (record(base, &[]), record(change, &[])) else { return };
        let json: Value = serde_json::from_str(&one.diff(&other, &["--format", "json"])).expect("JSON");
        let mut unpaired = [0_u64; 2];
        for entry in json["windows"]
            .as_array()
            .expect("windows")
            .iter()
            .flat_map(|w| w["entries"].as_array().expect("entries"))
        {
            // What dispatch needs to run jobs varies from run to run.
            let is_dispatchs = entry["allocation_kind"] == "job" || entry["allocation_kind"] == "thread";
            if !is_dispatchs {
                let counts = [&entry["allocations"]["base"], &entry["allocations"]["change"]];
                let counts = counts.map(|count| count.as_u64().unwrap_or(0));
                unpaired[0] += counts[0].saturating_sub(counts[1]);
                unpaired[1] += counts[1].saturating_sub(counts[0]);
            }
        }
        assert_eq!(unpaired, [0, only_in_change], "{base}, {change}: {}", one.diff(&other, &[]));
    }
}
