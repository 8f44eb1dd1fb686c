//! An image that replaces this one in the same process is recorded too, in an area of its own.
#![expect(unsafe_code, reason = "passes an environment on")]

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;

use heaptally_segment::layout::{STATE_ATTACHED, STATE_REPLACED};

use crate::recorder::recorder;
use crate::{environment, sys};

/// Calls an exec function with the environment that the next image needs to record on.
///
/// A vfork child runs in its parent's memory and is another process: it, like all children, goes unrecorded.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer.
pub unsafe fn replace(given: *const *const c_char, call: impl Fn(*const *const c_char) -> c_int) -> c_int {
    let Some(recorder) = recorder() else { return call(given) };
    let header = recorder.tally.header();
    if header.pid.load(Ordering::Relaxed) != sys::pid() {
        return call(given);
    }
    // SAFETY: by the caller.
    let Some(next) = (unsafe { environment::for_next_image(given) }) else { return call(given) };
    header.state.store(STATE_REPLACED, Ordering::Release);
    let result = call(next.entries());
    // Here only if it failed.
    header.state.store(STATE_ATTACHED, Ordering::Release);
    result
}

/// The same with the environment that the program has now.
pub fn replace_with_current(call: impl Fn(*const *const c_char) -> c_int) -> c_int {
    // SAFETY: the C library's own array.
    unsafe { replace(environment::current(), call) }
}
