//! The program to record: found as `execvp` finds it, and looked at before it is started.
//!
//! What cannot be recorded is refused here, by name and with what to do, and not found out by an empty profile.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use crate::convert::INCOMPLETE;
use crate::elf::{Elf, Linkage};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::message::quote;

#[cfg(test)]
mod tests;

/// Scripts whose interpreter is a script, and so on, as the kernel follows them.
pub(crate) const SCRIPT_LEVELS: usize = 5;
/// The most that the kernel reads of a script's first line, in bytes.
pub(crate) const SCRIPT_LINE: usize = 256;

/// A program that can be started.
#[derive(Debug)]
pub(crate) struct Program {
    /// The executable that the kernel will load, behind scripts.
    pub(crate) image: PathBuf,
    /// It, opened: it may be replaced while it runs.
    pub(crate) file: Option<File>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// Finds a program and looks whether it can be recorded.
pub(crate) fn examine(name: &OsStr) -> Result<Program, Failure> {
    let mut path = find(name)?;
    for _ in 0..SCRIPT_LEVELS {
        executable(&path)?;
        let mut head = Vec::new();
        let opened = File::open(&path).and_then(|file| {
            let mut part = file.try_clone()?.take(SCRIPT_LINE as u64);
            part.read_to_end(&mut head).map(|_| file)
        });
        // The kernel gives no privileges to scripts.
        let Some(line) = head.strip_prefix(b"#!") else {
            refuse_privileges(&path)?;
            return Ok(match opened {
                Ok(file) => {
                    // What its allocators are is said of each object that was loaded, behind the run.
                    refuse_elf(&path, &file, &head)?;
                    Program { warnings: Vec::new(), image: path, file: Some(file) }
                }
                Err(error) => Program {
                    warnings: vec![format!(
                        "{} cannot be read ({error}), so it was not looked at before its start",
                        quote(&path)
                    )],
                    image: path,
                    file: None,
                },
            });
        };
        let interpreter = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = interpreter.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        let next = PathBuf::from(OsString::from_vec(interpreter.to_vec()));
        if !next.exists() {
            return Err(Failure::new(
                NOT_FOUND,
                format!(
                    "the interpreter {} of {} is not there\nmend the script's first line",
                    quote(&next),
                    quote(&path)
                ),
            ));
        }
        path = next;
    }
    Err(Failure::new(
        NOT_EXECUTABLE,
        format!("{} is a script of a script of a script …\nname the interpreter itself", quote(name)),
    ))
}

pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    find_in(name, &env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into()))
}

fn find_in(name: &OsStr, folders: &OsStr) -> Result<PathBuf, Failure> {
    let not_found = || {
        let hint = "give its path, or put its folder into PATH";
        Failure::new(NOT_FOUND, format!("the program {} was not found\n{hint}", quote(name)))
    };
    if name.as_bytes().contains(&b'/') {
        return match fs::metadata(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(not_found()),
            // What else is wrong with it, `executable` says.
            _ => Ok(PathBuf::from(name)),
        };
    }
    let mut found_otherwise = None;
    for folder in env::split_paths(folders) {
        let path = if folder.as_os_str().is_empty() { Path::new(".").join(name) } else { folder.join(name) };
        if path.is_file() {
            if executable(&path).is_ok() {
                return Ok(path);
            }
            found_otherwise.get_or_insert(path);
        }
    }
    found_otherwise.filter(|_| !name.is_empty()).ok_or_else(not_found)
}

pub(crate) fn executable(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{} cannot be executed: {why}\nname a program", quote(path)),
        ))
    };
    match fs::metadata(path) {
        Err(error) => refuse(&error.to_string()),
        Ok(found) if found.is_dir() => refuse("it is a folder"),
        Ok(found) if !found.is_file() => refuse("it is no regular file"),
        Ok(_) => match rustix::fs::access(path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(&error.to_string()),
        },
    }
}

/// A program that gains privileges drops LD_PRELOAD.
pub(crate) fn refuse_privileges(path: &Path) -> Result<(), Failure> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let mode = found.permissions().mode();
    let is_setuid = mode & 0o4000 != 0 && found.uid() != geteuid().as_raw();
    let is_setgid = mode & 0o2010 == 0o2010 && found.gid() != getegid().as_raw();
    let mut capabilities = [0_u8; 64];
    let has_capabilities = !geteuid().is_root()
        && rustix::fs::getxattr(path, "security.capability", &mut capabilities).is_ok_and(|len| len > 0);
    let what = if is_setuid {
        "setuid"
    } else if is_setgid {
        "setgid"
    } else if has_capabilities {
        "given capabilities"
    } else {
        return Ok(());
    };
    Err(Failure::recorder(format!(
        "{} is {what}, and the loader ignores LD_PRELOAD (AT_SECURE) in such a program\n\
         run it as the user that it becomes, or record a copy without that bit",
        quote(path)
    )))
}

/// What the user should know of a program that can be recorded.
pub(crate) fn refuse_elf(path: &Path, file: &File, head: &[u8]) -> Result<Vec<String>, Failure> {
    let Some(elf) = Elf::read(file, head) else { return Ok(Vec::new()) };
    let refuse = |message: String| Err(Failure::recorder(format!("{} {message}", quote(path))));
    match &elf.linkage {
        Linkage::Foreign => {
            return refuse(
                "is not a program for x86-64\nheaptally records 64-bit x86 programs only, for now".to_owned(),
            );
        }
        Linkage::Damaged => {
            return refuse("is damaged: its ELF headers make no sense\nbuild it again".to_owned());
        }
        Linkage::Static(kind) => {
            return refuse(format!(
                "is statically linked ({kind}), so no library can be preloaded\n\
                 link it dynamically: leave out -static, -static-pie, -static-executable or \
                 -C target-feature=+crt-static"
            ));
        }
        Linkage::Dynamic(loader) if loader.to_string_lossy().contains("ld-musl") => {
            return refuse(
                "is linked with musl, whose programs cannot be recorded yet\nbuild it for glibc (…-linux-gnu)"
                    .to_owned(),
            );
        }
        Linkage::Dynamic(loader) if !loader.exists() => {
            return Err(Failure::new(
                NOT_FOUND,
                format!("the loader {} of {} is not there\ninstall it", quote(loader), quote(path)),
            ));
        }
        Linkage::Dynamic(_) | Linkage::Loader => {}
    }
    if let Some(sanitizer) = elf.sanitizer {
        return refuse(format!(
            "is built with {sanitizer}, which brings its own malloc and must come first\nbuild it without -fsanitize"
        ));
    }
    Ok(elf.allocators.iter().map(|names| format!("{INCOMPLETE}{} {}", quote(path), names.text())).collect())
}
