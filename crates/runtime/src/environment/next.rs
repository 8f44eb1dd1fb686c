//! The environment for an image that is to be recorded.
#![expect(unsafe_code, reason = "copies an array of C strings")]

use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

use super::{OWN_PATH, PRELOAD, SEGMENT, has_prefix, is_divider, segment_path, split_place};
use crate::child::Place;
use crate::sys;

type Strings = *const *const c_char;

/// What an environment will consist of.
struct Plan {
    given: Strings,
    entries: usize,
    /// The entry that holds the user's own list.
    list_at: Option<usize>,
    /// That list, without this library.
    list: &'static [u8],
    own: &'static [u8],
    segment: &'static [u8],
    place: Option<Place>,
}

impl Plan {
    /// `None`: there is no segment, or the image is another recorder's affair: one was told its own segment.
    ///
    /// # Safety
    /// `given` is null or an array of C strings that ends with a null pointer, and stays while the plan is used.
    unsafe fn new(given: Strings, place: Option<Place>) -> Option<Self> {
        let segment = segment_path()?.to_bytes();
        let own = OWN_PATH.load(Ordering::Acquire);
        if own.is_null() {
            return None;
        }
        // SAFETY: `remember` wrote a C string.
        let own = unsafe { CStr::from_ptr(own) }.to_bytes();
        let mut plan = Self { given, entries: 0, list_at: None, list: b"", own, segment, place };
        // SAFETY: by the caller.
        unsafe {
            while !given.is_null() && !(*given.add(plan.entries)).is_null() {
                let entry = *given.add(plan.entries);
                if has_prefix(entry, PRELOAD) {
                    plan.list_at = Some(plan.entries);
                    plan.list = without_first(CStr::from_ptr(entry.add(PRELOAD.len())).to_bytes(), own);
                } else if has_prefix(entry, SEGMENT)
                    && split_place(CStr::from_ptr(entry.add(SEGMENT.len())).to_bytes()).1 != segment
                {
                    return None;
                }
                plan.entries += 1;
            }
        }
        Some(plan)
    }

    /// How many bytes of memory, aligned for pointers, it takes.
    fn bytes(&self) -> usize {
        const DIGITS: usize = 10;
        let text =
            PRELOAD.len() + self.own.len() + self.list.len() + SEGMENT.len() + DIGITS + self.segment.len();
        // Two entries more and the end; a colon and a terminator each.
        (self.entries + 3) * size_of::<*const c_char>() + text + 4
    }

    /// # Safety
    /// The memory has as many bytes as are needed, and is aligned for pointers.
    unsafe fn write(&self, memory: *mut u8) -> Strings {
        let array: *mut *const c_char = memory.cast();
        let mut used = 0;
        // SAFETY: `bytes` counted what is written here.
        unsafe {
            let mut text = memory.add((self.entries + 3) * size_of::<*const c_char>());
            let mut put = |parts: &[&[u8]]| {
                let start = text;
                for part in parts {
                    ptr::copy_nonoverlapping(part.as_ptr(), text, part.len());
                    text = text.add(part.len());
                }
                text.write(0);
                text = text.add(1);
                start.cast::<c_char>().cast_const()
            };
            // A list that was there and is empty stays there and empty.
            let divider: &[u8] = if self.list_at.is_some() { b":" } else { b"" };
            let preload = put(&[PRELOAD, self.own, divider, self.list]);
            let mut digits = [0; 10];
            let place = self.place.map_or(&[][..], |Place(number)| decimal(number, &mut digits));
            let divider: &[u8] = if self.place.is_some() { b":" } else { b"" };
            let segment = put(&[SEGMENT, place, divider, self.segment]);
            for at in 0..self.entries {
                let entry = *self.given.add(at);
                if self.list_at == Some(at) {
                    *array.add(used) = preload;
                } else if has_prefix(entry, SEGMENT) {
                    continue;
                } else {
                    *array.add(used) = entry;
                }
                used += 1;
            }
            for entry in [preload].into_iter().filter(|_| self.list_at.is_none()).chain([segment]) {
                *array.add(used) = entry;
                used += 1;
            }
            *array.add(used) = ptr::null();
        }
        array.cast_const()
    }
}

/// A list without this library, where it stands first: another thread may have lent it to a shell.
fn without_first<'a>(list: &'a [u8], own: &[u8]) -> &'a [u8] {
    match list.strip_prefix(own) {
        Some([]) => b"",
        Some([divider, rest @ ..]) if is_divider(*divider) => rest,
        _ => list,
    }
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// The environment with which an image records: the given one, with the command's variables put back. In memory that is
/// mapped for it; `None`: there is none, or it is to be left as it is.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer.
pub(crate) unsafe fn for_next_image(given: Strings, place: Option<Place>) -> Option<NextEnvironment> {
    // SAFETY: by the caller.
    let plan = unsafe { Plan::new(given, place) }?;
    let bytes = plan.bytes().next_multiple_of(sys::PAGE);
    let memory = sys::map_private(bytes);
    if memory.is_null() {
        return None;
    }
    // SAFETY: the memory is new and large enough.
    unsafe { plan.write(memory) };
    Some(NextEnvironment { memory, bytes })
}

/// See [`for_next_image`]; given back when dropped.
#[derive(Debug)]
pub(crate) struct NextEnvironment {
    memory: *mut u8,
    bytes: usize,
}

impl NextEnvironment {
    pub(crate) fn entries(&self) -> Strings {
        self.memory.cast()
    }

    /// Keeps the memory: its first byte and its length.
    pub(crate) fn into_memory(self) -> (*mut u8, usize) {
        let parts = (self.memory, self.bytes);
        core::mem::forget(self);
        parts
    }
}

impl Drop for NextEnvironment {
    fn drop(&mut self) {
        sys::unmap(self.memory, self.bytes);
    }
}

/// How many bytes of the stack an environment may take in a vfork child: about 400 variables. Its stack is the parent's
/// own, or one that `clone` was given.
const STACK_BYTES: usize = 4096;

/// Calls with the environment for an image that a vfork child goes on to. It lies on the child's stack, since nobody
/// could give memory back that the child maps: it is the parent's, and the child leaves by the call. What is too large
/// for the stack is mapped all the same, and stays.
///
/// # Safety
/// As [`for_next_image`].
#[inline(never)]
pub(crate) unsafe fn with_next_on_stack(
    given: Strings,
    place: Place,
    call: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // SAFETY: by the caller.
    let Some(plan) = (unsafe { Plan::new(given, Some(place)) }) else { return call(given) };
    if plan.bytes() <= STACK_BYTES {
        let mut memory = MaybeUninit::<[u64; STACK_BYTES / 8]>::uninit();
        // SAFETY: it has as many bytes as are needed.
        return call(unsafe { plan.write(memory.as_mut_ptr().cast()) });
    }
    // SAFETY: by the caller.
    match unsafe { for_next_image(given, Some(place)) } {
        Some(next) => call(next.entries()),
        None => call(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a plan writes.
    fn written(plan: &Plan) -> Vec<String> {
        let mut memory = vec![0_u64; plan.bytes().div_ceil(8)];
        // SAFETY: the memory is large enough; the array ends with a null pointer.
        unsafe {
            let array = plan.write(memory.as_mut_ptr().cast());
            (0..)
                .map(|at| *array.add(at))
                .take_while(|entry| !entry.is_null())
                .map(|entry| CStr::from_ptr(entry).to_str().unwrap().to_owned())
                .collect()
        }
    }

    fn plan(given: &[*const c_char], list_at: Option<usize>, list: &'static [u8]) -> Plan {
        Plan {
            given: given.as_ptr(),
            entries: given.len() - 1,
            list_at,
            list,
            own: b"/r/ours.so",
            segment: b"/proc/7/fd/4",
            place: Some(Place(31)),
        }
    }

    #[test]
    fn the_users_list_keeps_its_place() {
        let given = [c"A=1".as_ptr(), c"LD_PRELOAD=/t.so".as_ptr(), c"B=2".as_ptr(), ptr::null()];
        assert_eq!(
            written(&plan(&given, Some(1), b"/t.so")),
            ["A=1", "LD_PRELOAD=/r/ours.so:/t.so", "B=2", "HEAPTALLY_SEGMENT=31:/proc/7/fd/4"]
        );
    }

    #[test]
    fn without_a_list_ours_is_alone_at_the_end() {
        let given = [c"A=1".as_ptr(), c"HEAPTALLY_SEGMENT=2:/proc/7/fd/4".as_ptr(), ptr::null()];
        assert_eq!(
            written(&plan(&given, None, b"")),
            ["A=1", "LD_PRELOAD=/r/ours.so", "HEAPTALLY_SEGMENT=31:/proc/7/fd/4"]
        );
    }

    #[test]
    fn ours_is_never_there_twice() {
        assert_eq!(without_first(b"/r/ours.so:/t.so", b"/r/ours.so"), b"/t.so");
        assert_eq!(without_first(b"/r/ours.so", b"/r/ours.so"), b"");
        assert_eq!(without_first(b"/r/ours.so.2:/t.so", b"/r/ours.so"), b"/r/ours.so.2:/t.so");
    }

    #[test]
    fn numbers_are_decimal() {
        let mut digits = [0; 10];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(u32::MAX, &mut digits), b"4294967295");
    }
}
