//! Files of other tools, as `report`, `diff` and `merge` take them. Their totals are looked at where they are read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sandbox::Sandbox;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/fixture")
}

fn fixture(name: &str) -> String {
    folder().join(name).to_str().unwrap().to_owned()
}

fn output(words: &[&str]) -> String {
    let outcome = Sandbox::new().call(words);
    outcome.expect(0);
    outcome.output
}

#[test]
fn every_file_makes_every_report() {
    let mut files = 0;
    for file in fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let path = path.to_str().unwrap();
        // It is a profile of time.
        if path.ends_with("go_cpu.pb.gz") {
            Sandbox::new().call(["report", path]).expect(4).says(&["tells no number of allocations"]);
            continue;
        }
        files += 1;
        let text = output(&["report", path]);
        assert!(text.starts_with("from a ") && text.contains("not known: "), "{path}: {text}");
        let json: Value = serde_json::from_str(&output(&["report", "--json", path])).unwrap();
        let window = &json["windows"][0];
        let rows = window["rows"].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row["counts"]["allocations"].as_u64().unwrap()).sum();
        assert_eq!(window["counts"]["allocations"].as_u64(), Some(sum), "{path}");
        let bytes_known = !json["environment"]["unknown"].as_array().unwrap().contains(&"bytes".into());
        assert_eq!(window["counts"]["bytes"].is_u64(), bytes_known, "{path}");
        assert_eq!(text.contains("bytes unknown"), !bytes_known, "{path}");
        assert!(window["counts"]["temporary"].is_null(), "{path}");
        for form in ["folded", "csv"] {
            assert!(output(&["report", "--format", form, path]).lines().count() > 1, "{path}");
        }
        assert!(output(&["diff", path, path]).starts_with("no difference"), "{path}");
    }
    assert_eq!(files, 18);
}

#[test]
fn folded_stacks_of_heaptally_come_back() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-q", "-o", "a.pb.gz", sandbox.demo().to_str().unwrap()]).expect(0);
    let folded = sandbox.call(["report", "--format", "folded", "a.pb.gz"]).expect(0).output.clone();
    sandbox.write("a.folded", &folded, 0o644);
    let again = sandbox.call(["report", "--format", "folded", "a.folded"]).expect(0).output.clone();
    let sum = |text: &str| -> u64 {
        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum(&again), sum(&folded)), (1_500, 1_500));
}

#[test]
fn what_a_tool_did_not_measure_is_neither_sorted_nor_compared() {
    let sandbox = Sandbox::new();
    let (print, recording) = (fixture("heaptrack_print_whole.txt.gz"), fixture("heaptrack.zst"));
    for (sort, words) in [("bytes", "how many bytes"), ("live", "what was freed"), ("temporary", "temporary")]
    {
        let outcome = sandbox.call(["report", "--sort", sort, &print]);
        outcome.expect(4).says(&[words, "it is a heaptrack_print text"]);
    }
    sandbox.call(["report", "--sort", "live", &recording]).expect(0);
    let diff = output(&["diff", &print, &recording]);
    assert!(diff.contains("260 allocs (no change)   bytes unknown"), "{diff}");
    for (base, change, words) in [
        ("heaptrack.zst", "go.pb.gz", "the sampling is none in one, \"one sample in 524288 bytes"),
        ("jemalloc_sampled.heap.gz", "jemalloc_live.heap.gz", "what is counted is all"),
    ] {
        let (base, change) = (fixture(base), fixture(change));
        sandbox.call(["diff", &base, &change]).expect(4).says(&["cannot compare", words]);
        sandbox.call(["merge", &base, &change, "-o", "sum.pb.gz"]).expect(4).says(&["cannot add"]);
    }
}

/// `heaptrack_print` lists a part of its calls: the rest is lost to a comparison.
#[test]
fn what_a_file_does_not_list_is_told_on_both_sides() {
    let (print, recording) = (fixture("heaptrack_print_whole.txt.gz"), fixture("heaptrack.zst"));
    let text = "MOST CALLS TO ALLOCATION FUNCTIONS\n10 calls to allocation functions with 1K peak consumption from\n  one\n    at /p.c:1\n    in /p\n\ncalls to allocation functions: 909 (1/s)\n";
    let sandbox = Sandbox::new();
    sandbox.write("part.txt", text, 0o644);
    let diff = |base: &str, change: &str| sandbox.call(["diff", base, change]).expect(0).output.clone();
    let note = "note: allocations without a whole stack: ";
    assert!(diff("part.txt", &print).contains(&format!("{note}899 lost in the base, none in the change\n")));
    assert!(diff(&print, "part.txt").contains(&format!("{note}none in the base, 899 lost in the change\n")));
    assert!(
        diff("part.txt", "part.txt")
            .contains(&format!("{note}899 lost in the base, 899 lost in the change\n"))
    );
    assert!(!diff(&print, &recording).contains(note));
}

#[test]
fn damage_is_told_with_the_file_and_the_line() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "v 10400 3\nX ./prog\n+ 0\n", 0o644);
    sandbox.call(["report", "a.txt"]).expect(4).says(&["`a.txt`", "heaptrack recording", "line 3"]);
    sandbox.call(["diff", "a.txt", "a.txt"]).expect(4).says(&["`a.txt`", "line 3"]);
}

#[test]
fn addresses_are_named_from_the_files_that_are_there() {
    let sandbox = Sandbox::new();
    // A record in the code of this machine's `sh`, whose range `readelf` would tell: its entry point is in it.
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let bytes = fs::read(&shell).unwrap();
    let field = |at: usize, len: usize| {
        let mut number = [0; 8];
        number[..len].copy_from_slice(&bytes[at..at + len]);
        u64::from_le_bytes(number)
    };
    let (entry, headers, size, count) = (field(24, 8), field(32, 8), field(54, 2), field(56, 2));
    let header = |at: u64| (headers + at * size) as usize;
    let code = (0..count).map(header).find(|&at| field(at, 4) == 1 && field(at + 4, 4) & 1 == 1).unwrap();
    let (offset, svma) = (field(code + 8, 8), field(code + 16, 8));
    let mapped = 0x7f00_0000_0000_u64;
    let address = mapped + (entry - svma) + 1;
    let text = format!(
        "heap profile: 1: 8 [ 2: 16] @ heapprofile\n 1: 8 [ 2: 16] @ {address:#x}\n\nMAPPED_LIBRARIES:\n{mapped:x}-{:x} r-xp {offset:08x} 08:01 7 {}\n",
        mapped + 0x10_0000,
        shell.display()
    );
    sandbox.write("sh.heap", text, 0o644);
    let json: Value =
        serde_json::from_str(&sandbox.call(["report", "--json", "sh.heap"]).expect(0).output).unwrap();
    let frame = &json["frames"][0];
    assert_eq!(frame["address"].as_u64(), Some(entry + 1), "{frame}");
    assert!(json["images"][0]["warnings"].is_array());
}

/// Files that gungraun made: of one run (`.out.old`) and of the next one, with the numbers that it printed for them.
#[test]
fn benchmarks_of_gungraun_are_windows() {
    const THREE: &str = "words::group_of_words::split::three";
    const TEN: &str = "words::group_of_words::split::ten";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/gungraun");
    let file =
        |name: &str| folder.join("words/group_of_words/split.three").join(name).to_str().unwrap().to_owned();
    let numbers = |path: &str| -> Vec<(String, u64, u64)> {
        let json: Value = serde_json::from_str(&output(&["report", "--json", path])).unwrap();
        let windows = json["windows"].as_array().unwrap().iter();
        let number = |window: &Value, name: &str| window["counts"][name].as_u64().unwrap();
        let name = |window: &Value| window["name"].as_str().unwrap().to_owned();
        windows.map(|window| (name(window), number(window, "allocations"), number(window, "bytes"))).collect()
    };
    let (old, new) = (file("dhat.split.three.out.old"), file("dhat.split.three.out"));
    assert_eq!(numbers(&old), [(THREE.to_owned(), 4, 108)]);
    assert_eq!(numbers(&new), [(THREE.to_owned(), 7, 120)]);
    // All of a folder: those of the last run.
    let all = numbers(folder.to_str().unwrap());
    assert_eq!(all, [(TEN.to_owned(), 23, 752), (THREE.to_owned(), 7, 120)]);
    let text = output(&["diff", &old, &new]);
    assert!(text.contains(&format!("window \"{THREE}\"   4 → 7 allocs")), "{text}");
    assert!(text.starts_with('+') && text.contains("src/lib.rs:2"), "{text}");

    let sandbox = Sandbox::new();
    sandbox.call(["report", "."]).expect(4).says(&["a folder without DHAT files of gungraun"]);
    for package in ["one", "two"] {
        fs::create_dir_all(sandbox.work(format!("{package}/b/g/f"))).unwrap();
        sandbox.write(&format!("{package}/b/g/f/dhat.f.out"), "{}", 0o644);
    }
    sandbox.call(["report", "."]).expect(4).says(&["are of benchmarks of one name"]);
}
