//! Surroundings in which a program starts: kernels and sandboxes that refuse something, namespaces, limits, folders,
//! programs that do odd things to themselves, and others that start them. It is recorded exactly, or it is said why not.

use std::fs;

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// System calls by their numbers.
const MADVISE_WIPE_ON_FORK: &str = "28:18";
const MADVISE_POPULATE_WRITE: &str = "28:23";
const PROCESS_VM: &str = "310,311";
const MEMFD_CREATE: &str = "319";
const PERF_EVENT_OPEN: &str = "298";

/// What is to come of a run of `odd_start`, whose window has 4 allocations and which exits with 5.
enum Expected {
    /// It is recorded, and this is warned of.
    Recorded(&'static [&'static str]),
    /// It is not: exit code 125, and this is said.
    Refused(&'static [&'static str]),
}

use Expected::{Recorded, Refused};

/// `odd_start` and `refuse_call`; `None` where gcc is missing.
fn programs() -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "odd_start.c", "odd_start", &["-O1"]);
    program::build(&scratch, "refuse_call.c", "refuse_call", &["-O1"]);
    Some(scratch)
}

fn check(outcome: &Outcome, expected: &Expected, what: &str) {
    let stderr = &outcome.stderr;
    match expected {
        Recorded(words) => {
            assert_eq!(outcome.code, 5, "{what}; stderr:\n{stderr}");
            let window = outcome.report().window("w");
            assert_eq!((window.calls(), window.calls_with("work")), (4, 4), "{what}: {}", window.text());
            assert_eq!(outcome.report().losses_text(), "", "{what}");
            assert!(words.iter().all(|word| stderr.contains(word)), "{what}: {words:?} in\n{stderr}");
            if words.is_empty() {
                assert!(!stderr.contains("warning: "), "{what}; stderr:\n{stderr}");
            }
        }
        Refused(words) => {
            assert_eq!(outcome.code, 125, "{what}; stderr:\n{stderr}");
            for word in *words {
                assert!(stderr.contains(word), "{what}: nothing says {word:?}; stderr:\n{stderr}");
            }
            assert_eq!(stderr.matches("heaptally: ").count(), 1, "{what}: one message; stderr:\n{stderr}");
        }
    }
}

#[test]
fn system_calls_that_are_refused() {
    let Some(scratch) = programs() else { return };
    for error in ["1", "22", "38"] {
        for (calls, expected) in [
            (MADVISE_WIPE_ON_FORK.to_owned(), Recorded(&["does not wipe pages on fork"])),
            (MADVISE_POPULATE_WRITE.to_owned(), Recorded(&[])),
            (PROCESS_VM.to_owned(), Recorded(&[])),
            (PERF_EVENT_OPEN.to_owned(), Recorded(&[])),
            (
                format!("{MADVISE_POPULATE_WRITE},{PROCESS_VM}"),
                Refused(&[
                    "was not loaded",
                    "neither MADV_POPULATE_WRITE nor process_vm_writev works",
                    "5.14",
                ]),
            ),
            (MEMFD_CREATE.to_owned(), Refused(&["memfd_create", "use --segment-dir DIR"])),
        ] {
            let what = format!("{calls} refused with {error}");
            let outcome = Run::new(&scratch, ["./odd_start"]).behind(["./refuse_call", error, &calls]).run();
            check(&outcome, &expected, &what);
        }
        // The next step that is named helps.
        let outcome = Run::new(&scratch, ["./odd_start"])
            .behind(["./refuse_call", error, MEMFD_CREATE])
            .options(["--segment-dir", "."])
            .run();
        check(&outcome, &Recorded(&[]), "memfd_create refused, with --segment-dir");
    }
}

/// The sandbox is the program's own affair, and only it is in there.
#[test]
fn programs_in_a_sandbox_of_their_own() {
    let Some(scratch) = programs() else { return };
    let calls = format!("{MEMFD_CREATE},{PERF_EVENT_OPEN},{PROCESS_VM}");
    for action in ["kill", "1"] {
        let outcome = Run::new(&scratch, ["./refuse_call", action, &calls, "./odd_start"]).run();
        check(&outcome, &Recorded(&[]), action);
    }
    let outcome = Run::new(&scratch, ["./refuse_call", "kill", "28:23", "./odd_start"]).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("went on to `./odd_start`"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("signal 31 ended it"), "{}", outcome.stderr);
}

#[test]
fn odd_things_that_a_program_does_to_itself() {
    let Some(scratch) = programs() else { return };
    for what in [
        "close-all",
        "no-files",
        "no-file-size",
        "no-stack",
        "undumpable",
        "no-new-privileges",
        "chdir",
        "clear-environment",
        "preload-none",
    ] {
        let outcome = Run::new(&scratch, ["./odd_start", what]).run();
        check(&outcome, &Recorded(&[]), what);
    }
    for what in
        ["close-all", "no-file-size", "undumpable", "no-new-privileges", "clear-environment", "preload-none"]
    {
        let outcome = Run::new(&scratch, ["./odd_start", "exec", what, "./odd_start"]).run();
        check(&outcome, &Recorded(&[]), &format!("{what} before an exec"));
    }
    // The loader cannot open anything: the program does not run without the recorder either.
    let outcome = Run::new(&scratch, ["./odd_start", "exec", "no-files", "./odd_start"]).run();
    check(&outcome, &Refused(&["went on to `./odd_start`", "exited with 127"]), "no files before an exec");
}

/// Those that go on to the program themselves.
#[test]
fn programs_that_start_another_in_their_place() {
    let Some(scratch) = programs() else { return };
    let starters: [&[&str]; 14] = [
        &["env", "-i"],
        &["env", "LD_PRELOAD="],
        &["env", "-u", "LD_PRELOAD"],
        &["env", "LD_LIBRARY_PATH=:/nowhere;."],
        &["nohup"],
        &["nice"],
        &["setsid"],
        &["stdbuf", "-o0"],
        &["setarch", "-R"],
        &["chrt", "-o", "0"],
        &["taskset", "1"],
        &["setpriv", "--no-new-privs"],
        &["sh", "-c", "exec \"$0\""],
        &["bash", "-c", "exec \"$0\""],
    ];
    for starter in starters {
        if tool::have(&starter[..1]) {
            let words = [starter, &["./odd_start"]].concat();
            check(&Run::new(&scratch, &words).run(), &Recorded(&[]), &format!("{words:?}"));
        }
    }
}

/// The executable is then the loader, and what it loads the program: counts are whole, and names are not looked at here.
#[test]
fn the_loader_called_with_a_program() {
    let Some(scratch) = programs() else { return };
    let outcome = Run::new(&scratch, ["/lib64/ld-linux-x86-64.so.2", "./odd_start"]).run();
    assert_eq!((outcome.code, outcome.report().window("w").calls()), (5, 4), "{}", outcome.stderr);
}

/// Those that start it as a child: it is named, and recorded where that was asked for.
#[test]
fn programs_that_start_another_as_a_child() {
    let Some(scratch) = programs() else { return };
    for starter in [
        &["timeout", "20", "./odd_start"][..],
        &["xargs", "-a", "/dev/null", "./odd_start"],
        &["strace", "-f", "-o", "/dev/null", "./odd_start"],
        &["bash", "-c", "time ./odd_start"],
        &["gdb", "-q", "--batch", "-nx", "-ex", "run", "./odd_start"],
    ] {
        if !tool::have(&starter[..1]) {
            continue;
        }
        let counted = Run::new(&scratch, starter).run();
        assert!(counted.stderr.contains("not recorded ("), "{starter:?}; stderr:\n{}", counted.stderr);
        assert!(
            counted.stderr.contains("--follow-children records"),
            "{starter:?}; stderr:\n{}",
            counted.stderr
        );
        let followed = Run::new(&scratch, starter).options(["--follow-children"]).run();
        assert_eq!(followed.code, counted.code, "{starter:?}; stderr:\n{}", followed.stderr);
        let window = followed.report().window("w");
        assert_eq!(window.calls_with("work"), 4, "{starter:?}: {}", window.text());
    }
}

#[test]
fn limits() {
    let Some(scratch) = programs() else { return };
    const SMALL_TABLES: &[&str] = &["the address space is limited (ulimit -v)"];
    for (limit, expected) in [
        ("ulimit -v 2000000", Recorded(SMALL_TABLES)),
        // Room for what is printed, and for no segment.
        ("ulimit -f 64", Refused(&["File too large", "ulimit -f"])),
        ("ulimit -n 8", Recorded(&[])),
        ("ulimit -n 5", Refused(&["Too many open files", "ulimit -n"])),
        ("ulimit -s 128", Recorded(&[])),
        ("ulimit -l 0", Recorded(&[])),
        ("ulimit -c 0", Recorded(&[])),
    ] {
        let outcome =
            Run::new(&scratch, ["./odd_start"]).behind_shell(&format!("{limit}; exec \"$@\"")).run();
        check(&outcome, &expected, limit);
    }
    // Little of it: what could not be counted is said, or the limit is named.
    for kibibytes in [30_000, 60_000, 120_000] {
        let script = format!("ulimit -v {kibibytes}; exec \"$@\"");
        let outcome = Run::new(&scratch, ["./odd_start"]).behind_shell(&script).run();
        assert!(matches!(outcome.code, 5 | 125), "{kibibytes}: {}\n{}", outcome.code, outcome.stderr);
        assert!(outcome.stderr.contains("ulimit -v"), "{kibibytes}:\n{}", outcome.stderr);
    }
}

#[test]
fn folders_for_the_library() {
    let Some(scratch) = programs() else { return };
    fs::create_dir(scratch.path("home")).expect("a folder");
    let path = |name: &str| scratch.path(name).to_string_lossy().into_owned();
    for (cache, home, folder) in [
        (path("new/cache"), path("home"), String::new()),
        ("relative".to_owned(), path("home"), String::new()),
        (path("with space"), path("home"), String::new()),
        ("/proc/nowhere".to_owned(), path("home"), path("absent")),
        (String::new(), String::new(), path("home")),
        (String::new(), "/dev/null".to_owned(), path("absent")),
    ] {
        let run = Run::new(&scratch, ["./odd_start"]).environment("XDG_CACHE_HOME", &cache);
        let outcome = run.environment("HOME", &home).environment("TMPDIR", &folder).run();
        check(&outcome, &Recorded(&[]), &format!("{cache:?}, {home:?}, {folder:?}"));
        assert!(!scratch.path("absent").exists(), "a folder for temporary files was made");
    }
}

/// A file of the cache that someone changed is not used.
#[test]
fn a_library_that_was_changed() {
    let Some(scratch) = programs() else { return };
    let run = || Run::new(&scratch, ["./odd_start"]).environment("XDG_CACHE_HOME", scratch.path("cache"));
    check(&run().run(), &Recorded(&[]), "unpacked");
    let library = fs::read_dir(scratch.path("cache/heaptally"))
        .expect("the cache")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.to_string_lossy().contains("libheaptally_preload"))
        .expect("the library");
    let whole = fs::read(&library).expect("the library");
    for change in [vec![], whole[..whole.len() / 2].to_vec(), {
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        changed
    }] {
        fs::write(&library, change).expect("written");
        check(&run().run(), &Recorded(&[]), "changed");
        assert!(fs::read(&library).expect("the library") == whole, "the changed library stays");
    }
}

#[test]
fn namespaces_and_proc() {
    let Some(scratch) = programs() else { return };
    if !tool::is_root() || !tool::have(&["unshare", "mount", "umount"]) {
        println!("skipped: only root can make these namespaces");
        return;
    }
    let no_proc: &[&str] = &["/proc/self/environ", "mount /proc"];
    for (words, expected) in [
        (&["unshare", "--mount", "sh", "-c", "umount /proc && exec \"$@\"", "sh"][..], Refused(no_proc)),
        (
            &["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"],
            Refused(no_proc),
        ),
        (
            &["unshare", "--mount", "sh", "-c", "mount -o remount,hidepid=2 /proc && exec \"$@\"", "sh"],
            Recorded(&[]),
        ),
        (
            &["unshare", "--pid", "--fork"],
            Refused(&["by its path `/proc/1/fd/", "--mount-proc", "--segment-dir"]),
        ),
        (&["unshare", "--pid", "--fork", "--mount-proc"], Recorded(&[])),
        (&["unshare", "-Ur"], Recorded(&[])),
    ] {
        let outcome = Run::new(&scratch, ["./odd_start"]).behind(words.iter().copied()).run();
        check(&outcome, &expected, &format!("{words:?}"));
    }
    let outcome = Run::new(&scratch, ["./odd_start"])
        .behind(["unshare", "--pid", "--fork"])
        .options(["--segment-dir", "."])
        .run();
    check(&outcome, &Recorded(&[]), "another pid namespace, with --segment-dir");
    // Behind the command: what the program went on to is out of reach, and named.
    for words in [&["unshare", "-Ur", "./odd_start"][..], &["chroot", ".", "/odd_start"]] {
        let outcome = Run::new(&scratch, words).run();
        let is_gone = outcome.code == 125 && outcome.stderr.contains("went on to `");
        // A root folder without a loader is an exec that fails: chroot's own exit code.
        assert!(is_gone || outcome.code == 127, "{words:?}: {}\n{}", outcome.code, outcome.stderr);
    }
}
