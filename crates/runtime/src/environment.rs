//! The variables by which the command reaches the recorder: read at the start, then taken away, so that the program
//! and its children see the environment that the user gave.
#![expect(unsafe_code, reason = "walks the program's environment")]

use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

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

/// The two variables as the command set them, for the next image: each a C string. Null: there is no recorder.
static SEGMENT_ENTRY: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static OWN_PATH: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Copies what the next image needs to memory that the program does not write to.
///
/// # Safety
/// Both are C strings.
unsafe fn remember(segment_entry: *const c_char, preload_list: *const c_char) {
    let memory: *mut c_char = sys::map_private(2 * sys::PAGE).cast();
    // SAFETY: by the caller.
    let (segment, list) = unsafe { (CStr::from_ptr(segment_entry), CStr::from_ptr(preload_list)) };
    let own = list.to_bytes().split(|byte| *byte == b':' || *byte == b' ').next().unwrap_or_default();
    if memory.is_null() || segment.count_bytes() >= sys::PAGE || own.len() >= sys::PAGE {
        return;
    }
    // SAFETY: each fits its page, and the rest of the page is zero.
    unsafe {
        ptr::copy_nonoverlapping(segment_entry, memory, segment.count_bytes());
        ptr::copy_nonoverlapping(own.as_ptr().cast(), memory.add(sys::PAGE), own.len());
        OWN_PATH.store(memory.add(sys::PAGE), Ordering::Release);
    }
    SEGMENT_ENTRY.store(memory, Ordering::Release);
}

/// The environment with which an image that replaces this one records on: the given one, with the command's variables
/// put back. In memory that is mapped for it; `None`: there is none.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer.
pub(crate) unsafe fn for_next_image(given: *const *const c_char) -> Option<NextEnvironment> {
    let segment = SEGMENT_ENTRY.load(Ordering::Acquire);
    let own = OWN_PATH.load(Ordering::Acquire);
    if segment.is_null() || own.is_null() {
        return None;
    }
    let mut entries = 0;
    let mut list: &[u8] = b"";
    // SAFETY: the array and its strings are the caller's.
    unsafe {
        while !given.is_null() && !(*given.add(entries)).is_null() {
            if has_prefix(*given.add(entries), PRELOAD) {
                list = &CStr::from_ptr(*given.add(entries)).to_bytes()[PRELOAD.len()..];
            }
            entries += 1;
        }
    }
    // SAFETY: `remember` wrote a C string.
    let own = unsafe { CStr::from_ptr(own) }.to_bytes();
    let pointers = (entries + 3) * size_of::<*const c_char>();
    let bytes = (pointers + PRELOAD.len() + own.len() + list.len() + 2).next_multiple_of(sys::PAGE);
    let memory = sys::map_private(bytes);
    if memory.is_null() {
        return None;
    }
    let array: *mut *const c_char = memory.cast();
    // SAFETY: the memory has room for all pointers and the text, and is zero elsewhere.
    unsafe {
        let mut used = 0;
        for at in 0..entries {
            let entry = *given.add(at);
            if !has_prefix(entry, PRELOAD) && !has_prefix(entry, SEGMENT) {
                *array.add(used) = entry;
                used += 1;
            }
        }
        let text = memory.add(pointers);
        let mut end = text;
        for part in [PRELOAD, own, if list.is_empty() { b"".as_slice() } else { b":" }, list] {
            ptr::copy_nonoverlapping(part.as_ptr(), end, part.len());
            end = end.add(part.len());
        }
        *array.add(used) = text.cast();
        *array.add(used + 1) = segment;
    }
    Some(NextEnvironment { memory, bytes })
}

/// See [`for_next_image`]; given back when dropped, which is when the exec failed.
#[derive(Debug)]
pub(crate) struct NextEnvironment {
    memory: *mut u8,
    bytes: usize,
}

impl NextEnvironment {
    pub(crate) fn entries(&self) -> *const *const c_char {
        self.memory.cast()
    }
}

impl Drop for NextEnvironment {
    fn drop(&mut self) {
        sys::unmap(self.memory, self.bytes);
    }
}

/// The environment that functions without an argument for it use.
pub(crate) fn current() -> *const *const c_char {
    // SAFETY: reads the C library's pointer.
    unsafe { environ.cast_const().cast() }
}

/// Takes the command's variables out of the program's environment.
pub(crate) fn restore() {
    // SAFETY: called from the library's constructor, before the program's own code and threads.
    unsafe {
        let mut from = environ;
        if from.is_null() {
            return;
        }
        let segment = entry_of(from, SEGMENT);
        let is_recorded = !segment.is_null();
        let list = entry_of(from, PRELOAD);
        if is_recorded && !list.is_null() {
            remember(segment, list.add(PRELOAD.len()));
        }
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

/// The entry that begins so; null: there is none.
unsafe fn entry_of(mut entries: *mut *mut c_char, prefix: &[u8]) -> *mut c_char {
    // SAFETY: the array ends with a null pointer, by the caller.
    unsafe {
        while !(*entries).is_null() {
            if has_prefix(*entries, prefix) {
                return *entries;
            }
            entries = entries.add(1);
        }
    }
    ptr::null_mut()
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
