//! The folder into which the preload library is unpacked.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::sandbox::{Sandbox, entries, outcome};

/// Runs a program that prints its mappings; returns the preload library's path.
#[track_caller]
fn preloaded(sandbox: &Sandbox, cache: &Path) -> PathBuf {
    let mut command = sandbox.command(["run", "--quiet", "-o", "a.pb.gz", "cat", "/proc/self/maps"]);
    let outcome = outcome(command.env("XDG_CACHE_HOME", cache));
    outcome.expect(0).says(&[]);
    let line = outcome.output.lines().find(|line| line.contains("libheaptally_preload")).unwrap();
    PathBuf::from(&line[line.find('/').unwrap()..])
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn is_written_once_and_holds_nothing_else() {
    let sandbox = Sandbox::new();
    let library = preloaded(&sandbox, &sandbox.path("cache"));
    assert_eq!(entries(&sandbox.cache()), [library.as_path()]);
    assert_eq!((mode(&sandbox.cache()), mode(&library) & 0o077), (0o700, 0));
    assert_eq!(entries(&sandbox.path("home")), [] as [PathBuf; 0]);

    let before = fs::metadata(&library).unwrap();
    assert_eq!(preloaded(&sandbox, &sandbox.path("cache")), library);
    let after = fs::metadata(&library).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(entries(&sandbox.cache()), [library.as_path()]);
}

#[test]
fn many_commands_at_a_time_leave_one_whole_library() {
    let sandbox = Sandbox::new();
    let commands: Vec<_> = (0..8)
        .map(|number| {
            let profile = format!("{number}.pb.gz");
            sandbox.command(["run", "--quiet", "-o", &profile, "true"]).spawn().unwrap()
        })
        .collect();
    for mut command in commands {
        assert!(command.wait().unwrap().success());
    }
    assert_eq!(entries(&sandbox.cache()).len(), 1);
}

#[test]
fn a_changed_library_is_replaced() {
    let sandbox = Sandbox::new();
    let library = preloaded(&sandbox, &sandbox.path("cache"));
    let genuine = fs::read(&library).unwrap();
    let mut changed = genuine.clone();
    *changed.last_mut().unwrap() ^= 1;
    for content in [changed.as_slice(), b"", &genuine[..genuine.len() - 1]] {
        fs::write(&library, content).unwrap();
        assert_eq!(preloaded(&sandbox, &sandbox.path("cache")), library);
        assert!(fs::read(&library).unwrap() == genuine, "the changed library was used");
    }
    // One that others may write to could change after it was compared.
    fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).unwrap();
    preloaded(&sandbox, &sandbox.path("cache"));
    assert_eq!(mode(&library) & 0o022, 0);
    assert_eq!(entries(&sandbox.cache()), [library]);
}

#[test]
fn a_link_in_place_of_the_library_is_not_followed() {
    let sandbox = Sandbox::new();
    let library = preloaded(&sandbox, &sandbox.path("cache"));
    let elsewhere = sandbox.path("elsewhere");
    fs::rename(&library, &elsewhere).unwrap();
    symlink(&elsewhere, &library).unwrap();
    assert_eq!(preloaded(&sandbox, &sandbox.path("cache")), library);
    assert!(fs::symlink_metadata(&library).unwrap().is_file());

    // Nor is what the link names written to.
    fs::write(&elsewhere, "another's").unwrap();
    fs::remove_file(&library).unwrap();
    symlink(&elsewhere, &library).unwrap();
    preloaded(&sandbox, &sandbox.path("cache"));
    assert_eq!(fs::read(&elsewhere).unwrap(), b"another's");
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(sandbox.path("cache")).unwrap();
    symlink(&elsewhere, sandbox.cache()).unwrap();
    let library = preloaded(&sandbox, &sandbox.path("cache"));
    assert_eq!(library.parent(), Some(sandbox.path("home/.cache/heaptally").as_path()));
    assert_eq!(entries(&elsewhere), [] as [PathBuf; 0]);
}

#[test]
fn a_cache_that_everyone_may_change_is_not_used() {
    let sandbox = Sandbox::new();
    let cache = sandbox.path("cache");
    fs::create_dir(&cache).unwrap();
    // Anyone could put a folder of theirs in place of ours after it was looked at.
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let library = preloaded(&sandbox, &cache);
    assert_eq!(library.parent(), Some(sandbox.path("home/.cache/heaptally").as_path()));

    // With the sticky bit, as /tmp has it, they cannot.
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o1777)).unwrap();
    let library = preloaded(&sandbox, &cache);
    assert_eq!(library.parent(), Some(sandbox.cache().as_path()));
    assert_eq!(mode(&sandbox.cache()), 0o700);
}

#[test]
fn paths_that_the_loader_would_split_are_not_used() {
    let sandbox = Sandbox::new();
    for name in ["with space", "with:colon", "with$dollar"] {
        let cache = sandbox.path(name);
        let library = preloaded(&sandbox, &cache);
        assert_eq!(library.parent(), Some(sandbox.path("home/.cache/heaptally").as_path()), "{name}");
        assert_eq!(entries(&cache), [] as [PathBuf; 0]);
    }
    // A path that is not absolute counts as none.
    let library = preloaded(&sandbox, Path::new("relative"));
    assert_eq!(library.parent(), Some(sandbox.path("home/.cache/heaptally").as_path()));
    assert_eq!(entries(&sandbox.work("relative")), [] as [PathBuf; 0]);
}

#[test]
fn what_other_versions_left_is_removed_after_a_month() {
    let sandbox = Sandbox::new();
    let library = preloaded(&sandbox, &sandbox.path("cache"));
    let days_ago = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    let put = |name: &str, days| {
        let path = sandbox.cache().join(name);
        fs::write(&path, "").unwrap();
        fs::File::open(&path).unwrap().set_modified(days_ago(days)).unwrap();
        path
    };
    let other = "0123456789abcdef";
    let old = [
        put(&format!("libheaptally_preload-{other}.so"), 31),
        put(&format!("heaptally-demo-{other}"), 31),
        put(&format!(".libheaptally_preload-{other}.so.77-1"), 31),
    ];
    let kept = [
        put(&format!("libheaptally_preload-{}.so", other.replace('0', "1")), 29),
        put("libheaptally_preload-x.so", 31),
        put(&format!("libheaptally_preload-{other}.so.mine"), 31),
        put("notes", 31),
    ];
    // One that is used is as good as new, and nothing is looked for as long as nothing is written.
    fs::File::open(&library).unwrap().set_modified(days_ago(31)).unwrap();
    preloaded(&sandbox, &sandbox.path("cache"));
    assert!(fs::metadata(&library).unwrap().modified().unwrap() > days_ago(1));
    assert!(old.iter().chain(&kept).all(|path| path.exists()));

    sandbox.call(["demo"]).expect(0);
    assert!(old.iter().all(|path| !path.exists()), "{:?}", entries(&sandbox.cache()));
    assert!(kept.iter().chain([&library]).all(|path| path.exists()), "{:?}", entries(&sandbox.cache()));
}
