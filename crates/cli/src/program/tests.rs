//! Where a program is found, and what is behind a script.

use std::ffi::OsString;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// Folders with empty files of these modes in them, and the PATH of them all.
fn folders(files: &[(&str, &str, u32)]) -> (TempDir, OsString) {
    let scratch = tempfile::tempdir().unwrap();
    let mut folders: Vec<PathBuf> = Vec::new();
    for (folder, name, mode) in files {
        let folder = scratch.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), "").unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(*mode)).unwrap();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let path = env::join_paths(&folders).unwrap();
    (scratch, path)
}

fn found(name: impl AsRef<OsStr>, path: &OsStr) -> Result<PathBuf, u8> {
    find_in(name.as_ref(), path).map_err(|failure| failure.code)
}

#[test]
fn the_first_folder_of_the_path_wins() {
    let (scratch, path) = folders(&[("a", "other", 0o755), ("b", "tool", 0o755), ("c", "tool", 0o755)]);
    assert_eq!(found("tool", &path), Ok(scratch.path().join("b/tool")));
    assert_eq!(found("nothing", &path), Err(NOT_FOUND));
}

#[test]
fn what_cannot_be_executed_is_passed_over() {
    let (scratch, path) = folders(&[("a", "tool", 0o644), ("b", "tool", 0o755), ("c", "plain", 0o644)]);
    assert_eq!(found("tool", &path), Ok(scratch.path().join("b/tool")));
    // Nothing else has the name: it is found, and refused as what it is.
    let plain = found("plain", &path).unwrap();
    assert_eq!(executable(&plain).unwrap_err().code, NOT_EXECUTABLE);
}

#[test]
fn folders_of_the_name_are_passed_over() {
    let (scratch, path) = folders(&[("a/tool", "inner", 0o755), ("b", "tool", 0o755)]);
    let mut with_outer = scratch.path().join("a").into_os_string();
    with_outer.push(":");
    with_outer.push(&path);
    assert_eq!(found("tool", &with_outer), Ok(scratch.path().join("b/tool")));
}

#[test]
fn an_empty_folder_is_the_working_one() {
    // Tests run in the package's folder.
    let path = OsStr::new("/nowhere::/nowhere");
    let here = found("Cargo.toml", path).unwrap();
    assert_eq!(here, Path::new("./Cargo.toml"));
}

#[test]
fn a_name_with_a_slash_is_not_searched() {
    let (scratch, path) = folders(&[("a", "tool", 0o755)]);
    assert_eq!(found("./tool", &path), Err(NOT_FOUND));
    let itself = scratch.path().join("a/tool");
    assert_eq!(found(&itself, OsStr::new("")), Ok(itself.clone()));
    // Another failure than that it is not there is told as such.
    let below = found(itself.join("below"), OsStr::new("")).unwrap();
    assert_eq!(executable(&below).unwrap_err().code, NOT_EXECUTABLE);

    let link = scratch.path().join("link");
    symlink("nowhere", &link).unwrap();
    assert_eq!(found(&link, &path), Err(NOT_FOUND));
    assert_eq!(found("", &path), Err(NOT_FOUND));
}

#[test]
fn a_script_leads_to_its_interpreter() {
    let (scratch, path) = folders(&[("a", "tool", 0o755), ("a", "outer", 0o755)]);
    let tool = scratch.path().join("a/tool");
    fs::write(&tool, "#! /bin/sh -e\n").unwrap();
    fs::write(scratch.path().join("a/outer"), format!("#!{}\n", tool.display())).unwrap();
    let outer = found("outer", &path).unwrap();
    assert_eq!(examine(outer.as_os_str()).unwrap().image, Path::new("/bin/sh"));

    // A script that is its own interpreter.
    fs::write(&tool, format!("#!{}\n", tool.display())).unwrap();
    assert_eq!(examine(tool.as_os_str()).unwrap_err().code, NOT_EXECUTABLE);
}
