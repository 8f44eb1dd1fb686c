//! `go tool pprof`, which needs no network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use integration_tests::run::heaptally_output;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

use super::{Document, Recording, WINDOWS, function, output, recordings};

/// A function's own value, and that with all it calls.
type Values = BTreeMap<String, (i64, i64)>;

/// The profile's sample types, and what they are called in a row of the report.
const SAMPLE_TYPES: [(&str, &str); 13] = [
    ("alloc_objects", "counts.allocations"),
    ("alloc_space", "counts.bytes"),
    ("inuse_objects", "live"),
    ("inuse_space", "live_bytes"),
    ("freed_objects", "counts.freed"),
    ("freed_space", "counts.freed_bytes"),
    ("freed_later_objects", "counts.freed_later"),
    ("freed_later_space", "counts.freed_later_bytes"),
    ("realloc", "counts.reallocs"),
    ("realloc_in_place", "counts.reallocs_in_place"),
    ("temporary_objects", "counts.temporary"),
    ("temporary_space", "counts.temporary_bytes"),
    ("failed", "counts.failed"),
];

fn pprof(scratch: &Scratch, arguments: &[&str]) -> String {
    let go = tool::system("go").expect("go");
    output(
        Command::new(go)
            .args(["tool", "pprof"])
            .args(arguments)
            .current_dir(scratch.folder())
            .env("PPROF_TMPDIR", scratch.folder()),
    )
}

/// What `pprof -top` prints of all functions: the total, and each function's values that are not both 0.
fn top(scratch: &Scratch, options: &[&str], profile: &Path) -> (i64, Values) {
    let mut arguments = vec!["-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-unit=B"];
    arguments.extend(options);
    let profile = profile.to_string_lossy();
    arguments.push(&profile);
    let text = pprof(scratch, &arguments);
    let number = |word: &str| -> i64 {
        let word = word.trim_end_matches('B');
        word.parse().unwrap_or_else(|error| panic!("{word:?}: {error} in\n{text}"))
    };
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Showing nodes accounting for"));
    let shown = lines.next().unwrap_or_else(|| panic!("no total in\n{text}"));
    let total = shown.strip_suffix(" total").and_then(|rest| rest.rsplit(' ').next());
    let total = number(total.unwrap_or_else(|| panic!("no total in\n{text}")));
    let heading = lines.next().unwrap_or_default();
    assert!(heading.split_whitespace().eq(["flat", "flat%", "sum%", "cum", "cum%"]), "{text}");
    let mut values = Values::new();
    for line in lines {
        let mut rest = line.trim_start();
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or_else(|| panic!("{line:?} in\n{text}"));
            rest = after.trim_start();
            word
        };
        let [flat, _, _, cumulative, _] = [word(), word(), word(), word(), word()];
        let name = [" (inline)", " (partial-inline)"].iter().find_map(|mark| rest.strip_suffix(mark));
        let (flat, cumulative) = (number(flat), number(cumulative));
        let before = values.insert(name.unwrap_or(rest).to_owned(), (flat, cumulative));
        assert!(before.is_none(), "{rest:?} twice in\n{text}");
    }
    values.retain(|_, values| *values != (0, 0));
    (total, values)
}

/// The same from the report.
fn expected(document: &Document, metric: &str, window: Option<&str>) -> (i64, Values) {
    let (mut total, mut values) = (0, Values::new());
    for stack in document.stacks(|name| window.is_none_or(|window| name == window)) {
        let value = stack.value(metric);
        total += value;
        values.entry(function(stack.frames[0]).to_owned()).or_default().0 += value;
        // A function that calls itself counts once.
        for function in stack.functions().into_iter().collect::<BTreeSet<_>>() {
            values.entry(function.to_owned()).or_default().1 += value;
        }
    }
    values.retain(|_, values| *values != (0, 0));
    (total, values)
}

fn for_each_recording(check: impl Fn(&Recording, &Scratch)) {
    if !tool::have(&["go"]) {
        return;
    }
    for recording in recordings() {
        check(recording, &Scratch::new());
    }
}

/// Of every sample type, and by default of the allocations.
#[test]
fn the_same_numbers_of_every_function() {
    for_each_recording(|recording, scratch| {
        let file = recording.file(scratch);
        let allocations = expected(&recording.document, "counts.allocations", None);
        assert!(allocations.0 > 100 && allocations.1.len() > 20, "{allocations:?}");
        assert_eq!(top(scratch, &[], &file), allocations, "{}", recording.language);
        for (sample_type, metric) in SAMPLE_TYPES {
            let index = format!("-sample_index={sample_type}");
            let expected = expected(&recording.document, metric, None);
            // A comparison of nothing with nothing would show nothing.
            assert!(expected.0 > 0 || recording.language == "rust", "no {sample_type}");
            assert_eq!(top(scratch, &[&index], &file), expected, "{} {index}", recording.language);
        }
    });
}

/// `-tagfocus=window=NAME`, also of a name with spaces and brackets.
#[test]
fn the_same_numbers_of_a_window() {
    for_each_recording(|recording, scratch| {
        let file = recording.file(scratch);
        let (total, _) = expected(&recording.document, "counts.allocations", None);
        let mut rest = total;
        for window in WINDOWS.into_iter().chain(["process"]) {
            let (of_window, functions) = expected(&recording.document, "counts.allocations", Some(window));
            assert!(of_window > 0, "{window} is empty");
            rest -= of_window;
            // pprof's total is the whole profile's.
            let found = top(scratch, &[&format!("-tagfocus=window={window}")], &file);
            assert_eq!(found, (total, functions), "{} {window}", recording.language);
        }
        assert_eq!(rest, 0, "there are more windows");
    });
}

/// `-diff_base`: the functions that allocate more, and nothing else.
#[test]
fn the_difference_of_two_profiles() {
    for_each_recording(|recording, scratch| {
        let (file, more_file) = (recording.file(scratch), recording.more_file(scratch));
        let base = format!("-diff_base={}", file.display());
        for (sample_type, metric) in [SAMPLE_TYPES[0], SAMPLE_TYPES[1], SAMPLE_TYPES[4], SAMPLE_TYPES[10]] {
            let (base_total, before) = expected(&recording.document, metric, None);
            let (_, mut difference) = expected(&recording.more_document, metric, None);
            for (name, (flat, cumulative)) in before {
                let values = difference.entry(name).or_default();
                *values = (values.0 - flat, values.1 - cumulative);
            }
            difference.retain(|_, values| *values != (0, 0));
            assert!(difference.contains_key("main"), "{difference:?}");
            let found = top(scratch, &[&base, &format!("-sample_index={sample_type}")], &more_file);
            assert_eq!(found, (base_total, difference), "{} {sample_type}", recording.language);
        }
        // 6 calls more in each of 4 entries.
        let (_, values) = top(scratch, &[&base, "-tagfocus=window=parse"], &more_file);
        assert_eq!(values["malloc"], (24, 24), "{values:?}");
        let caller =
            if recording.language == "rust" { "consumer::more" } else { "(anonymous namespace)::churn(int)" };
        assert_eq!(values[caller], (0, 24), "{values:?}");
        // The profile against itself.
        let (_, values) = top(scratch, &[&base], &file);
        assert_eq!(values, Values::new());
    });
}

/// What pprof writes has other samples than our document describes: it is refused, and the message says why.
#[test]
fn what_pprof_wrote_is_refused_by_name() {
    for_each_recording(|recording, scratch| {
        let file = recording.file(scratch).to_string_lossy().into_owned();
        let more_file = recording.more_file(scratch).to_string_lossy().into_owned();
        for (name, options, reason) in [
            ("copy.pb.gz", vec![file.as_str()], "altered profile"),
            ("filtered.pb.gz", vec!["-tagfocus=window=parse", &file], "altered profile"),
            ("merged.pb.gz", vec![&file, &more_file], "merged profile"),
        ] {
            let copy = scratch.path(name);
            let to = format!("-output={}", copy.display());
            let mut arguments = vec!["-proto", &to];
            arguments.extend(options);
            pprof(scratch, &arguments);
            let (code, output, stderr) = heaptally_output(["report".as_ref(), copy.as_os_str()]);
            assert_eq!((code, output.len()), (4, 0), "{name}: {stderr}");
            assert!(stderr.contains(reason), "{name}: {stderr}");
        }
        // And the file itself is read.
        assert_eq!(heaptally_output(["report".as_ref(), file.as_ref()]).0, 0);
    });
}
