//! Whether a program that is about to start bears the recorder. Some do not: musl's loader does not find what the
//! library needs, and the sanitizers' own libraries must come before all others. Such a program would end at its
//! start; it is started as it is instead, and counts as one that was not recorded.
#![expect(unsafe_code, reason = "takes paths as C strings")]

use core::ffi::{CStr, c_char};

use crate::environment;
use crate::sys::File;

/// Enough for a file header and a dozen program headers.
const HEAD_BYTES: usize = 1024;
const PATH_BYTES: usize = 1024;
const PROGRAM_HEADER_BYTES: usize = 56;
const DYNAMIC_ENTRY_BYTES: usize = 16;
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// How the names of libraries begin behind which the recorder cannot come.
const FIRST_OF_ALL: [&[u8]; 5] =
    [b"libasan.so", b"libtsan.so", b"libhwasan.so", b"libclang_rt.asan", b"libclang_rt.tsan"];

/// Whether the program can be started with the recorder in it, in an environment. What cannot be looked at can.
///
/// # Safety
/// `program` is null or a C string, `given` null or an array of C strings that ends with a null pointer.
#[cold]
#[inline(never)]
pub(crate) unsafe fn takes_recorder(program: *const c_char, given: *const *const c_char) -> bool {
    // SAFETY: by the caller.
    if unsafe { preloads_first_of_all(given) } {
        return false;
    }
    if program.is_null() {
        return true;
    }
    // SAFETY: by the caller.
    let Some(file) = open(unsafe { CStr::from_ptr(program) }) else { return true };
    let mut head = [0; HEAD_BYTES];
    let len = file.read_at(0, &mut head);
    let Some(interpreter) = head.get(..len).and_then(|head| head.strip_prefix(b"#!")) else {
        return bears(&file, &head);
    };
    let mut words = interpreter.split(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
    let mut path = [0; PATH_BYTES];
    let interpreter = words.find(|word| !word.is_empty()).and_then(|word| joined(&mut path, word, b""));
    let Some(file) = interpreter.and_then(File::open_to_look) else { return true };
    head.fill(0);
    file.read_at(0, &mut head);
    bears(&file, &head)
}

/// Whether an environment preloads a library behind which the recorder cannot come.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer.
pub(crate) unsafe fn preloads_first_of_all(given: *const *const c_char) -> bool {
    let is_first = |path: &[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        FIRST_OF_ALL.iter().any(|first| name.starts_with(first))
    };
    // SAFETY: by the caller.
    unsafe { environment::preloaded(given) }.is_some_and(|mut list| list.any(is_first))
}

/// Opens what `execvp` would find.
fn open(program: &CStr) -> Option<File> {
    let name = program.to_bytes();
    if name.contains(&b'/') {
        return File::open_to_look(program);
    }
    let folders = environment::value_of(b"PATH=")?;
    folders.split(|byte| *byte == b':').find_map(|folder| {
        let mut path = [0; PATH_BYTES];
        File::open_to_look(joined(&mut path, if folder.is_empty() { b"." } else { folder }, name)?)
    })
}

/// A folder and a name in it (or none) as a path.
fn joined<'a>(path: &'a mut [u8; PATH_BYTES], folder: &[u8], name: &[u8]) -> Option<&'a CStr> {
    let divider: &[u8] = if name.is_empty() { b"" } else { b"/" };
    let len = folder.len() + divider.len() + name.len();
    // The last byte stays the terminator.
    let place = path.get_mut(..len).filter(|_| len < PATH_BYTES)?;
    for (into, byte) in place.iter_mut().zip(folder.iter().chain(divider).chain(name)) {
        *into = *byte;
    }
    CStr::from_bytes_until_nul(path).ok()
}

fn word(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|rest| rest.get(..len)).unwrap_or_default();
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn bears(file: &File, head: &[u8; HEAD_BYTES]) -> bool {
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return true;
    }
    let first = word(head, 32, 8);
    let count = word(head, 56, 2).min(64);
    let headers = || {
        (0..count).map_while(|number| {
            let at = usize::try_from(first.checked_add(number * PROGRAM_HEADER_BYTES as u64)?).ok()?;
            head.get(at..)?.get(..PROGRAM_HEADER_BYTES)
        })
    };
    let of_kind = |kind| headers().filter(move |header| word(header, 0, 4) == kind);
    for header in of_kind(PT_INTERP) {
        let mut loader = [0; 128];
        file.read_at(word(header, 8, 8), &mut loader);
        if loader.windows(7).any(|part| part == b"ld-musl") {
            return false;
        }
    }
    let Some(dynamic) = of_kind(PT_DYNAMIC).next() else { return true };
    let (start, bytes) = (word(dynamic, 8, 8), word(dynamic, 32, 8).min(1 << 16));
    let Some(strings) = entry(file, start, bytes, |tag, _| tag == DT_STRTAB) else { return true };
    let offset = of_kind(PT_LOAD).find_map(|header| {
        let (offset, address, len) = (word(header, 8, 8), word(header, 16, 8), word(header, 32, 8));
        let distance = strings.checked_sub(address)?;
        if distance < len { offset.checked_add(distance) } else { None }
    });
    let Some(offset) = offset else { return true };
    let is_first_of_all = |tag, value| {
        let mut name = [0; 24];
        tag == DT_NEEDED && {
            file.read_at(offset.wrapping_add(value), &mut name);
            FIRST_OF_ALL.iter().any(|first| name.starts_with(first))
        }
    };
    entry(file, start, bytes, is_first_of_all).is_none()
}

/// The value of the first entry of a dynamic section that is wanted.
fn entry(file: &File, start: u64, bytes: u64, is_wanted: impl Fn(u64, u64) -> bool) -> Option<u64> {
    let mut at = 0;
    while at < bytes {
        let mut part = [0; 32 * DYNAMIC_ENTRY_BYTES];
        let len = file.read_at(start.checked_add(at)?, &mut part);
        for entry in part.get(..len)?.chunks_exact(DYNAMIC_ENTRY_BYTES) {
            let (tag, value) = (word(entry, 0, 8), word(entry, 8, 8));
            if tag == DT_NULL {
                return None;
            }
            if is_wanted(tag, value) {
                return Some(value);
            }
        }
        at += part.len() as u64;
        if len < part.len() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::{env, fs, process};

    use super::*;

    fn takes(path: &Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        unsafe { takes_recorder(path.as_ptr(), core::ptr::null()) }
    }

    fn file(name: &str, content: &[u8]) -> PathBuf {
        let path = env::temp_dir().join(format!("heaptally-next-image-{}-{name}", process::id()));
        fs::write(&path, content).unwrap();
        path
    }

    /// `/bin/true` with the first of some bytes replaced.
    fn changed(from: &[u8], to: &[u8]) -> Vec<u8> {
        let mut bytes = fs::read("/bin/true").unwrap();
        let at = bytes.windows(from.len()).position(|part| part == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    }

    #[test]
    fn ordinary_programs_do() {
        for path in ["/bin/true", "/bin/sh", "true", "no-such-program-anywhere", "/nowhere", "", "/"] {
            assert!(takes(Path::new(path)), "{path}");
        }
        // SAFETY: null is allowed.
        assert!(unsafe { takes_recorder(core::ptr::null(), core::ptr::null()) });
    }

    #[test]
    fn none_does_with_a_sanitizers_library_before_it() {
        for (list, takes) in [
            (c"LD_PRELOAD=/usr/lib/libasan.so.8", false),
            (c"LD_PRELOAD=a.so:/x/libclang_rt.asan-x86_64.so b.so", false),
            (c"LD_PRELOAD=a.so libtsan.so", false),
            (c"LD_PRELOAD=libasan/a.so:/x/notlibasan.so", true),
            (c"LD_PRELOAD=", true),
            (c"NO_LD_PRELOAD=libasan.so", true),
        ] {
            let given = [c"A=1".as_ptr(), list.as_ptr(), core::ptr::null()];
            // SAFETY: a C string, and an array of them.
            assert_eq!(unsafe { takes_recorder(c"/bin/true".as_ptr(), given.as_ptr()) }, takes, "{list:?}");
        }
    }

    #[test]
    fn those_of_musl_and_of_sanitizers_do_not() {
        let musl = file("musl", &changed(b"/lib64/ld-linux", b"/lib/ld-musl-x\0"));
        // The name of the needed C library has room for little.
        let sanitizer = file("sanitizer", &changed(b"libc.so.6", b"libasan.so"));
        let script = file("script", format!("#! {} -x\n", musl.display()).as_bytes());
        let plain = file("plain", b"#!/bin/sh\n");
        let results = [&musl, &sanitizer, &script, &plain].map(|path| takes(path));
        for path in [musl, sanitizer, script, plain] {
            fs::remove_file(path).unwrap();
        }
        assert_eq!(results, [false, false, false, true]);
    }

    #[test]
    fn damaged_files_are_no_trouble() {
        let whole = fs::read("/bin/true").unwrap();
        for len in [0, 4, 6, 40, 64, 200, 800] {
            let path = file("short", &whole[..len]);
            assert!(takes(&path), "{len}");
            fs::remove_file(path).unwrap();
        }
        for at in (0x10..0x400).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            let path = file("odd", &bytes);
            takes(&path);
            fs::remove_file(path).unwrap();
        }
    }
}
