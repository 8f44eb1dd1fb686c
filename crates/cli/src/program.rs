//! The program to record: found as `execvp` finds it, and looked at before it is started.
//!
//! What cannot be recorded is refused here, by name and with what to do, and not found out by an empty profile.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, EM_X86_64, ET_DYN, FileHeader64, PT_DYNAMIC, PT_INTERP};
use object::read::elf::{Dyn, ElfFile, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object, ObjectSymbol};
use rustix::process::{getegid, geteuid};

use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::message::quote;

/// Scripts whose interpreter is a script, and so on, as the kernel follows them.
const SCRIPT_LEVELS: usize = 5;
/// The most that the kernel reads of a script's first line, in bytes.
const SCRIPT_LINE: usize = 256;

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
        let Ok(file) = opened else {
            let warnings =
                vec![format!("{} cannot be read, so it was not looked at before its start", quote(&path))];
            return Ok(Program { image: path, file: None, warnings });
        };
        refuse_privileges(&path)?;
        let Some(line) = head.strip_prefix(b"#!") else {
            let warnings = if head.starts_with(b"\x7fELF") { refuse_elf(&path, &head)? } else { Vec::new() };
            return Ok(Program { image: path, file: Some(file), warnings });
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
    Err(Failure::new(NOT_EXECUTABLE, format!("{} is a script of a script of a script …", quote(name))))
}

fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let not_found = || {
        let hint = "give its path, or put its folder into PATH";
        Failure::new(NOT_FOUND, format!("the program {} was not found\n{hint}", quote(name)))
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if path.exists() { Ok(path) } else { Err(not_found()) };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut found_otherwise = None;
    for folder in env::split_paths(&folders) {
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

fn executable(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::new(
            NOT_EXECUTABLE,
            format!("{} cannot be executed: {why}\nname a program", quote(path)),
        ))
    };
    match fs::metadata(path) {
        Err(error) => refuse(&error.to_string()),
        Ok(found) if found.is_dir() => refuse("it is a folder"),
        Ok(_) => match rustix::fs::access(path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(&error.to_string()),
        },
    }
}

/// A program that gains privileges drops LD_PRELOAD.
fn refuse_privileges(path: &Path) -> Result<(), Failure> {
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

fn refuse_elf(path: &Path, head: &[u8]) -> Result<Vec<String>, Failure> {
    let refuse = |message: String| Err(Failure::recorder(format!("{} {message}", quote(path))));
    // Class, byte order and machine.
    let machine = head.get(18..20).map_or(0, |bytes| u16::from(bytes[0]) | (u16::from(bytes[1]) << 8));
    if head.get(4..6) != Some(&[2, 1]) || machine != EM_X86_64.0 {
        return refuse(
            "is not a program for x86-64\nheaptally records 64-bit x86 programs only, for now".to_owned(),
        );
    }
    let Ok(bytes) = fs::read(path) else { return Ok(Vec::new()) };
    let Ok(elf) = ElfFile::<FileHeader64<Endianness>>::parse(bytes.as_slice()) else {
        return refuse("is damaged: its ELF headers make no sense\nbuild it again".to_owned());
    };
    let endian = elf.endian();
    let headers = elf.elf_program_headers();
    let interpreter = headers
        .iter()
        .find(|header| header.p_type(endian) == PT_INTERP)
        .and_then(|header| header.data(endian, bytes.as_slice()).ok());
    let Some(interpreter) = interpreter else {
        let kind = if elf.elf_header().e_type(endian) == ET_DYN { "static-pie" } else { "static" };
        return refuse(format!(
            "is statically linked ({kind}), so no library can be preloaded\n\
             link it dynamically: leave out -static, -static-pie, -static-executable or -C target-feature=+crt-static"
        ));
    };
    let interpreter = Path::new(OsStr::from_bytes(interpreter.strip_suffix(b"\0").unwrap_or(interpreter)));
    if interpreter.to_string_lossy().contains("ld-musl") {
        return refuse(
            "is linked with musl, whose programs cannot be recorded yet\nbuild it for glibc (…-linux-gnu)"
                .to_owned(),
        );
    }
    if !interpreter.exists() {
        return Err(Failure::new(
            NOT_FOUND,
            format!("the loader {} of {} is not there\ninstall it", quote(interpreter), quote(path)),
        ));
    }
    let needed = needed(&elf, &bytes);
    let symbols: Vec<&[u8]> =
        elf.dynamic_symbols().chain(elf.symbols()).filter_map(|symbol| symbol.name_bytes().ok()).collect();
    let has_symbol = |name: &str| symbols.contains(&name.as_bytes());
    for (sanitizer, library, symbol) in [
        ("AddressSanitizer", "libasan", "__asan_init"),
        ("ThreadSanitizer", "libtsan", "__tsan_init"),
        ("MemorySanitizer", "libmsan", "__msan_init"),
        ("HWAddressSanitizer", "libhwasan", "__hwasan_init"),
    ] {
        if needed.iter().any(|name| name.starts_with(library)) || has_symbol(symbol) {
            return refuse(format!(
                "is built with {sanitizer}, which brings its own malloc and must come first\nbuild it without -fsanitize"
            ));
        }
    }
    let mut warnings = Vec::new();
    for (allocator, symbol) in [
        ("jemalloc (prefixed)", "_rjem_malloc"),
        ("jemalloc (prefixed)", "je_malloc"),
        ("mimalloc", "mi_malloc"),
        ("snmalloc", "sn_malloc"),
    ] {
        if has_symbol(symbol) {
            warnings.push(format!(
                "coverage is incomplete: {} has {allocator} linked in, whose calls by-pass the C library's malloc",
                quote(path)
            ));
        }
    }
    Ok(warnings)
}

/// The libraries that the dynamic section names.
fn needed(elf: &ElfFile<'_, FileHeader64<Endianness>>, bytes: &[u8]) -> Vec<String> {
    let endian = elf.endian();
    let dynamic = elf
        .elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == PT_DYNAMIC)
        .find_map(|header| header.dynamic(endian, bytes).ok().flatten());
    let strings = elf
        .elf_section_table()
        .dynamic(endian, bytes)
        .ok()
        .flatten()
        .and_then(|(_, link)| elf.elf_section_table().strings(endian, bytes, link).ok());
    let (Some(entries), Some(strings)) = (dynamic, strings) else { return Vec::new() };
    entries
        .iter()
        .filter(|entry| entry.tag(endian) == DT_NEEDED)
        .filter_map(|entry| entry.string(endian, strings).ok())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}
