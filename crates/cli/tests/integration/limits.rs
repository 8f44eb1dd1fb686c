//! Files of limits: what is read, what holds, and what `limits update` writes.

use std::fs;

use serde_json::Value;

use crate::check::{edited, first_row, limited, sandbox, window};

#[test]
fn what_is_no_limits_file_never_passes() {
    let sandbox = sandbox();
    let huge = "#".repeat(20 << 20);
    for (name, bytes, words) in [
        ("cut.toml", &b"[window.par"[..], &["line 1"][..]),
        ("key.toml", b"[window.parse]\n\nalocs = 1\n", &["line 3", "did you mean `allocs`?"]),
        ("binary.toml", b"[window]\n\xff\xfe", &["line 2", "not UTF-8"]),
        ("profile.toml", b"\x1f\x8b\x08\0", &["--baseline"]),
        ("huge.toml", huge.as_bytes(), &["larger than"]),
        ("nul.toml", b"\0\0\0", &["line 1"]),
        ("T.b.p90.json", b"{\"mallocCountTotal\":\"many\"}", &["not a threshold file", "mallocCountTotal"]),
        ("T.c.p90.json", b"", &["not a threshold file"]),
        ("T.d.p90.json", b"{\"mallocCountTotal\": 1", &["not a threshold file"]),
    ] {
        sandbox.write(name, bytes, 0o644);
        sandbox.call(["check", "demo.pb.gz", "--limits", name]).expect(4).says(&[name]).says(words);
        sandbox
            .call(["limits", "update", "demo.pb.gz", "--limits", name])
            .expect(4)
            .says(&[name])
            .says(words);
        sandbox.call(["limits", "show", name]).expect(4).says(words);
        assert!(fs::read(sandbox.work(name)).unwrap() == bytes, "{name} was overwritten");
    }
    sandbox.call(["check", "demo.pb.gz", "--limits", "nowhere.toml"]).expect(4).says(&["limits update"]);
    sandbox.call(["check", "demo.pb.gz", "--limits", "."]).expect(4);
}

/// What `limits update` writes of a profile, that profile keeps to, and nothing of it could be lower.
#[test]
fn a_limit_that_was_written_of_a_profile_is_met_by_it() {
    let sandbox = sandbox();
    // 77 allocations in 3 iterations, and 9 in one: the pattern is for both.
    edited(&sandbox, "odd.pb.gz", |profile| {
        for (name, allocations, iterations) in [("parse", 77, 3), ("look up", 9, 1)] {
            let at = window(profile, name);
            let first = profile.rows.iter().position(|row| row.window == at).unwrap();
            let mut index = 0;
            profile.rows.retain(|row| {
                index += 1;
                row.window != at || index - 1 == first
            });
            profile.windows[at].iterations = iterations;
            first_row(profile, name).allocations = allocations;
        }
    });
    for before in [
        "",
        "[window.\"*\"]\nallocs = 99\nbytes = 1_000_000\n",
        "[window.\"*\"]\nallocs = { max = 99, soft_max = 98 }\n[window.process]\nallocs = 99\n",
        "[window.\"*\"]\nallocs = 1\ntotal.allocs = 1\nunstable = true\n",
        "[[ignore]]\nstack = \"demo::describe\"\nreason = \"known\"\nuntil = 2999-01-01\n[window.\"*\"]\nallocs = 99\n",
    ] {
        sandbox.write("l.toml", before, 0o644);
        sandbox.call(["limits", "update", "odd.pb.gz", "--limits", "l.toml"]).expect(0);
        for option in ["--strict", "--exit-on-improvement"] {
            let outcome = sandbox.call(["check", "odd.pb.gz", "--limits", "l.toml", option]);
            outcome.expect(0);
            assert!(outcome.output.starts_with("passed: "), "{before}: {outcome:#?}");
        }
        let written = fs::read_to_string(sandbox.work("l.toml")).unwrap();
        assert!(written.contains("allocs = 25.67") || written.contains("max = 25.67"), "{written}");
        let again = sandbox.call(["limits", "update", "odd.pb.gz", "--limits", "l.toml", "--ratchet"]);
        assert_eq!(again.expect(0).output, "no limit changes\n");
    }
    // Looser by a hundredth it is an improvement, and one that the ratchet takes away.
    sandbox.write("l.toml", "[window.\"*\"]\nallocs = 25.68\n", 0o644);
    let check = ["check", "odd.pb.gz", "--limits", "l.toml", "--exit-on-improvement"];
    assert_eq!(sandbox.call(check).expect(5).output.matches("below its limit").count(), 1);
    sandbox.call(["limits", "update", "odd.pb.gz", "--limits", "l.toml", "--ratchet"]).expect(0);
    sandbox.call(check).expect(0);
    // A min that is in the way is said, and nothing is written.
    let text = "[window.parse]\nallocs = { min = 26, max = 30 }\n";
    sandbox.write("l.toml", text, 0o644);
    let refused = sandbox.call(["limits", "update", "odd.pb.gz", "--limits", "l.toml"]);
    refused.expect(4).says(&["`l.toml`", "line 2", "`min` of allocs is above the 25.67", "by hand"]);
    assert_eq!(fs::read_to_string(sandbox.work("l.toml")).unwrap(), text);
}

/// The example of `docs/limits.md` is read, and holds every key that there is.
#[test]
fn the_documented_limits_are_read() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md")).unwrap();
    let (_, example) = docs.split_once("```toml\n").unwrap();
    let (example, rest) = example.split_once("```").unwrap();
    assert!(!rest.contains("```toml"), "another example is not read here");
    let sandbox = sandbox();
    sandbox.write("limits.toml", example, 0o644);
    let shown = sandbox.call(["limits", "show", "limits.toml"]).expect(0).output.clone();
    for line in [
        "limits.toml:2: `parse`: allocs at most 75\n",
        "limits.toml:3: `parse`: bytes may grow by 10 % (a warning)\n",
        "limits.toml:4: `parse`: live at least 0\n",
        "limits.toml:7: `parse`: reallocs may shrink by 50 %\n",
        "limits.toml:8: `parse`: total.allocs at most 75000\n",
        "limits.toml:9: `parse`: allocs of a stack may grow by 10 %\n",
        "limits.toml:14: `look*`: bytes of a stack may grow by 100, below Parser::, ^main$, worker (a warning)\n",
        "`parse*`: ignored until 2027-01-31: Parser::name (waits for the new parser)\n",
    ] {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
    // 12 of 75, and each stack of a profile is none that is new to it.
    let check = ["check", "demo.pb.gz", "--limits", "limits.toml", "--baseline", "demo.pb.gz", "--json"];
    let report: Value = serde_json::from_str(&sandbox.call(check).output).unwrap();
    assert_eq!(report["windows"][0]["limits"], 13, "{report}");
    // Each word of the tables that is a key is one: an unknown key's message names those that there are.
    for (text, known) in [
        ("[window.w]\nzzzzzzzz = 1\n", 9),
        ("[window.w]\nallocs = { zzzzzzzz = 1 }\n", 8),
        ("[window.w]\nstacks = { zzzzzzzz = 1 }\n", 8),
        ("[measurement]\nzzzzzzzz = 1\n", 2),
        ("[[ignore]]\nzzzzzzzz = 1\n", 4),
    ] {
        sandbox.write("wrong.toml", text, 0o644);
        let errors = sandbox.call(["limits", "show", "wrong.toml"]).expect(4).errors.clone();
        let keys = errors.split_once("known are ").unwrap().1.trim().split(", ");
        let missing: Vec<&str> =
            keys.clone().filter(|key| !docs.contains(key.strip_prefix("soft_").unwrap_or(key))).collect();
        assert_eq!((keys.count(), missing), (known, vec![]), "{errors}");
    }
}

#[test]
fn thresholds_of_package_benchmark_are_limits() {
    let sandbox = sandbox();
    let folder = sandbox.work("Thresholds");
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("Target.parse.p90.json", "{\n  \"mallocCountTotal\" : 12,\n  \"syscalls\" : 9\n}\n");
    write("Target.look up.p90.json", "{\n  \"mallocCountTotal\" : { \"min\" : 4, \"max\" : 5 }\n}\n");
    let outcome = sandbox.call(["check", "demo.pb.gz", "--limits", "Thresholds"]);
    let text = &outcome.expect(3).output;
    assert!(
        text.contains("at least 4.00 expected") && text.contains("Thresholds/Target.look up.p90.json:2"),
        "{text}"
    );
    write("Target.parse.p90.json", "{\n  \"mallocCountTotal\" : 15,\n  \"syscalls\" : 9\n}\n");
    sandbox.call(["limits", "update", "demo.pb.gz", "--limits", "Thresholds", "--ratchet"]).expect(0);
    sandbox.call(["check", "demo.pb.gz", "--limits", "Thresholds"]).expect(0);
    let parse = fs::read_to_string(folder.join("Target.parse.p90.json")).unwrap();
    assert_eq!(parse, "{\n  \"mallocCountTotal\" : 12,\n  \"syscalls\" : 9\n}\n");
}

#[test]
fn ignored_stacks_do_not_count_until_their_day() {
    let sandbox = sandbox();
    edited(&sandbox, "base.pb.gz", |profile| {
        let at = window(profile, "look up");
        profile.rows.retain(|row| row.window != at);
    });
    let check = |until: &str, stack: &str| {
        let text = format!("[[ignore]]\nstack = \"{stack}\"\nreason = \"known\"\nuntil = {until}\n");
        sandbox.write("ignore.toml", text, 0o644);
        sandbox.call(["check", "demo.pb.gz", "--baseline", "base.pb.gz", "--limits", "ignore.toml"])
    };
    let outcome = check("2999-01-01", "demo::describe");
    assert!(
        outcome.expect(0).output.contains("ignored until 2999-01-01: 3 stacks with 300 allocations (known)"),
        "{outcome:#?}"
    );
    let outcome = check("2020-01-01", "demo::describe");
    assert!(outcome.expect(3).output.contains("2020-01-01 is over"), "{outcome:#?}");
    let outcome = check("2999-01-01", "demo::nowhere");
    assert!(outcome.expect(3).output.contains("no stack is there"), "{outcome:#?}");
}

#[test]
fn stacks_can_be_limited_below_a_function_only() {
    let sandbox = sandbox();
    edited(&sandbox, "base.pb.gz", |profile| profile.rows.clear());
    let check = |stacks: &str| {
        sandbox.write("l.toml", format!("[window.\"*\"]\nstacks = {stacks}\n"), 0o644);
        sandbox.call(["check", "demo.pb.gz", "--baseline", "base.pb.gz", "--limits", "l.toml"])
    };
    let outcome = check("{ new = \"fail\", under = \"demo::describe\" }");
    let text = &outcome.expect(3).output;
    assert!(
        text.contains("window \"look up\": 3 new stacks") && !text.contains("window \"parse\":"),
        "{text}"
    );
    check("{ new = \"fail\", root = \"nowhere\" }").expect(0);
    assert!(check("{ new = \"warn\" }").expect(0).output.contains("warning: window \"parse\": "));
    check("{ new = \"pass\", grow = 0 }").expect(0);
    check("{ grow = 100 }").expect(0);
    check("{ grow = 1 }").expect(3);
}

#[test]
fn d18_a_limit_without_a_window_is_said() {
    let sandbox = sandbox();
    let outcome = limited(&sandbox, "[window.zzz]\nallocs = 0\n[window.parse]\nallocs = 12\n");
    let text = &outcome.expect(0).output;
    assert!(text.contains("warning: unused limit for \"zzz\": no window fits: limits.toml:2"), "{text}");
    sandbox.call(["check", "demo.pb.gz", "--limits", "limits.toml", "--strict"]).expect(4);
}
