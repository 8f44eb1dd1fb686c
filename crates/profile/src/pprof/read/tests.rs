use prost::Message as _;

use super::*;
use crate::model::{Image, RepeatValue, Window};
use crate::pprof::write::{compress, write};

fn profile() -> Profile {
    Profile {
        images: vec![Image { label: "bench".into(), ..Image::default() }],
        modules: vec![Module {
            path: "/bin/bench".into(),
            text_svma: 1,
            text_svma_end: 9,
            ..Module::default()
        }],
        functions: vec![Function {
            name: "main".into(),
            system_name: "_Z4main".into(),
            ..Function::default()
        }],
        locations: vec![Location {
            module: Some(0),
            address: 5,
            lines: vec![Line { function: 0, line: 7 }],
            ..Location::default()
        }],
        stacks: vec![Stack { locations: vec![0, 0], ..Stack::default() }],
        windows: vec![Window { name: "parse".into(), ..Window::default() }],
        rows: vec![Row {
            counts: Counts { allocations: 3, bytes: 30, ..Counts::default() },
            ..Row::default()
        }],
        ..Profile::default()
    }
}

fn unpacked(profile: &Profile) -> Vec<u8> {
    decompress(&write(profile), MAX_BYTES).unwrap()
}

fn message(profile: &Profile) -> proto::Profile {
    decode(&unpacked(profile)).unwrap()
}

fn packed(message: &proto::Profile) -> Vec<u8> {
    compress(&message.encode_to_vec())
}

/// Reads a message as if its digest were right.
fn trusting(message: proto::Profile) -> Result<Profile, Error> {
    let (_, document) = document(&message)?;
    assemble(message, document)
}

#[test]
fn what_is_not_gzip_is_named() {
    let not_gzip = |found: &str| Err(Error::NotGzip { found: found.to_owned() });
    assert_eq!(read(b""), not_gzip("no bytes"));
    assert_eq!(read(b"\x1f"), not_gzip("1f"));
    assert_eq!(read(b"{}"), not_gzip("7b 7d"));
}

#[test]
fn a_truncated_file_is_damaged() {
    let file = write(&profile());
    for len in 2..file.len() {
        assert!(matches!(read(&file[..len]), Err(Error::Gzip { .. })), "{len}");
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut file = write(&profile());
    file.extend_from_slice(b"more");
    assert_eq!(read(&file), Err(Error::Trailing { bytes: 4 }));
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let file = compress(&vec![0; 1 << 20]);
    assert!(file.len() < 1 << 12);
    assert_eq!(read_with_limit(&file, 1 << 16), Err(Error::TooLarge { limit: 1 << 16, unit: "bytes" }));
    let whole = write(&profile());
    let len = unpacked(&profile()).len() as u64;
    assert_eq!(read_with_limit(&whole, len), Ok(profile()));
    assert!(read_with_limit(&whole, len - 1).is_err());
}

#[test]
fn a_bomb_of_empty_messages_is_not_decoded() {
    let samples = [0x12, 0].repeat(MAX_MESSAGES as usize + 1);
    assert_eq!(read(&compress(&samples)), Err(Error::TooLarge { limit: MAX_MESSAGES, unit: "messages" }));
}

#[test]
fn damaged_protobuf_is_an_error() {
    assert!(matches!(
        read(&compress(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
        Err(Error::Protobuf { .. })
    ));
    assert!(matches!(read(&compress(&[0x32, 2, 0xc3, 0x28])), Err(Error::Protobuf { .. })));
}

#[test]
fn a_foreign_profile_is_named_by_its_sample_types() {
    let mut foreign = proto::Profile {
        string_table: ["", "cpu", "nanoseconds", "a comment"].map(str::to_owned).to_vec(),
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }, proto::ValueType { r#type: 99, unit: -1 }],
        comment: vec![3, 77, -5],
        ..proto::Profile::default()
    };
    assert_eq!(read(&packed(&foreign)), Err(Error::Foreign { what: "cpu/nanoseconds, ?/?".to_owned() }));
    foreign.sample_type.clear();
    assert_eq!(read(&packed(&foreign)), Err(Error::Foreign { what: "no sample types".to_owned() }));
}

#[test]
fn two_documents_are_a_foreign_merge() {
    let mut message = message(&profile());
    message.comment.push(message.string_table.len() as i64);
    message.string_table.push("#heaptally {}".to_owned());
    assert_eq!(read(&packed(&message)), Err(Error::Merged { count: 2 }));
}

#[test]
fn an_unknown_version_is_named_beside_the_known_one() {
    let mut message = message(&profile());
    let text = message.string_table.last_mut().unwrap();
    *text = text.replacen("\"version\":1", "\"version\":2", 1);
    let error = read(&packed(&message)).unwrap_err();
    assert_eq!(error, Error::Version { found: 2, known: "1".to_owned() });
}

#[test]
fn a_version_is_refused_before_its_fields_are_looked_at() {
    let mut message = message(&profile());
    *message.string_table.last_mut().unwrap() =
        r#"#heaptally {"format":"heaptally-profile","version":9}"#.to_owned();
    assert!(matches!(read(&packed(&message)), Err(Error::Version { found: 9, .. })));
    *message.string_table.last_mut().unwrap() = r#"#heaptally {"format":"other","version":1}"#.to_owned();
    assert!(matches!(read(&packed(&message)), Err(Error::Comment { .. })));
}

#[test]
fn samples_that_another_tool_changed_are_betrayed_by_the_digest() {
    let mut scaled = message(&profile());
    scaled.sample[0].value[0] *= 2;
    assert!(matches!(read(&packed(&scaled)), Err(Error::Altered { .. })));
    let mut filtered = message(&profile());
    filtered.sample.clear();
    assert!(matches!(read(&packed(&filtered)), Err(Error::Altered { .. })));
    assert_eq!(trusting(filtered).unwrap_err().to_string().lines().count(), 1);
}

#[test]
fn a_comment_of_the_users_does_not_hinder() {
    let mut message = message(&profile());
    message.comment.insert(0, 1);
    assert_eq!(read(&packed(&message)), Ok(profile()));
}

#[test]
fn indices_that_lead_nowhere_are_errors() {
    let mut wrong = profile();
    wrong.rows[0].window = 4;
    assert!(matches!(
        read(&write(&wrong)),
        Err(Error::Index { table: "row", target: "window", index: 4, .. })
    ));
    let mut wrong = profile();
    wrong.rows[0].stack = 4;
    assert!(matches!(read(&write(&wrong)), Err(Error::Index { .. })));
    let mut wrong = profile();
    wrong.stacks[0].locations.push(4);
    assert!(matches!(read(&write(&wrong)), Err(Error::Index { table: "sample", target: "location", .. })));
    let mut wrong = profile();
    wrong.locations[0].module = Some(4);
    assert!(matches!(read(&write(&wrong)), Err(Error::Index { table: "location", target: "mapping", .. })));
    let mut wrong = profile();
    wrong.locations[0].lines[0].function = usize::MAX;
    assert!(matches!(read(&write(&wrong)), Err(Error::Index { table: "location", target: "function", .. })));
    let mut wrong = profile();
    wrong.windows[0].image = 4;
    assert!(matches!(read(&write(&wrong)), Err(Error::Index { table: "window", target: "image", .. })));
}

#[test]
fn texts_ids_and_values_are_checked() {
    let change = |change: fn(&mut proto::Profile)| {
        let mut message = message(&profile());
        change(&mut message);
        trusting(message).unwrap_err()
    };
    assert!(matches!(change(|m| m.function[0].name = 999), Error::Index { target: "string", .. }));
    assert!(matches!(change(|m| m.mapping[0].filename = -1), Error::Index { target: "string", .. }));
    assert!(matches!(change(|m| m.location[0].id = 3), Error::Value { table: "location", .. }));
    assert!(matches!(change(|m| m.location[0].line[0].line = -1), Error::Value { table: "location", .. }));
    assert!(matches!(change(|m| m.location[0].line[0].function_id = 0), Error::Index { .. }));
    assert!(matches!(change(|m| m.sample[0].value[3] = -1), Error::Value { table: "sample", .. }));
    assert!(matches!(change(|m| m.sample[0].value.truncate(4)), Error::Value { table: "sample", .. }));
    assert!(matches!(change(|m| m.sample.push(m.sample[0].clone())), Error::Comment { .. }));
}

#[test]
fn a_document_cannot_ask_for_more_stacks_than_there_are() {
    let mut message = message(&profile());
    let text = message.string_table.last_mut().unwrap();
    *text = text.replacen("\"stacks\":{\"len\":1", "\"stacks\":{\"len\":99999999999", 1);
    assert!(matches!(trusting(message), Err(Error::Comment { .. })));
}

#[test]
fn a_stack_has_the_same_locations_in_all_its_samples() {
    let mut twice = profile();
    twice.rows.push(twice.rows[0].clone());
    let mut message = message(&twice);
    message.sample[1].location_id.pop();
    assert!(matches!(trusting(message), Err(Error::Value { table: "sample", row: 1, .. })));
}

#[test]
fn every_run_has_a_value_for_every_sample() {
    let mut of_two = profile();
    of_two.environment.repeats = 2;
    of_two.windows[0].iterations_per_repeat = vec![1, 1];
    of_two.rows[0].repeats =
        vec![RepeatValue { allocations: 1, bytes: 10 }, RepeatValue { allocations: 2, bytes: 20 }];
    assert_eq!(read(&write(&of_two)), Ok(of_two.clone()));

    let mut missing = of_two.clone();
    missing.rows.push(Row { repeats: vec![RepeatValue::default()], ..missing.rows[0].clone() });
    assert!(matches!(read(&write(&missing)), Err(Error::Comment { .. })));
    let mut of_one = of_two.clone();
    of_one.environment.repeats = 1;
    of_one.windows[0].iterations_per_repeat.clear();
    assert!(matches!(read(&write(&of_one)), Err(Error::Value { table: "row", .. })));
    let mut without = of_two.clone();
    without.rows[0].repeats.clear();
    assert!(matches!(read(&write(&without)), Err(Error::Value { table: "row", .. })));
    of_two.windows[0].iterations_per_repeat.pop();
    assert!(matches!(read(&write(&of_two)), Err(Error::Value { table: "window", .. })));

    let mut uneven = message(&profile());
    let text = uneven.string_table.last_mut().unwrap();
    *text = text.replacen(
        "\"reallocs_to_zero\":",
        "\"repeats\":{\"allocations\":[[1]],\"bytes\":[]},\"reallocs_to_zero\":",
        1,
    );
    assert!(matches!(trusting(uneven), Err(Error::Comment { .. })));
}

mod damage {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Past gzip's checksum and the digest, any bytes at all.
        #[test]
        fn no_bytes_make_the_reader_panic(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = unpacked(&profile());
            for (at, value) in flips {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(message) = decode(&bytes)
                && let Ok(profile) = trusting(message)
            {
                prop_assert_eq!(profile.validate(), Ok(()));
            }
            let _ = read(&compress(&bytes));
        }

        #[test]
        fn no_message_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&compress(&bytes));
            let mut gzip = vec![0x1f, 0x8b, 8, 0];
            gzip.extend_from_slice(&bytes);
            let _ = read(&gzip);
            let _ = Document::from_comment(&String::from_utf8_lossy(&bytes));
        }
    }
}
