//! What the recorder costs, counted in instructions: the same on every day and on a busy machine, unlike time.
//!
//! A program of `bench/programs` runs under callgrind with two numbers of events; the difference, divided by the
//! difference of the numbers, is what one event takes. What it takes without the recorder is subtracted. The limits in `bench/instructions.txt` are somewhat above what was measured last. A change that makes an event cheaper
//! lowers its limit: `HEAPTALLY_BLESS=1 cargo test --release -p integration-tests --test integration instruction`.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use integration_tests::command::heaptally;
use integration_tests::program::compile;
use integration_tests::scratch::Scratch;
use integration_tests::tool::have;

/// What is counted: its name in the file of limits, and what `leaves` is asked for behind the number of events.
const WORKLOADS: [(&str, [&str; 4]); 9] = [
    ("depth-5", ["5", "1", "1", "whole"]),
    ("depth-20", ["20", "1", "1", "whole"]),
    ("depth-60", ["60", "1", "1", "whole"]),
    ("depth-20-100-stacks", ["20", "100", "1", "whole"]),
    ("depth-20-1000-stacks", ["20", "1000", "1", "whole"]),
    ("before-the-first-window", ["20", "100", "1", "before"]),
    ("window-closed", ["20", "100", "1", "after"]),
    ("window-1-stack", ["20", "1", "1", "windows"]),
    ("window-1000-stacks", ["20", "1000", "1", "windows"]),
];
/// Two numbers of events; all stacks are known after the first.
const EVENTS: [u64; 2] = [20_000, 60_000];
/// How far above the measured value a limit is set.
const ROOM: f64 = 1.03;

const HEAD: &str = "\
# Instructions that the recorder adds to one event at most: to a pair of malloc and free, or to a window opened and
# closed. Set by HEAPTALLY_BLESS=1, see integration-tests/tests/integration/instruction.rs.
";

fn limits_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/instructions.txt")
}

fn limits() -> BTreeMap<String, f64> {
    let text = fs::read_to_string(limits_path()).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let limit =
        |line: &str| Some((line.split_once(' ')?.0.to_owned(), line.split_once(' ')?.1.trim().parse().ok()?));
    lines.filter_map(limit).collect()
}

/// The instructions of the program with so many events.
fn instructions(
    scratch: &Scratch,
    program: &Path,
    events: u64,
    arguments: [&str; 4],
    is_recorded: bool,
) -> u64 {
    let mut words = Vec::new();
    if is_recorded {
        words.extend(["run", "-q", "-o", "profile.pb.gz"]);
        if arguments[3] != "whole" {
            words.extend(["--window", "measured"]);
        }
        words.extend(["--", "valgrind"]);
    }
    let first = if is_recorded { heaptally() } else { Path::new("valgrind") };
    let mut command = Command::new(first);
    command.current_dir(scratch.folder()).args(words);
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output =
        command.arg(program).arg(events.to_string()).args(arguments).output().expect("valgrind runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}\n{said}", output.status);
    let count = said.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("callgrind counted nothing:\n{said}"))
}

#[test]
fn instructions_of_an_event_stay_below_their_limits() {
    if !have(&["valgrind", "gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/programs/leaves.c");
    let flags = ["-O2", "-fomit-frame-pointer"];
    let program = compile("gcc", &["-std=gnu11"], &source, &scratch, "leaves", &flags);
    let (limits, mut table, mut failures) = (limits(), String::from(HEAD), Vec::new());
    for (name, arguments) in WORKLOADS {
        let [without, with] = [false, true].map(|is_recorded| {
            let count = |events| instructions(&scratch, &program, events, arguments, is_recorded);
            let [few, many] = EVENTS.map(count);
            (many as f64 - few as f64) / (EVENTS[1] - EVENTS[0]) as f64
        });
        let each = with - without;
        println!("{name}: {each:.1} instructions added to {without:.1}");
        writeln!(table, "{name} {:.0}", (each * ROOM).ceil()).unwrap();
        match limits.get(name) {
            Some(limit) if each <= *limit => {}
            Some(limit) => {
                failures.push(format!("{name}: {each:.1} instructions an event are added; at most {limit}"))
            }
            None => failures.push(format!("{name}: {each:.1} instructions an event are added; no limit")),
        }
    }
    if env::var_os("HEAPTALLY_BLESS").is_some() {
        fs::write(limits_path(), table).unwrap();
        return;
    }
    assert!(
        failures.is_empty(),
        "the recorder takes more instructions than bench/instructions.txt allows:\n  {}\n\
         look for what made an event dearer; if that is wanted, set the limits with HEAPTALLY_BLESS=1",
        failures.join("\n  ")
    );
}
