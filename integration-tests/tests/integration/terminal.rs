//! What is for people at a terminal, and for no one else.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration_tests::command::heaptally;
use integration_tests::run::{Run, heaptally_output, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::terminal::{Shown, script, script_behind, shown, start, wait};
use integration_tests::tool;

use crate::standard;

const ESCAPE: char = '\x1b';

/// The case C13, whose function has a name of more than 20,000 bytes, recorded as `a.pb.gz`.
fn long_name() -> Option<Scratch> {
    if !tool::have(&["script", "stty"]) {
        return None;
    }
    let (case, scratch) = standard::build("C13")?;
    let outcome = Run::new(&scratch, [case.program()]).profile(scratch.path("a.pb.gz")).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    Some(scratch)
}

fn report(scratch: &Scratch, options: &[&str]) -> String {
    let file = scratch.path("a.pb.gz");
    let arguments = [OsStr::new("report"), file.as_os_str()];
    let (code, output, stderr) =
        heaptally_output(arguments.into_iter().chain(options.iter().map(OsStr::new)));
    assert_eq!(code, 0, "{options:?}: {stderr}");
    String::from_utf8(output).expect("UTF-8")
}

/// The lines of the table: behind the heading with `share`, before the sentence on what was captured.
fn table(lines: &[String]) -> Vec<&str> {
    let table = lines.iter().map(String::as_str).skip_while(|line| !line.contains("share")).skip(1);
    table.take_while(|line| !line.starts_with("captured")).collect()
}

/// On a terminal a long name loses its middle: no line of a table is longer than the terminal is wide, and what a
/// name begins and ends with is there. (Sentences and headings are as long as they are.)
#[test]
fn e17_a_terminal_cuts_the_middle_of_names() {
    let Some(scratch) = long_name() else { return };
    for columns in [40, 80] {
        for options in ["", "--by site", "--by function", "--tree", "--tree=bottom-up", "--full"] {
            let shown = shown(script(&scratch, columns, &format!("report a.pb.gz {options}")));
            assert_eq!(shown.code, 0, "{shown:?}");
            let lines = shown.lines();
            let table = table(&lines);
            for line in &table {
                let length = line.chars().count();
                assert!(length <= columns, "{length} of {columns} columns, {options}: {line}");
            }
            let names: Vec<&&str> = table.iter().filter(|line| line.contains("N<Pair<")).collect();
            assert!(!names.is_empty(), "{columns} {options}: {lines:#?}");
            for name in names {
                assert!(name.contains('…'), "{columns} {options}: {name}");
                assert!(name.contains("::go") || options == "--full", "{columns} {options}: {name}");
            }
            assert!(table.iter().any(|line| line.contains("C13.cpp")), "{columns} {options}: {lines:#?}");
        }
    }
}

/// `COLUMNS` says more than the terminal does.
#[test]
fn e17_columns_can_be_told() {
    let Some(scratch) = long_name() else { return };
    for columns in [40, 80] {
        let mut command = script(&scratch, 132, "report a.pb.gz");
        command.env("COLUMNS", columns.to_string());
        let shown = shown(command);
        let lines = shown.lines();
        let widest = table(&lines).iter().map(|line| line.chars().count()).max();
        assert!(
            (columns - 15..=columns).contains(&widest.unwrap_or(0)),
            "{widest:?} of {columns}: {lines:#?}"
        );
    }
}

/// In a pipe names are whole, in every form, and there are no escape codes, whatever `COLUMNS` says.
#[test]
fn e17_a_pipe_gets_whole_names() {
    let Some(scratch) = long_name() else { return };
    let document: serde_json::Value =
        serde_json::from_slice(&report_json(&scratch.path("a.pb.gz"))).expect("JSON");
    let frames = document["frames"].as_array().expect("frames");
    let names = frames.iter().filter_map(|frame| frame["function"].as_str());
    let name = names.max_by_key(|name| name.len()).expect("a name");
    assert!(name.len() > 20_000, "{}", name.len());
    // The short view leaves the parameters out.
    let site = name.strip_suffix("()").expect("a function without parameters");
    assert!(site.starts_with("N<Pair<") && site.ends_with("::go"), "{} … ", &site[..40]);
    for options in [&[][..], &["--by", "site"], &["--by", "function"], &["--tree"], &["--tree=bottom-up"]] {
        let text = report(&scratch, options);
        assert!(text.contains(site), "{options:?}: the name is not whole");
        assert!(!text.contains(ESCAPE), "{options:?}: escape codes");
    }
    let full = report(&scratch, &["--full"]);
    assert!(full.contains(name) && !full.contains(ESCAPE));
    for form in ["csv", "folded"] {
        let text = report(&scratch, &["--format", form]);
        assert!(text.contains(name) && !text.contains(ESCAPE), "{form}");
    }
    // Not even where the environment looks like a terminal's.
    let piped = |columns: Option<&str>| {
        let mut command = Command::new(heaptally());
        command.args(["report", "a.pb.gz"]).current_dir(scratch.folder()).env_remove("COLUMNS");
        let output = command.env("TERM", "xterm").envs(columns.map(|value| ("COLUMNS", value))).output();
        String::from_utf8(output.expect("heaptally").stdout).expect("UTF-8")
    };
    let is_same = piped(Some("40")) == piped(None);
    assert!(is_same && piped(None).contains(site), "COLUMNS changes what a pipe gets");
}

/// The same lines with and without colours.
#[test]
fn e17_no_color() {
    let Some(scratch) = long_name() else { return };
    let shown_with = |name: Option<&str>| {
        let mut command = script(&scratch, 80, "report a.pb.gz");
        command.envs(name.map(|value| ("NO_COLOR", value)));
        shown(command)
    };
    let (with, without) = (shown_with(None), shown_with(Some("1")));
    assert!(with.text.contains(ESCAPE), "{with:?}");
    assert!(!without.text.contains(ESCAPE), "{without:?}");
    assert_eq!(with.lines(), without.lines());
}

/// The progress line is for names that take long. strace delays the opening of the program's file, for the command as
/// for the program.
#[test]
fn e15_progress_is_shown_on_a_terminal_only() {
    const LINE: &str = "naming functions: ";
    if !tool::have(&["script", "stty", "strace"]) {
        return;
    }
    let Some((_, scratch)) = standard::build("C07") else { return };
    let slowly = |delay: u64| {
        let path = scratch.path("C07");
        format!(
            "strace -f -qq -o strace.log -P {} -e trace=openat -e inject=openat:delay_enter={delay}",
            path.display()
        )
    };
    let on_terminal = |delay: u64, options: &str| -> Shown {
        let arguments = format!("run {options} -o a.pb.gz ./C07");
        let shown = shown(script_behind(&scratch, 80, Path::new(&slowly(delay)), &arguments));
        assert_eq!(shown.code, 0, "{shown:?}");
        assert!(scratch.path("a.pb.gz").exists(), "{shown:?}");
        shown
    };
    let late = on_terminal(1_500_000, "");
    assert!(late.text.contains(LINE), "{late:?}");
    // It is wiped out at the end: the summary stands alone in its line.
    let last =
        late.lines().into_iter().rfind(|line| line.contains("heaptally: 1 window")).expect("the summary");
    let after_return = last.rsplit('\r').next().unwrap_or_default();
    assert!(after_return.starts_with("heaptally: 1 window") && after_return.ends_with("a.pb.gz"), "{last:?}");

    // Not when it is quick (a busy machine makes it slow), not when it is to be quiet, not in a pipe.
    let quick: Vec<Shown> = (0..10).map(|_| on_terminal(0, "")).collect();
    assert!(quick.iter().any(|shown| !shown.text.contains(LINE)), "{quick:?}");
    let quiet = on_terminal(1_500_000, "--quiet");
    assert!(!quiet.text.contains(LINE), "{quiet:?}");
    let script = format!("exec {} \"$@\"", slowly(1_500_000));
    let piped = Run::new(&scratch, ["./C07"]).behind_shell(&script).run();
    assert_eq!(piped.code, 0, "{}", piped.stderr);
    assert!(piped.elapsed > Duration::from_millis(1_500), "nothing was delayed: {:?}", piped.elapsed);
    assert!(!piped.stderr.contains(LINE) && !piped.stderr.contains(ESCAPE), "{}", piped.stderr);
    assert!(piped.stderr.contains("heaptally: 1 window"), "{}", piped.stderr);
}

/// ^C goes to the program by the terminal; the command waits, writes the profile, and ends as the program did: not
/// with 0.
#[test]
fn e16_interrupted_at_the_terminal() {
    if !tool::have(&["script", "stty"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("wait.sh", ": > running\nexec sleep 60\n");
    let mut command = script(&scratch, 80, "run -o a.pb.gz sh wait.sh");
    command.stdin(Stdio::piped());
    let started = Instant::now();
    let mut child = start(command);
    while !scratch.path("running").exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "the program does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    let mut keyboard = child.stdin.take().expect("an input");
    keyboard.write_all(b"\x03").expect("typing");
    keyboard.flush().expect("typing");
    let shown = wait(child);
    assert!(started.elapsed() < Duration::from_secs(50), "the program ran to its end");
    assert_eq!(shown.code, 130, "{shown:?}");
    assert!(shown.text.contains("→ a.pb.gz"), "{shown:?}");
    assert!(fs::metadata(scratch.path("a.pb.gz")).is_ok_and(|profile| profile.len() > 0));
}
