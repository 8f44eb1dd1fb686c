//! Looks at an archive: what is in it, which glibc its programs need, and whether it records.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{COMPLETIONS, DOCUMENTS, GLIBC, THIRD_PARTY, describe, name, succeed};

/// Libraries of glibc 2.31, which every system has that can record at all.
const OF_GLIBC: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
];

/// Checks an archive, perhaps in a system of its own below a folder.
pub(super) fn check(archive: &Path, system: Option<&Path>) -> Result<(), String> {
    let scratch = system.unwrap_or(&env::temp_dir()).join(format!("heaptally-dist-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| describe("create", &scratch, &error))?;
    let checked = check_in(archive, &scratch, system);
    let removed = fs::remove_dir_all(&scratch).map_err(|error| describe("remove", &scratch, &error));
    checked.and(removed)
}

fn check_in(archive: &Path, scratch: &Path, system: Option<&Path>) -> Result<(), String> {
    succeed(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(scratch))?;
    let folder = scratch.join(name());
    shape(&folder)?;

    let inside = Inside { scratch, system };
    let demo = inside.call(&["demo"])?;
    // The windows of the demonstration, exactly, with a call site that has its line.
    for words in [
        "12.00 allocs/iter",
        "3.00 allocs/iter",
        "heaptally_demo::insert  ",
        "main.rs:",
        "all 1,500 complete",
    ] {
        if !demo.contains(words) {
            return Err(format!("`heaptally demo` does not show {words:?}:\n{demo}"));
        }
    }
    inside.call(&["run", "--strict", "--quiet", "-o", "ls.pb.gz", "--", "ls", "-l", "/"])?;
    let report = inside.call(&["report", "--strict", "ls.pb.gz"])?;
    if !report.contains("window \"process\"") {
        return Err(format!("the report of `ls` has no window:\n{report}"));
    }

    let mut programs = vec![folder.join("bin/heaptally"), folder.join("bin/cargo-heaptally")];
    // What it carries, as it unpacked it.
    programs.extend(list(&scratch.join("cache/heaptally"))?);
    if programs.len() != 4 {
        return Err(format!(
            "there are two programs, and the command carries a library and a program, not {programs:?}"
        ));
    }
    let mut newest = (0, 0);
    for program in &programs {
        newest = newest.max(needs(program)?);
    }
    println!(
        "dist: {} KiB, needs glibc {}.{}, records{}",
        fs::metadata(archive).map_or(0, |about| about.len() >> 10),
        newest.0,
        newest.1,
        system.map(|system| format!(" below {}", system.display())).unwrap_or_default()
    );
    Ok(())
}

/// Whether everything is in it.
fn shape(folder: &Path) -> Result<(), String> {
    let wanted = DOCUMENTS.iter().map(|(_, to)| *to).chain(COMPLETIONS.iter().map(|(_, to)| *to));
    for path in wanted.chain([
        THIRD_PARTY,
        "bin/heaptally",
        "bin/cargo-heaptally",
        "share/man/man1/heaptally.1",
        "share/man/man1/heaptally-run.1",
    ]) {
        let about =
            fs::metadata(folder.join(path)).map_err(|error| describe("find", Path::new(path), &error))?;
        if about.len() == 0 {
            return Err(format!("{path} is empty"));
        }
    }
    Ok(())
}

/// The newest glibc whose symbols a file needs, which must not be newer than ours; and no other library.
fn needs(file: &Path) -> Result<(u32, u32), String> {
    let text = |option: &str| -> Result<String, String> {
        let printed = succeed(Command::new("objdump").arg(option).arg(file))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    };
    let libraries = needed(&text("-p")?);
    if let Some(other) = libraries.iter().find(|library| !OF_GLIBC.contains(&library.as_str())) {
        return Err(format!("{} needs {other}, which is not of glibc", file.display()));
    }
    let versions = versions(&text("-T")?);
    let newest = versions.iter().max().copied().unwrap_or_default();
    if newest > GLIBC {
        return Err(format!("{} needs glibc {}.{}", file.display(), newest.0, newest.1));
    }
    if newest < (2, 2) {
        return Err(format!("objdump names no version of glibc's symbols in {}", file.display()));
    }
    Ok(newest)
}

/// The libraries in the output of `objdump -p`.
fn needed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.trim().strip_prefix("NEEDED")?.trim().to_owned())).collect()
}

/// The versions of glibc in the output of `objdump -T`, the patch level left out.
fn versions(text: &str) -> BTreeSet<(u32, u32)> {
    text.split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|at: char| !at.is_ascii_digit() && at != '.').unwrap_or(rest.len());
            let mut numbers = rest.get(..end)?.split('.');
            Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
        })
        .collect()
}

/// Where the unpacked command is called.
struct Inside<'a> {
    scratch: &'a Path,
    system: Option<&'a Path>,
}

impl Inside<'_> {
    fn call(&self, words: &[&str]) -> Result<String, String> {
        // As the command sees its folder.
        let folder = match self.system {
            Some(system) => Path::new("/").join(self.scratch.strip_prefix(system).unwrap_or(self.scratch)),
            None => self.scratch.to_owned(),
        };
        let script = "cd \"$1\" && shift && exec \"$@\"";
        let mut command = match self.system {
            Some(system) => {
                let mut command = Command::new("chroot");
                command.arg(system).args(["/bin/sh", "-c", script]);
                command
            }
            None => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", script]);
                command
            }
        };
        command.arg("sh").arg(&folder).arg(folder.join(name()).join("bin/heaptally"));
        // Whatever is configured here is not there.
        command.arg("--no-config").args(words).env("XDG_CACHE_HOME", folder.join("cache"));
        Ok(String::from_utf8_lossy(&succeed(&mut command)?).into_owned())
    }
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| describe("list", folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let text = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.9)   x
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34)  dlsym
0000000000000000  w   DF *UND*\t0000000000000000  Base         __gmon_start__
";
        let versions = versions(text);
        assert_eq!(versions.iter().max(), Some(&(2, 34)));
        assert!(versions.contains(&(2, 2)) && versions.contains(&(2, 9)));
    }

    #[test]
    fn needed_libraries_are_found() {
        assert_eq!(
            needed("  NEEDED               libm.so.6\n  SONAME x\n  NEEDED  libgcc_s.so.1\n"),
            ["libm.so.6", "libgcc_s.so.1"]
        );
    }

    #[test]
    fn what_is_built_for_this_machine_shows_which_glibc_it_needs() {
        // Rust's own test program is linked here: it needs some glibc, and perhaps libgcc.
        let program = env::current_exe().unwrap();
        match needs(&program) {
            Ok(newest) => assert!(newest <= GLIBC),
            Err(why) => assert!(why.contains("needs"), "{why}"),
        }
    }
}
