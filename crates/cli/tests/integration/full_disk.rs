//! Files that cannot be written whole: the old one stays, what else there is to say is said.

use std::fs;
use std::process::Command;

use crate::sandbox::{HEAPTALLY, Outcome, Sandbox, outcome, skip};

/// What `unshare` is asked for: a disk that nobody else sees.
const OWN_DISK: &str = r#"
    mount -t tmpfs -o size=64k none disk || exit 97
    cp old/* disk/
    head -c 200000 /dev/zero > disk/filling 2> full
    test -s full || exit 98
    if test "$1" = read-only; then mount -o remount,ro disk || exit 97; fi
    shift
    "$@"
    code=$?
    rm -f disk/filling
    for file in old/*; do cmp "$file" "disk/${file#old/}" >&2 || exit 99; done
    ls -A disk > left
    heaptally diff main old/main.pb.gz >&2 || exit 96
    exit $code
"#;

/// A disk in the folder `disk`, either full or read-only, with a file of each kind that is there already.
struct Disk {
    sandbox: Sandbox,
    kind: &'static str,
}

impl Disk {
    /// `None` where no disk can be mounted.
    fn new(kind: &'static str) -> Option<Self> {
        let disk = Self { sandbox: Sandbox::new(), kind };
        for folder in ["disk", "old", ".config", ".git"] {
            fs::create_dir(disk.sandbox.work(folder)).unwrap();
        }
        disk.sandbox.write(".config/heaptally.toml", "baseline-folder = 'disk'\n", 0o644);
        let record = |file: &str, script: &str| {
            disk.sandbox.call(["run", "-q", "-o", file, "--", "sh", "-c", script]).expect(0);
        };
        record("old/main.pb.gz", "true");
        record("more.pb.gz", "for word in a b c; do :; done; eval 'f() { :; }'; f");
        disk.sandbox.call(["limits", "update", "old/main.pb.gz", "--limits", "old/limits.toml"]).expect(0);
        disk.sandbox.write("old/report.txt", "of before\n", 0o644);
        let tried = disk.call(&["true"]);
        if tried.code != Some(0) {
            skip(&format!("no disk can be mounted: {tried:?}"));
            return None;
        }
        Some(disk)
    }

    /// Calls words on it. Afterwards the old files are as they were, or it is code 99; the baseline `main` can be
    /// compared, or it is 96.
    fn call(&self, words: &[&str]) -> Outcome {
        let inner = OWN_DISK.replace("heaptally diff", &format!("{HEAPTALLY} diff"));
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &inner, "sh", self.kind]).args(words);
        command.current_dir(self.sandbox.work(""));
        command.env("HOME", self.sandbox.path("home")).env("XDG_CACHE_HOME", self.sandbox.path("cache"));
        for name in ["LD_PRELOAD", "HEAPTALLY_CONFIG", "GITHUB_STEP_SUMMARY"] {
            command.env_remove(name);
        }
        outcome(&mut command)
    }

    /// Calls the command, which fails and says that of a file.
    #[track_caller]
    fn refuses(&self, code: i32, file: &str, words: &[&str]) -> Outcome {
        let outcome = self.call(&[&[HEAPTALLY], words].concat());
        let why = if self.kind == "full" { "No space left on device" } else { "Read-only file system" };
        outcome.expect(code).says(&[why, file]);
        let left = fs::read_to_string(self.sandbox.work("left")).unwrap();
        assert!(!left.contains(".heaptally-"), "a part of a file is left: {left}");
        outcome
    }
}

#[test]
fn what_cannot_be_written_leaves_what_is_there() {
    for kind in ["full", "read-only"] {
        let Some(disk) = Disk::new(kind) else { return };
        let (old, more) = ("./old/main.pb.gz", "more.pb.gz");
        disk.refuses(125, "`disk/new.pb.gz`", &["run", "-o", "disk/new.pb.gz", "--", "true"]);
        disk.refuses(
            125,
            "`disk/status`",
            &["run", "--json-status", "disk/status", "-o", "/dev/null", "true"],
        );
        disk.refuses(4, "`disk/main.pb.gz`", &["merge", old, more, "-o", "disk/main.pb.gz"]);
        disk.refuses(4, "`disk/limits.toml`", &["limits", "update", more, "--limits", "disk/limits.toml"]);
        disk.refuses(4, "`disk/limits2.toml`", &["limits", "update", more, "--limits", "disk/limits2.toml"]);
        // What it compares with stays good.
        let both = ["check", "--baseline", "main", "--save-baseline", "main", "--", "true"];
        disk.refuses(4, "main.pb.gz", &both);
    }
}

#[test]
fn a_check_answers_although_a_file_cannot_be_written() {
    for kind in ["full", "read-only"] {
        let Some(disk) = Disk::new(kind) else { return };
        let words = ["check", "more.pb.gz", "--baseline", "./old/main.pb.gz"];
        let asked =
            ["--report", "disk/answer.txt", "--write", "sarif=disk/answer.sarif", "--write", "json=a.json"];
        let told = disk.refuses(4, "`disk/answer.txt`", &[&words[..], &asked].concat());
        assert!(told.output.starts_with("FAILED: "), "{told:#?}");
        for file in ["`disk/answer.txt`", "`disk/answer.sarif`"] {
            assert_eq!(told.errors.matches(&format!("cannot write {file}")).count(), 1, "{told:#?}");
        }
        let json = fs::read_to_string(disk.sandbox.work("a.json")).unwrap();
        assert!(json.contains("\"outcome\":\"regression\""), "{json}");
    }
}
