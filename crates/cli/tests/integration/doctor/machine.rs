//! What is said of the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::Diagnosis;
use crate::sandbox::{HEAPTALLY, Sandbox};

/// The command under a limit of the shell's.
fn limited(sandbox: &Sandbox, limit: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" doctor --json"), HEAPTALLY]);
    command.current_dir(sandbox.work(""));
    command.env("HOME", sandbox.path("home")).env("XDG_CACHE_HOME", sandbox.path("cache"));
    for name in ["LD_PRELOAD", "HEAPTALLY_PRELOAD", "TMPDIR"] {
        command.env_remove(name);
    }
    command
}

#[test]
fn this_machine_can_record() {
    let sandbox = Sandbox::new();
    let diagnosis = Diagnosis::by(&mut sandbox.command(["doctor", "--json"]));
    diagnosis.recordable(true);
    assert!(diagnosis.json["program"].is_null(), "{diagnosis:#?}");
    let folder = sandbox.cache();
    diagnosis
        .has("architecture", "ok", &["x86_64"])
        .has("kernel", "ok", &["Linux "])
        .has("memfd", "ok", &[])
        .has("wipe_on_fork", "ok", &[])
        .has("segment_path", "ok", &[])
        .has("ptrace", "ok", &["not needed"])
        .has("glibc", "ok", &["2.31"])
        .has("page_size", "ok", &["4 KiB"])
        .has("ld_preload", "ok", &["not set"])
        .has("ld_audit", "ok", &["not set"])
        .has("cache_folder", "ok", &[&format!("`{}`", folder.display())])
        // As many as the demonstration makes: none was missed.
        .has("recording", "ok", &["1,500 allocations", "all stacks complete"]);
    for (check, level) in [("populate_write", ["ok", "note"]), ("demanglers", ["ok", "note"])] {
        let found = diagnosis.findings().into_iter().find(|found| found["check"] == check).unwrap().clone();
        assert!(level.contains(&found["level"].as_str().unwrap()), "{found}");
    }
    diagnosis.findings().iter().for_each(|found| {
        assert_ne!(found["level"], "problem", "{found}");
    });
    assert_eq!(diagnosis.outcome.errors, "");
}

#[test]
fn nothing_is_left_behind() {
    let sandbox = Sandbox::new();
    Diagnosis::of(&sandbox, "/bin/true");
    assert_eq!(fs::read_dir(sandbox.work("")).unwrap().count(), 0);
}

#[test]
fn another_library_in_place_of_the_recorder_is_found_out() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["doctor", "--json"]);
    // A library that loads and records nothing.
    let library = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"];
    let library = library.into_iter().find(|path| fs::exists(path).unwrap()).unwrap();
    let diagnosis = Diagnosis::by(command.env("HEAPTALLY_PRELOAD", library));
    diagnosis.recordable(false);
    diagnosis.has("cache_folder", "note", &["HEAPTALLY_PRELOAD"]).has(
        "recording",
        "problem",
        &["was not loaded"],
    );

    let mut command = sandbox.command(["doctor", "--json"]);
    let diagnosis = Diagnosis::by(command.env("HEAPTALLY_PRELOAD", "/nowhere/lib.so"));
    diagnosis.recordable(false);
    diagnosis.has("cache_folder", "problem", &["`/nowhere/lib.so`"]).lacks("recording");
}

#[test]
fn the_folder_that_is_used_is_said() {
    let sandbox = Sandbox::new();
    let cache = sandbox.path("cache");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let home = sandbox.path("home/.cache/heaptally");
    let diagnosis = Diagnosis::by(&mut sandbox.command(["doctor", "--json"]));
    diagnosis.has("cache_folder", "ok", &[&format!("`{}`", home.display())]);
}

#[test]
fn limits_are_said() {
    let sandbox = Sandbox::new();
    Diagnosis::by(&mut limited(&sandbox, "-v 8388608")).has(
        "address_space_limit",
        "note",
        &["8 GiB", "512 MiB"],
    );
    Diagnosis::by(&mut limited(&sandbox, "-v 2097152")).has(
        "address_space_limit",
        "warning",
        &["2 GiB", "128 MiB"],
    );
    // The segment cannot be made: this is tried, not concluded.
    Diagnosis::by(&mut limited(&sandbox, "-f 100000"))
        .recordable(false)
        .has("file_size_limit", "note", &["ulimit -f unlimited"])
        .has("recording", "problem", &["cannot make the segment"]);
}

#[test]
fn variables_of_the_loader_are_said() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["doctor", "--json"]);
    let diagnosis =
        Diagnosis::by(command.env("LD_PRELOAD", "/nowhere/a\u{1b}.so").env("LD_AUDIT", "/nowhere/b.so"));
    diagnosis.has("ld_preload", "note", &["`/nowhere/a\\u{1b}.so`", "unset LD_PRELOAD"]).has(
        "ld_audit",
        "warning",
        &["`/nowhere/b.so`", "unset LD_AUDIT"],
    );
}
