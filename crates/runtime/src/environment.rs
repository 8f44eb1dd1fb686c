//! The variables by which the command reaches the recorder: read at the start, then taken away, so that the program
//! and its children see the environment that the user gave; put back where an image starts that is to be recorded.
//!
//! ```text
//! HEAPTALLY_SEGMENT=/proc/7/fd/4     the program, and what replaces it
//! HEAPTALLY_SEGMENT=3:/proc/7/fd/4   a child: it stands at place 3 of the table of unrecorded children until it attaches
//! LD_PRELOAD=<this library>:<the user's own list>      in the place that the user's LD_PRELOAD has
//! ```
#![expect(unsafe_code, reason = "walks the program's environment")]

use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::child::Place;
use crate::sys;

mod lend;
mod next;

pub(crate) use lend::{after_fork, lend, take_back};
pub(crate) use next::{for_next_image, with_next_on_stack};

/// Names the segment's file.
const SEGMENT: &[u8] = b"HEAPTALLY_SEGMENT=";
/// Holds the recorder's path first, then what the user had there.
const PRELOAD: &[u8] = b"LD_PRELOAD=";
const LIMIT: usize = 1 << 21;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// How the command is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// The file's path.
    pub(crate) path: &'static CStr,
    /// Of a child: where it is counted as not recorded.
    pub(crate) place: Option<Place>,
}

/// The segment's path, once it was read; null: there is none.
static PATH: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
/// Whose process this was when it was found that there is a segment.
static USER: AtomicU32 = AtomicU32::new(0);
/// The path of this library, as the loader was given it.
static OWN_PATH: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// The segment, if the command started this program.
///
/// The environment is read from the kernel: the first hook may run before the C library knows it.
pub(crate) fn segment() -> Option<Segment> {
    let memory = sys::map_private(LIMIT);
    if memory.is_null() {
        return None;
    }
    // SAFETY: the mapping is new, zeroed and this function's own.
    let buffer: &'static mut [u8] = unsafe { core::slice::from_raw_parts_mut(memory, LIMIT) };
    let len = sys::File::open(c"/proc/self/environ", false)?.read(&mut buffer[..LIMIT - 1]);
    let found = buffer[..len].split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(SEGMENT));
    let Some(found) = found else {
        sys::unmap(memory, LIMIT);
        return None;
    };
    // The buffer stays mapped when there is a segment: the path is part of it. The byte behind the entry is 0.
    let (place, path) = split_place(found);
    let start = path.as_ptr() as usize - memory as usize;
    let path = CStr::from_bytes_until_nul(&buffer[start..]).ok().filter(|path| !path.is_empty())?;
    USER.store(sys::user(), Ordering::Relaxed);
    PATH.store(path.as_ptr().cast_mut(), Ordering::Release);
    Some(Segment { path, place })
}

/// The segment's path, where there is one.
pub(crate) fn segment_path() -> Option<&'static CStr> {
    let path = PATH.load(Ordering::Acquire);
    // SAFETY: `segment` stored a C string that stays.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// Whether the next image can open what it needs to record: not where the process has changed its user, its root folder
/// or its namespace, and sees other files than at its start.
pub(crate) fn is_in_reach() -> bool {
    // It may still have another user's capabilities, and loses them with the exec.
    let user = sys::user();
    if user != 0 && user != USER.load(Ordering::Relaxed) {
        return false;
    }
    let own = OWN_PATH.load(Ordering::Acquire);
    // SAFETY: `remember` wrote a C string.
    let own = (!own.is_null()).then(|| unsafe { CStr::from_ptr(own) });
    !own.is_some_and(|path| sys::File::is_out_of_reach(path, false))
        && !segment_path().is_some_and(|path| sys::File::is_out_of_reach(path, true))
}

/// What the variable holds: a number and a colon in a child, and the path.
fn split_place(value: &[u8]) -> (Option<Place>, &[u8]) {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match value.split_at_checked(digits) {
        Some((number, [b':', path @ ..])) if digits > 0 => {
            let number = number
                .iter()
                .fold(0_u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
            (Some(Place(number)), path)
        }
        _ => (None, value),
    }
}

/// The environment that functions without an argument for it use.
pub(crate) fn current() -> *const *const c_char {
    // SAFETY: reads the C library's pointer.
    unsafe { environ.cast_const().cast() }
}

/// The libraries that an environment preloads; `None`: it says nothing of that.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer, and stays while the result is used.
pub(crate) unsafe fn preloaded<'a>(given: *const *const c_char) -> Option<impl Iterator<Item = &'a [u8]>> {
    if given.is_null() {
        return None;
    }
    // SAFETY: by the caller.
    let list = unsafe {
        let entry = last_of(given.cast_mut().cast(), PRELOAD);
        if entry.is_null() {
            return None;
        }
        CStr::from_ptr(entry.add(PRELOAD.len())).to_bytes()
    };
    Some(list.split(|byte| is_divider(*byte)))
}

/// What a variable of the program holds; `prefix`: its name and the sign between. The program may change it meanwhile.
pub(crate) fn value_of(prefix: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: the C library's own array, as `getenv` reads it.
    unsafe {
        if environ.is_null() {
            return None;
        }
        let entry = last_of(environ, prefix);
        (!entry.is_null()).then(|| CStr::from_ptr(entry.add(prefix.len())).to_bytes())
    }
}

/// Takes the command's variables out of the program's environment, and keeps what they say.
pub(crate) fn restore() {
    // SAFETY: called from the library's constructor, before the program's own code and threads.
    unsafe {
        if environ.is_null() || last_of(environ, SEGMENT).is_null() {
            return;
        }
        let list = last_of(environ, PRELOAD);
        if !list.is_null() {
            remember(list.add(PRELOAD.len()));
        }
        take_out(environ);
    }
}

/// Takes the command's variables out of an array where it stands. What it does not hold both of is left alone.
///
/// # Safety
/// The array ends with a null pointer; its strings can be written to.
unsafe fn take_out(entries: *mut *mut c_char) {
    // SAFETY: by the caller.
    unsafe {
        if last_of(entries, SEGMENT).is_null() {
            return;
        }
        // Of several the loader takes the last, so that is where the command wrote.
        let list = last_of(entries, PRELOAD);
        let (mut from, mut to) = (entries, entries);
        while !(*from).is_null() {
            let entry = *from;
            from = from.add(1);
            if has_prefix(entry, SEGMENT) {
                continue;
            }
            if entry == list {
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

/// Copies the library's path, the first of a list, to memory that the program does not write to.
///
/// # Safety
/// A C string.
unsafe fn remember(list: *const c_char) {
    // SAFETY: by the caller.
    let list = unsafe { CStr::from_ptr(list) };
    let own = list.to_bytes().split(|byte| is_divider(*byte)).next().unwrap_or_default();
    let memory: *mut c_char = sys::map_private(sys::PAGE).cast();
    if memory.is_null() || own.len() >= sys::PAGE {
        return;
    }
    // SAFETY: it fits the page, and the rest of the page is zero.
    unsafe { ptr::copy_nonoverlapping(own.as_ptr().cast(), memory, own.len()) };
    OWN_PATH.store(memory, Ordering::Release);
}

/// The last entry that begins so; null: there is none.
unsafe fn last_of(mut entries: *mut *mut c_char, prefix: &[u8]) -> *mut c_char {
    let mut last = ptr::null_mut();
    // SAFETY: the array ends with a null pointer, by the caller.
    unsafe {
        while !(*entries).is_null() {
            if has_prefix(*entries, prefix) {
                last = *entries;
            }
            entries = entries.add(1);
        }
    }
    last
}

unsafe fn has_prefix(text: *const c_char, prefix: &[u8]) -> bool {
    // SAFETY: compares up to the first difference, so never beyond the terminator.
    prefix.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at) } as u8 == *byte)
}

fn is_divider(byte: u8) -> bool {
    matches!(byte, b':' | b' ')
}

/// What follows the first entry of a list divided by colons or blanks, which may be nothing; `None`: it has one entry.
unsafe fn after_first(list: *mut c_char) -> Option<*mut c_char> {
    // SAFETY: stops at the terminator.
    unsafe {
        let mut at = list;
        while *at != 0 && !is_divider(*at as u8) {
            at = at.add(1);
        }
        (*at != 0).then(|| at.add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_place_stands_before_the_path() {
        assert_eq!(split_place(b"/proc/7/fd/4"), (None, &b"/proc/7/fd/4"[..]));
        assert_eq!(split_place(b"31:/a:b"), (Some(Place(31)), &b"/a:b"[..]));
        assert_eq!(split_place(b":/a"), (None, &b":/a"[..]));
        assert_eq!(split_place(b"7"), (None, &b"7"[..]));
    }

    #[test]
    fn an_empty_list_of_the_users_own_stays() {
        let rest = |list: &CStr| {
            // SAFETY: a C string, which is not written to.
            unsafe { after_first(list.as_ptr().cast_mut()).map(|rest| CStr::from_ptr(rest).to_bytes()) }
        };
        assert_eq!(rest(c"/ours.so"), None);
        assert_eq!(rest(c"/ours.so:"), Some(&b""[..]));
        assert_eq!(rest(c"/ours.so:/theirs.so /more.so"), Some(&b"/theirs.so /more.so"[..]));
    }
}
