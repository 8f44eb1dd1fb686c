//! Programs that a Swift compiler built, by the counts that were found by reading and by a debugger.

use std::collections::BTreeMap;

use integration_tests::swift_report::{Row, record, sum};

/// Some allocations of a window: how many, what they are, and functions on their stacks from the leaf on.
type Part = (u64, &'static str, &'static [&'static str]);

/// What the windows of a program hold: all allocations, and parts of them, which no other allocations have.
type Windows = &'static [(&'static str, u64, &'static [Part])];

const C_STRING: Part = (1, "array", &["utf8CString", "main"]);

const PROGRAMS: &[(&str, Windows)] = &[
    (
        "S01_class_instances",
        &[("w", 10, &[(10, "class_instance", &["swift_allocObject", "push", "build", "main"])])],
    ),
    (
        "S01_class_instances-onone",
        &[("w", 11, &[(10, "class_instance", &["__allocating_init", "push", "build"]), C_STRING])],
    ),
    (
        "S02_arrays",
        &[
            (
                "grow",
                7,
                &[(7, "array_growth", &["_consumeAndCreateNew", "append", "S02_arrays.grow", "main"])],
            ),
            ("reserved", 1, &[(1, "array", &["reserveCapacity", "reserved", "main"])]),
            ("cow", 1, &[(1, "array", &["_makeMutableAndUnique", "copyOnWrite", "main"])]),
            ("inplace", 0, &[]),
        ],
    ),
    (
        "S03_strings",
        &[
            ("long", 5, &[(5, "string", &["_allocateStringStorage", "S03_strings.long", "main"])]),
            ("short", 0, &[]),
            ("interpolated", 15, &[(15, "string", &["_allocateStringStorage", "interpolated", "main"])]),
        ],
    ),
    (
        "S04_closures",
        &[
            ("context", 12, &[(6, "", &["swift_allocObject", "adder", "main"])]),
            ("box", 12, &[(6, "", &["swift_allocObject", "counter", "main"])]),
            ("none", 0, &[]),
        ],
    ),
    (
        "S04_closures-onone",
        &[("context", 13, &[C_STRING]), ("box", 13, &[C_STRING]), ("none", 1, &[C_STRING])],
    ),
    (
        "S05_existentials",
        &[
            ("small", 0, &[]),
            ("large", 8, &[(8, "", &["swift_allocObject", "large", "main"])]),
            (
                "enum",
                7,
                &[
                    (7, "", &["insert", "main"]),
                    (4, "", &["insert", "insert", "main"]),
                    (1, "", &["insert", "insert", "insert"]),
                ],
            ),
        ],
    ),
    // No names of user code, and the same counts.
    ("S05_existentials-static-stripped", &[("small", 0, &[]), ("large", 8, &[]), ("enum", 7, &[])]),
    (
        "S06_dictionary",
        &[
            ("grow", 8, &[(8, "hash_table", &["_DictionaryStorage.allocate", "fill", "main"])]),
            ("reserved", 1, &[(1, "hash_table", &["reserveCapacity", "fillReserved", "main"])]),
            ("group", 16, &[(3, "hash_table", &["group"]), (8, "array_growth", &["append", "group"])]),
        ],
    ),
    (
        "S06_dictionary-separate-debug",
        &[
            ("grow", 8, &[(8, "hash_table", &["_DictionaryStorage.allocate", "fill", "main"])]),
            ("reserved", 1, &[(1, "hash_table", &["reserveCapacity", "fillReserved", "main"])]),
            ("group", 16, &[(3, "hash_table", &["group"]), (8, "array_growth", &["append", "group"])]),
        ],
    ),
    (
        "S07_errors",
        &[
            ("untyped", 5, &[(5, "error", &["swift_allocError", "untyped", "runUntyped", "main"])]),
            ("typed", 0, &[]),
        ],
    ),
    (
        "S08_pointers",
        &[
            (
                "libc",
                3,
                &[
                    (1, "", &["malloc", "byHand", "main"]),
                    (1, "", &["calloc", "byHand"]),
                    (1, "", &["realloc", "byHand"]),
                ],
            ),
            ("typed", 4, &[(4, "raw_memory", &["posix_memalign", "typed", "main"])]),
            ("aligned", 4, &[(4, "raw_memory", &["posix_memalign", "aligned", "main"])]),
            ("managed", 4, &[(4, "managed_buffer", &["swift_allocObject", "managed", "main"])]),
        ],
    ),
    (
        "S11_through_c",
        &[
            ("direct", 5, &[(5, "class_instance", &["leaf", "call_back", "main"])]),
            ("deep", 5, &[(5, "class_instance", &["leaf", "call_deep", "main"])]),
        ],
    ),
];

#[test]
fn windows_hold_what_the_sources_say() {
    for (program, windows) in PROGRAMS {
        let Some(recording) = record(program, &[]) else { return };
        let found = recording.windows();
        for (name, count, parts) in *windows {
            let rows = found.get(*name).map_or(&[][..], Vec::as_slice);
            assert_eq!(sum(rows), *count, "{program}, {name}: {rows:#?}");
            // Without debug information the compiler leaves out what user code is unwound by: `readelf` shows no entry for it.
            let capture = if program.ends_with("-stripped") { "cut" } else { "complete" };
            assert!(rows.iter().all(|row| row.capture == capture), "{program}, {name}: {rows:#?}");
            for (part, kind, functions) in *parts {
                let those = rows.iter().filter(|row| row.has(functions) && row.kind == *kind);
                assert_eq!(sum(those), *part, "{program}, {name}, {functions:?}: {rows:#?}");
            }
        }
    }
}

#[test]
fn a_stack_through_c_is_whole() {
    let Some(recording) = record("S11_through_c", &[]) else { return };
    let windows = recording.windows();
    for row in &windows["deep"] {
        assert_eq!(row.functions.iter().filter(|name| name.contains("call_deep")).count(), 41, "{row:#?}");
    }
}

#[test]
fn what_a_first_use_allocates_stands_apart() {
    let Some(recording) = record("S12_first_use", &[]) else { return };
    let windows = recording.windows();
    let rows = &windows["w"];
    let of = |entries: u64| rows.iter().filter(move |row| row.entries == Some(entries));
    assert_eq!((sum(of(6)), sum(of(1)), sum(rows)), (6, 6, 12), "{rows:#?}");
    assert!(of(6).all(|row| row.kind == "class_instance" && row.has(&["swift_allocObject", "hold", "main"])));
    assert!(of(1).all(|row| row.kind == "metadata" && row.has(&["__swift_instantiate", "main"])));
    let text = recording.says(&["report"]);
    assert!(text.contains("first entry only: 6 allocations, 272 B"), "{text}");
}

/// Protocol witnesses, dispatch thunks, partial applications of a library without debug information. Functions that the compiler makes
/// for itself there (`__swift_instantiateConcreteTypeFromMangledName`, say) have no unwind information: `readelf` shows no entry.
#[test]
fn a_librarys_stacks_lead_up_to_main() {
    let Some(recording) = record("S15_json", &[]) else { return };
    let windows = recording.windows();
    assert_eq!((sum(&windows["encode"]), sum(&windows["decode"])), (524, 728));
    let rows: Vec<&Row> = windows["encode"].iter().chain(&windows["decode"]).collect();
    assert!((50..70).contains(&rows.len()), "{}", rows.len());
    for row in rows {
        assert!(matches!(row.capture.as_str(), "complete" | "frame_pointer"), "{row:#?}");
        assert!(row.has(&["S15_json.", "main", "_start"]), "{row:#?}");
    }
}

/// In the short view one function of two callers is two lines, and executors, wrappings and mangled names are none.
#[test]
fn the_short_view_has_names_that_people_know() {
    let Some(recording) = record("S18_same_step_two_callers", &[]) else { return };
    let text = recording.says(&["report", "--window", "w"]);
    for caller in ["fromHere", "fromThere"] {
        let stack = format!("calls swift_allocObject, from makeBox(_:) ← shared(_:) ← {caller}(_:) (async)");
        assert!(text.contains(&stack), "{text}");
    }
    let rows = text.lines().filter(|line| line.contains("Box.__allocating_init(_:)"));
    let counts: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(counts, ["9", "6"], "{text}");
    for word in ["$s", "partial function", "specialization", "runJobIn", "_dispatch_worker_thread ←"] {
        let stacks: Vec<&str> = text.lines().take_while(|line| *line != "threads").collect();
        assert!(!stacks.iter().any(|line| line.contains(word)), "{word}: {text}");
    }
    assert!(text.contains("(task begins here)"), "{text}");
    assert!(text.contains("class instance (Box): calls swift_allocObject"), "{text}");
    // Both parts of one function are one line.
    let Some(recording) = record("S09_async", &[]) else { return };
    let text = recording.says(&["report", "--window", "w"]);
    let line = text.lines().find(|line| line.contains("Box.__allocating_init")).unwrap_or_default();
    assert!(line.trim_start().starts_with("20 "), "{text}");
}

#[test]
fn tasks_and_what_they_need_are_told_apart() {
    let Some(recording) = record("S10_tasks_actors", &[]) else { return };
    let windows = recording.windows();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &windows["w"] {
        *kinds.entry(&row.kind).or_default() += row.allocations;
    }
    // Twelve tasks of the group, and two of the group itself; a class's instance and a slab in each.
    let fixed = ["class_instance", "task", "async_slab"].map(|kind| kinds.get(kind).copied().unwrap_or(0));
    assert_eq!(fixed, [12, 14, 12], "{kinds:?}");
}

fn repeated(times: &str) {
    for program in ["S09_async", "S10_tasks_actors", "S17_async_shapes"] {
        let Some(recording) = record(program, &["--repeat", times]) else { return };
        for (name, rows) in recording.windows().iter().filter(|(name, _)| *name != "process") {
            for row in rows {
                // What dispatch keeps for each thread to run a job, and the threads: who picks it up decides how many it asks for.
                let may_vary = matches!(row.kind.as_str(), "job" | "thread");
                assert!(may_vary || !row.is_unstable, "{program}, {name}: {row:#?}");
            }
            let users = rows.iter().filter(|row| row.has(&["makeBox"]));
            assert!(users.clone().all(|row| !row.is_unstable), "{program}, {name}");
        }
    }
}

#[test]
fn rows_of_user_code_are_the_same_in_each_run() {
    repeated("5");
}

#[test]
#[ignore = "takes half a minute"]
fn rows_of_user_code_are_the_same_in_fifty_runs() {
    repeated("50");
}

/// Two recordings, byte for byte, as far as user code allocates.
#[test]
fn rows_of_user_code_are_the_same_to_the_byte() {
    for program in ["S09_async", "S10_tasks_actors", "S17_async_shapes"] {
        let rows = || {
            let recording = record(program, &[])?;
            let windows = recording.windows();
            let of_user = |rows: &Vec<Row>| {
                let mut rows: Vec<Row> = rows.iter().filter(|row| row.has(&["makeBox"])).cloned().collect();
                rows.sort();
                rows
            };
            Some(windows.iter().map(|(name, rows)| (name.clone(), of_user(rows))).collect::<Vec<_>>())
        };
        let Some(first) = rows() else { return };
        for _ in 0..4 {
            assert_eq!(rows().as_ref(), Some(&first), "{program}");
        }
    }
}
