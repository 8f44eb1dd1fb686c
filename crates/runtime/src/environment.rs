//! The variables by which the command reaches the recorder: read at the start, then taken away, so that the program
//! and its children see the environment that the user gave.
#![expect(unsafe_code, reason = "walks the program's environment")]

use core::ffi::{CStr, c_char};
use core::ptr;

use crate::sys;

/// Names the segment's file.
const SEGMENT: &[u8] = b"HEAPTALLY_SEGMENT=";
/// Holds the recorder's path first, then what the user had there.
const PRELOAD: &[u8] = b"LD_PRELOAD=";
const LIMIT: usize = 1 << 21;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// The path of the segment, if the command started this program.
///
/// The environment is read from the kernel: the first hook may run before the C library knows it.
pub(crate) fn segment_path() -> Option<&'static CStr> {
    let memory = sys::map_private(LIMIT);
    if memory.is_null() {
        return None;
    }
    // SAFETY: the mapping is new, zeroed and this function's own.
    let buffer: &'static mut [u8] = unsafe { core::slice::from_raw_parts_mut(memory, LIMIT) };
    let len = sys::File::open(c"/proc/self/environ", false)?.read(&mut buffer[..LIMIT - 1]);
    let found = buffer[..len].split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(SEGMENT))?;
    // The buffer stays mapped when there is a segment: the path is part of it. The byte behind the entry is 0.
    let start = found.as_ptr() as usize - memory as usize;
    CStr::from_bytes_until_nul(&buffer[start..]).ok().filter(|path| !path.is_empty())
}

/// Takes the command's variables out of the program's environment.
pub(crate) fn restore() {
    // SAFETY: called from the library's constructor, before the program's own code and threads.
    unsafe {
        let mut from = environ;
        if from.is_null() {
            return;
        }
        let is_recorded = entries_hold(from, SEGMENT);
        let mut to = from;
        while !(*from).is_null() {
            let entry = *from;
            from = from.add(1);
            if is_recorded && has_prefix(entry, SEGMENT) {
                continue;
            }
            if is_recorded && has_prefix(entry, PRELOAD) {
                let Some(rest) = after_first(entry.add(PRELOAD.len())) else { continue };
                // `LD_PRELOAD=ours:theirs` becomes `LD_PRELOAD=theirs` where it stands.
                let len = CStr::from_ptr(rest).count_bytes() + 1;
                ptr::copy(rest, entry.add(PRELOAD.len()), len);
            }
            *to = entry;
            to = to.add(1);
        }
        *to = ptr::null_mut();
    }
}

unsafe fn entries_hold(mut entries: *mut *mut c_char, prefix: &[u8]) -> bool {
    // SAFETY: the array ends with a null pointer, by the caller.
    unsafe {
        while !(*entries).is_null() {
            if has_prefix(*entries, prefix) {
                return true;
            }
            entries = entries.add(1);
        }
    }
    false
}

unsafe fn has_prefix(text: *const c_char, prefix: &[u8]) -> bool {
    // SAFETY: compares up to the first difference, so never beyond the terminator.
    prefix.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at) } as u8 == *byte)
}

/// What follows the first entry of a list divided by colons or blanks; `None`: nothing.
unsafe fn after_first(list: *mut c_char) -> Option<*mut c_char> {
    // SAFETY: stops at the terminator.
    unsafe {
        let mut at = list;
        while *at != 0 && *at as u8 != b':' && *at as u8 != b' ' {
            at = at.add(1);
        }
        (*at != 0 && *at.add(1) != 0).then(|| at.add(1))
    }
}
