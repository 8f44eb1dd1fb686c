use std::io::Read as _;

use super::*;
use crate::model::{Environment, Function, Image, Line, Module, RepeatValue, Window};

/// One row of a stack with an inlined frame and an async caller.
fn profile() -> Profile {
    let function = |name: &str, system_name: &str, file: &str| Function {
        name: name.into(),
        system_name: system_name.into(),
        file: file.into(),
        is_folded: false,
    };
    let location = |address, kind, lines: &[(usize, u32)]| Location {
        module: (kind != FrameKind::EntryPoint).then_some(0),
        address,
        kind,
        lines: lines.iter().map(|&(function, line)| Line { function, line }).collect(),
    };
    Profile {
        images: vec![Image { label: "bench".into(), ..Image::default() }],
        modules: vec![Module {
            path: "/bin/bench".into(),
            build_id: "c0ffee".into(),
            text_svma: 0x1000,
            text_svma_end: 0x9000,
            text_offset: 0x400,
            symbol_problem: None,
        }],
        functions: vec![
            function("malloc", "malloc", ""),
            function("<a::A as b::B>::f", "_RNvXa", "src/a.rs"),
            function("a::inlined", "_RNva", "src/a.rs"),
            Function { is_folded: true, ..function("main", "main", "src/main.rs") },
        ],
        locations: vec![
            location(0, FrameKind::EntryPoint, &[(0, 0)]),
            location(0x1234, FrameKind::Return, &[(2, 3), (1, 8)]),
            location(0x2000, FrameKind::Async, &[(3, 9)]),
        ],
        stacks: vec![Stack { locations: vec![0, 1, 2], capture: Capture::FramePointer, ..Stack::default() }],
        windows: vec![Window { name: "parse".into(), ..Window::default() }],
        rows: vec![Row {
            counts: Counts {
                allocations: 10,
                bytes: 100,
                freed: 4,
                freed_bytes: 40,
                freed_later: 3,
                freed_later_bytes: 30,
                reallocs: 6,
                reallocs_in_place: 1,
                reallocs_moved: 5,
                temporary: 2,
                temporary_bytes: 20,
                failed: 7,
                reallocs_to_zero: 8,
                discarded: 9,
                discarded_bytes: 11,
            },
            ..Row::default()
        }],
        environment: Environment { lifetimes: true, ..Environment::default() },
        ..Profile::default()
    }
}

fn texts(message: &proto::Profile, indices: impl IntoIterator<Item = i64>) -> Vec<&str> {
    indices.into_iter().map(|at| message.string_table[usize::try_from(at).unwrap()].as_str()).collect()
}

#[test]
fn values_stand_in_the_order_of_the_frozen_list() {
    let message = message(&profile(), 0);
    let names = texts(&message, message.sample_type.iter().map(|value| value.r#type));
    assert_eq!(
        names.join(" "),
        "alloc_objects alloc_space inuse_objects inuse_space freed_objects freed_space freed_later_objects \
         freed_later_space realloc realloc_in_place realloc_moved temporary_objects temporary_space failed \
         discarded_objects discarded_space"
    );
    assert_eq!(message.sample[0].value, [10, 100, 15, 71, 4, 40, 3, 30, 6, 1, 5, 2, 20, 7, 9, 11]);
    let mut unknown = profile();
    unknown.environment.lifetimes = false;
    assert_eq!(self::message(&unknown, 0).sample[0].value[2..4], [0, 0]);
    assert_eq!(texts(&message, [message.default_sample_type]), ["alloc_objects"]);
    assert_eq!(message.time_nanos, 0);
}

#[test]
fn labels_tell_window_image_capture_and_async_callers() {
    let message = message(&profile(), 0);
    let label = &message.sample[0].label;
    let pairs: Vec<_> =
        label.iter().map(|label| (texts(&message, [label.key, label.str]), label.num)).collect();
    assert_eq!(
        pairs,
        [
            (vec!["window", "parse"], 0),
            (vec!["image", "bench"], 0),
            (vec!["capture", "frame pointer"], 0),
            (vec!["async_from", ""], 2),
        ]
    );
}

#[test]
fn rows_that_differ_between_runs_have_a_label_of_their_own() {
    let mut profile = profile();
    profile.environment.repeats = 2;
    profile.windows[0].iterations_per_repeat = vec![1, 2];
    let label = |allocations: [u64; 2]| {
        let mut profile = profile.clone();
        profile.rows[0].repeats =
            allocations.map(|allocations| RepeatValue { allocations, bytes: 8 * allocations }).into();
        let message = message(&profile, 0);
        let labels = message.sample[0].label.iter();
        let found: Vec<_> = labels.filter(|label| texts(&message, [label.key]) == ["unstable"]).collect();
        found.iter().map(|label| texts(&message, [label.str])[0].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(label([5, 10]), [""; 0]);
    assert_eq!(label([5, 9]), ["yes"]);
}

#[test]
fn the_document_of_one_run_says_nothing_of_runs() {
    let text = Document::of(&profile(), String::new()).to_comment();
    assert!(!text.contains("repeat"), "{text}");
}

#[test]
fn code_is_written_by_svma_and_mangled_name() {
    let message = message(&profile(), 0);
    let mapping = &message.mapping[0];
    assert_eq!((mapping.memory_start, mapping.memory_limit, mapping.file_offset), (0x1000, 0x9000, 0x400));
    assert_eq!(texts(&message, [mapping.filename, mapping.build_id]), ["/bin/bench", "c0ffee"]);
    assert!(
        mapping.has_functions
            && mapping.has_filenames
            && mapping.has_line_numbers
            && mapping.has_inline_frames
    );
    let location = &message.location[1];
    assert_eq!((location.id, location.mapping_id, location.address), (2, 1, 0x1234));
    assert_eq!(
        location.line.iter().map(|line| (line.function_id, line.line)).collect::<Vec<_>>(),
        [(3, 3), (2, 8)]
    );
    assert_eq!(
        message.location.iter().map(|location| location.is_folded).collect::<Vec<_>>(),
        [false, false, true]
    );
    assert_eq!(message.location[0].mapping_id, 0);
    let function = &message.function[1];
    assert_eq!(texts(&message, [function.name, function.system_name]), ["<a::A as b::B>::f", "_RNvXa"]);
    assert_eq!(message.sample[0].location_id, [1, 2, 3]);
}

#[test]
fn a_count_beyond_what_pprof_holds_stays_at_the_highest() {
    let counts = Counts { allocations: u64::MAX, ..Counts::default() };
    assert_eq!(values(&counts, true)[0], i64::MAX);
}

#[test]
fn the_header_holds_no_time_and_the_comment_is_hidden() {
    let file = write(&profile());
    assert_eq!(file[..4], [0x1f, 0x8b, 8, 0]);
    assert_eq!(file[4..8], [0; 4]);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&file[..]).read_to_end(&mut unpacked).unwrap();
    let message = proto::Profile::decode(&unpacked[..]).unwrap();
    assert_eq!(message.string_table[0], "");
    let [comment] = texts(&message, message.comment.iter().copied())[..] else { panic!("not one comment") };
    assert!(comment.starts_with("#heaptally {\"format\":\"heaptally-profile\",\"version\":1,\"digest\":\""));
}
