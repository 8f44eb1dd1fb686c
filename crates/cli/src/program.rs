//! The program to record: found as `execvp` finds it, and looked at before it is started.
//!
//! What cannot be recorded is refused here, by name and with what to do, and not found out by an empty profile.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::process::{getegid, geteuid};

use heaptally_profile::model::INCOMPLETE;

use crate::doctor;
use crate::doctor::finding::Finding;
use crate::doctor::image::Image;
use crate::doctor::rust_allocator::Source;
use crate::elf::{Elf, Linkage, sanitizer_of_library};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::message::quote;
use crate::script::{self, Kind, SHELL};

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
    pub(crate) file: File,
    /// What it says.
    pub(crate) elf: Option<Elf>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// Finds a program and looks whether it can be recorded.
pub(crate) fn examine(name: &OsStr) -> Result<Program, Failure> {
    let mut path = find(name)?;
    let mut script: Option<PathBuf> = None;
    for _ in 0..SCRIPT_LEVELS {
        executable_of(&path, script.as_deref())?;
        let (file, head) = match script::open(&path) {
            Ok(opened) => opened,
            Err(error) => {
                refuse_privileges(&path)?;
                return Err(unreadable(&path, &error));
            }
        };
        let next = match script::kind(&head) {
            // The kernel gives no privileges to scripts.
            Kind::Elf => {
                refuse_privileges(&path)?;
                let elf = refuse_elf(&path, &file, &head)?;
                let warnings = elf.as_ref().map_or_else(Vec::new, |elf| warnings_of(&path, elf));
                return Ok(Program {
                    warnings: warnings.iter().map(Finding::in_a_line).collect(),
                    image: path,
                    file,
                    elf,
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

/// The program that the kernel loads for a script which names its interpreter; of another file, itself.
pub(crate) fn behind_scripts(mut path: PathBuf) -> PathBuf {
    for _ in 0..SCRIPT_LEVELS {
        match script::open(&path).map(|(_, head)| script::kind(&head)) {
            Ok(Kind::Script(interpreter)) if interpreter.is_file() => path = interpreter,
            _ => break,
        }
    }
    path
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
        let (what, advice) = match script {
            Some(script) => (
                format!("the interpreter of {}, {},", quote(script), quote(path)),
                "mend the script's first line",
            ),
            None => (quote(path), advice),
        };
        Err(Failure::new(NOT_EXECUTABLE, format!("{what} cannot be executed: {why}\n{advice}")))
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
    let (what, advice) = if is_setuid {
        let sudo = match found.uid() {
            0 => "root first (sudo heaptally run …)".to_owned(),
            user => format!("user {user} first (sudo -u '#{user}' heaptally run …)"),
        };
        ("setuid", format!("become {sudo}, or record a copy of the program without that bit"))
    } else if is_setgid {
        let group = found.gid();
        (
            "setgid",
            format!(
                "take group {group} first (sudo -g '#{group}' heaptally run …), or record a copy of the program \
                 without that bit"
            ),
        )
    } else if has_capabilities {
        (
            "given capabilities",
            "become root first, who needs none (sudo heaptally run …), or record a copy of the program, which has none"
                .to_owned(),
        )
    } else {
        return Ok(());
    };
    Err(Failure::recorder(format!(
        "{} is {what}, and the loader ignores LD_PRELOAD (AT_SECURE) in such a program\n{advice}",
        quote(path)
    )))
}

/// Refuses to go between a sanitizer's library that the user preloads and the program: both want to come first.
pub(crate) fn refuse_preloaded() -> Result<(), Failure> {
    let list = env::var_os("LD_PRELOAD").unwrap_or_default();
    match preloaded_sanitizer(&list) {
        None => Ok(()),
        Some((library, sanitizer)) => Err(Failure::recorder(format!(
            "LD_PRELOAD names {}, the library of {sanitizer}, which brings its own malloc and must come first\n\
             take it out of LD_PRELOAD",
            quote(library)
        ))),
    }
}

/// A library of a preload list that is a sanitizer's, and which.
pub(crate) fn preloaded_sanitizer(list: &OsStr) -> Option<(&OsStr, &'static str)> {
    list.as_bytes().split(|byte| matches!(byte, b':' | b' ')).find_map(|path| {
        let path = OsStr::from_bytes(path);
        let name = Path::new(path).file_name()?.to_str()?;
        // LeakSanitizer goes without its place.
        let sanitizer = sanitizer_of_library(name).filter(|sanitizer| *sanitizer != "LeakSanitizer")?;
        Some((path, sanitizer))
    })
}

/// Whether a file gives capabilities to who executes it.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let mut capabilities = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut capabilities).is_ok_and(|len| len > 0)
}

/// Refuses a program that cannot be recorded; what its file says otherwise, where that can be read.
pub(crate) fn refuse_elf(path: &Path, file: &File, head: &[u8]) -> Result<Option<Elf>, Failure> {
    let Some(elf) = Elf::read(file, head) else { return Ok(None) };
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
    Ok(Some(elf))
}

/// What is not seen of a program that can be recorded, but for what its objects call by names of their own: of that is
/// told behind the run, when they are known.
pub(crate) fn warnings_of(path: &Path, elf: &Elf) -> Vec<Finding> {
    let mut warnings: Vec<Finding> = Vec::new();
    if let Some(source @ (Source::Allocator(_) | Source::Elsewhere)) = rust_allocator(path, elf) {
        let (whose, what) = match source {
            Source::Allocator(allocator) => (format!(" ({allocator})"), "it by-passes malloc"),
            Source::Malloc | Source::Elsewhere => (String::new(), "none of its calls leads to malloc"),
        };
        warnings.push(Finding::warning(
            "rust_allocator",
            format!("{INCOMPLETE}{} has a #[global_allocator] of its own{whose}: {what}", quote(path)),
            "build it without that attribute, for instance behind a feature; what else allocates is seen",
        ));
    }
    warnings.extend(elf.managed_heap.map(|runtime| {
        Finding::warning(
            "managed_heap",
            format!(
                "{} has a managed heap ({}), which does not go through malloc: {} is seen",
                quote(path),
                runtime.name(),
                runtime.seen()
            ),
            runtime.advice(),
        )
    }));
    warnings
}

/// What an ELF file says; `None` for another one, and for one that cannot be read.
pub(crate) fn elf(path: &Path) -> Option<Elf> {
    let (file, head) = script::open(path).ok()?;
    Elf::read(&file, &head)
}

/// Where a Rust program's allocator gets its blocks.
pub(crate) fn rust_allocator(path: &Path, elf: &Elf) -> Option<Source> {
    if !elf.has_rust_allocator {
        return None;
    }
    let image = Image::open(path).ok()?;
    doctor::rust_allocator::source(&image.elf()?)
}

/// The warnings of an image that the program went on to.
pub(crate) fn warnings_of_image(path: &Path) -> Vec<String> {
    match elf(path) {
        Some(elf) => warnings_of(path, &elf).iter().map(Finding::in_a_line).collect(),
        None => Vec::new(),
    }
}
