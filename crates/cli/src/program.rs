//! The program to record: found as `execvp` finds it, and looked at before it is started.
//!
//! What cannot be recorded is refused here, by name and with what to do, and not found out by an empty profile.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::process::{getegid, geteuid};

use crate::convert::INCOMPLETE;
use crate::doctor;
use crate::doctor::finding::Finding;
use crate::doctor::image::Image;
use crate::doctor::rust_allocator::Source;
use crate::elf::{Elf, Linkage};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::message::quote;
use crate::script::{self, HEAD_BYTES, Kind, SHELL};

#[cfg(test)]
mod tests;

/// Scripts whose interpreter is a script, and so on, as the kernel follows them.
pub(crate) const SCRIPT_LEVELS: usize = 5;

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
    let mut script: Option<PathBuf> = None;
    for _ in 0..SCRIPT_LEVELS {
        executable_of(&path, script.as_deref())?;
        let mut head = Vec::new();
        let opened = File::open(&path).and_then(|file| {
            let mut part = file.try_clone()?.take(HEAD_BYTES as u64);
            part.read_to_end(&mut head).map(|_| file)
        });
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                refuse_privileges(&path)?;
                return Err(unreadable(&path, &error));
            }
        };
        let next = match script::kind(&head) {
            // The kernel gives no privileges to scripts.
            Kind::Elf => {
                refuse_privileges(&path)?;
                return Ok(Program {
                    warnings: refuse_elf(&path, &file, &head)?.iter().map(Finding::in_a_line).collect(),
                    image: path,
                    file: Some(file),
                });
            }
            Kind::Script(interpreter) => interpreter,
            Kind::Text => SHELL.into(),
            Kind::Other => return Err(no_program(&path)),
        };
        if !next.exists() {
            return Err(script::refuse_missing(&next, &path));
        }
        script = Some(std::mem::replace(&mut path, next));
    }
    Err(Failure::new(
        NOT_EXECUTABLE,
        format!("{} is a script of a script of a script …\nname the interpreter itself", quote(name)),
    ))
}

/// The kernel lets such a program be executed, but marks it as one that nobody may look into: not even its own recorder.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::recorder(format!(
        "{} cannot be read ({}), and the kernel shuts /proc of such a program to the recorder\n\
         make it readable (chmod +r), or record a copy of it",
        quote(path),
        words_of(error)
    ))
}

/// Says that a file is neither program nor script.
pub(crate) fn no_program(path: &Path) -> Failure {
    Failure::new(
        NOT_EXECUTABLE,
        format!("{} is no program: neither an ELF file nor a script\nname a program", quote(path)),
    )
}

/// An error of the system without its number.
pub(crate) fn words_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    find_in(name, &env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into()))
}

fn find_in(name: &OsStr, folders: &OsStr) -> Result<PathBuf, Failure> {
    let not_found = || {
        let hint = if !name.is_empty() && !name.as_bytes().contains(&b'/') && Path::new(name).is_file() {
            let here = quote(Path::new(".").join(name));
            format!(
                "a name without a slash is searched in PATH only: give the path of the one in this folder, {here}"
            )
        } else {
            "give its path, or put its folder into PATH".to_owned()
        };
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
    executable_of(path, None)
}

/// As [`executable`], of the interpreter of a script.
pub(crate) fn executable_of(path: &Path, script: Option<&Path>) -> Result<(), Failure> {
    let refuse = |why: &str, advice: &str| {
        let role =
            script.map_or_else(String::new, |script| format!("the interpreter of {}, ", quote(script)));
        let advice = if script.is_some() { "mend the script's first line" } else { advice };
        Err(Failure::new(
            NOT_EXECUTABLE,
            format!(
                "{role}{}{} cannot be executed: {why}\n{advice}",
                quote(path),
                if role.is_empty() { "" } else { "," }
            ),
        ))
    };
    match fs::metadata(path) {
        Err(error) => refuse(&words_of(&error), "name a program"),
        Ok(found) if found.is_dir() => refuse("it is a folder", "name a program in it"),
        Ok(found) if !found.is_file() => refuse("it is no regular file", "name a program"),
        Ok(found) => match rustix::fs::access(path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(_) if found.permissions().mode() & 0o111 == 0 => refuse(
                "its mode does not allow it",
                "make it executable (chmod +x), or name its interpreter before it",
            ),
            Err(_) if is_on_noexec(path) => refuse(
                "it lies on a disk that is mounted noexec",
                "copy it to another disk, or mount that one with exec",
            ),
            Err(error) => refuse(&words_of(&error.into()), "see who may execute it (ls -l)"),
        },
    }
}

fn is_on_noexec(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|volume| volume.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// A program that gains privileges drops LD_PRELOAD.
pub(crate) fn refuse_privileges(path: &Path) -> Result<(), Failure> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let mode = found.permissions().mode();
    let is_setuid = mode & 0o4000 != 0 && found.uid() != geteuid().as_raw();
    let is_setgid = mode & 0o2010 == 0o2010 && found.gid() != getegid().as_raw();
    let has_capabilities = !geteuid().is_root() && has_capabilities(path);
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
         become that user first (sudo heaptally run …), or record a copy of the program without that bit",
        quote(path)
    )))
}

/// Whether a file gives capabilities to who executes it.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let mut capabilities = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut capabilities).is_ok_and(|len| len > 0)
}

/// What the user should know of a program that can be recorded.
pub(crate) fn refuse_elf(path: &Path, file: &File, head: &[u8]) -> Result<Vec<Finding>, Failure> {
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
            let what = format!("is statically linked ({kind}), so no library can be preloaded");
            return refuse(match &elf.managed_heap {
                Some(runtime) => format!("{what}\nit is written in {}: {}", runtime.name(), runtime.advice()),
                None => format!(
                    "{what}\nlink it dynamically: leave out -static, -static-pie, -static-executable or \
                     -C target-feature=+crt-static"
                ),
            });
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
    Ok(warnings_of(path, &elf))
}

/// What is not seen of a program that can be recorded.
fn warnings_of(path: &Path, elf: &Elf) -> Vec<Finding> {
    let mut warnings: Vec<Finding> = Vec::new();
    let rust = if elf.has_rust_allocator { rust_allocator(path) } else { None };
    let of_rust = match rust {
        Some(Source::Allocator(allocator)) => Some(allocator),
        _ => None,
    };
    if let Some(Source::Allocator(_) | Source::Elsewhere) = rust {
        let whose = of_rust.map_or_else(String::new, |allocator| format!(" ({allocator})"));
        let what = if whose.is_empty() { "none of its calls leads to malloc" } else { "it by-passes malloc" };
        warnings.push(Finding::warning(
            "rust_allocator",
            format!("{INCOMPLETE}{} has a #[global_allocator] of its own{whose}: {what}", quote(path)),
            "build it without that attribute, for instance behind a feature; what else allocates is seen",
        ));
    }
    for allocator in elf.allocators.iter().filter(|allocator| Some(**allocator) != of_rust) {
        warnings.push(Finding::warning(
            "other_allocator",
            format!("{INCOMPLETE}{} calls {allocator} by names of its own, which by-pass malloc", quote(path)),
            "build it without that allocator (Rust: without its #[global_allocator]); what else allocates is seen",
        ));
    }
    warnings.extend(elf.managed_heap.map(|runtime| runtime.finding(path)));
    warnings
}

fn rust_allocator(path: &Path) -> Option<Source> {
    let image = Image::open(path).ok()?;
    doctor::rust_allocator::source(&image.elf()?)
}

/// The warnings of an image that the program went on to.
pub(crate) fn warnings_of_image(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut head = Vec::new();
    let read = file.try_clone().and_then(|file| file.take(HEAD_BYTES as u64).read_to_end(&mut head));
    match read.ok().and_then(|_| Elf::read(&file, &head)) {
        Some(elf) => warnings_of(path, &elf).iter().map(Finding::in_a_line).collect(),
        None => Vec::new(),
    }
}
