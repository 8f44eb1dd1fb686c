//! Programs that this process starts, in its own place or as children.
//!
//! An image that replaces this one in the same process is recorded too, in an area of its own. A child's is recorded
//! where that was asked for, and counted otherwise.
#![expect(unsafe_code, reason = "passes an environment on")]

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;

use heaptally_segment::layout::{FLAG_CHILD, FLAG_OUT_OF_REACH, STATE_ATTACHED, STATE_REPLACED};

use crate::child::{self, Place, Process};
use crate::environment;
use crate::event::quietly;
use crate::local::{IDLE, QUIET, local};
use crate::next_image::takes_recorder;
use crate::recorder::{Recorder, recorder};

/// An array of C strings that ends with a null pointer.
type Strings = *const *const c_char;

/// Calls an exec function with the environment that the next image needs to record on, if it is to.
///
/// # Safety
/// `given` is null or an array of C strings that ends with a null pointer; `program` is null or a C string.
pub unsafe fn replace(given: Strings, program: *const c_char, call: impl Fn(Strings) -> c_int) -> c_int {
    match child::process() {
        Process::Foreign => call(given),
        // SAFETY: by the caller.
        Process::Recorded(recorder) => unsafe { replace_recorded(recorder, given, program, call) },
        Process::Forked => {
            // SAFETY: by the caller.
            let left = unsafe { child::leave(program) };
            // SAFETY: by the caller.
            let result = unsafe { with_place(given, left.0, program, false, call) };
            child::stay(left);
            result
        }
        Process::Borrowing => {
            // SAFETY: by the caller.
            let Some(place) = (unsafe { child::begin(program) }) else { return call(given) };
            // SAFETY: by the caller.
            let result = unsafe { with_place(given, place, program, true, call) };
            child::remove(place);
            result
        }
    }
}

/// The recorded process itself goes on to another image. Back here only if that failed.
unsafe fn replace_recorded(
    recorder: &Recorder,
    given: Strings,
    program: *const c_char,
    call: impl Fn(Strings) -> c_int,
) -> c_int {
    let header = recorder.tally.header();
    // Of a child nobody would notice that its next image did not record: it counts until it does.
    let is_child = header.flags.load(Ordering::Relaxed) & FLAG_CHILD != 0;
    // SAFETY: by the caller.
    let place = if is_child { unsafe { child::begin(program) } } else { None };
    let is_in_reach = environment::is_in_reach();
    match is_in_reach {
        true => header.flags.fetch_and(!FLAG_OUT_OF_REACH, Ordering::Relaxed),
        // The loader would complain in the program's name.
        false => header.flags.fetch_or(FLAG_OUT_OF_REACH, Ordering::Relaxed),
    };
    // SAFETY: by the caller.
    let next = if is_in_reach && unsafe { takes_recorder(program, given) } {
        // SAFETY: by the caller.
        match unsafe { environment::for_next_image(given, place) } {
            Some(next) => Some(next),
            None => return end(place, call(given)),
        }
    } else {
        None
    };
    // SAFETY: by the caller.
    note_next(recorder, unsafe { child::path_bytes(program) });
    header.state.store(STATE_REPLACED, Ordering::Release);
    let result = call(next.as_ref().map_or(given, |next| next.entries()));
    header.state.store(STATE_ATTACHED, Ordering::Release);
    end(place, result)
}

/// Back from an exec that failed.
fn end(place: Option<Place>, result: c_int) -> c_int {
    if let Some(place) = place {
        child::remove(place);
    }
    result
}

/// Writes which program comes next: if its image does not record, that is its name.
fn note_next(recorder: &Recorder, program: &[u8]) {
    // A signal handler that interrupted the recorder may hold what a text is written under.
    if local().busy != IDLE {
        return;
    }
    quietly(|| {
        let header = recorder.tally.header();
        if let Some(offset) = recorder.tally.intern(program) {
            header.next_program.store(offset, Ordering::Relaxed);
            header.next_program_len.store(program.len() as u32, Ordering::Relaxed);
        }
    });
}

/// Calls with the environment for a child's image.
///
/// # Safety
/// As [`replace`].
unsafe fn with_place(
    given: Strings,
    place: Place,
    program: *const c_char,
    borrows: bool,
    call: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // SAFETY: by the caller.
    if !child::is_followed() || !environment::is_in_reach() || !unsafe { takes_recorder(program, given) } {
        return call(given);
    }
    if borrows {
        // SAFETY: by the caller.
        return unsafe { environment::with_next_on_stack(given, place, call) };
    }
    // SAFETY: by the caller.
    match unsafe { environment::for_next_image(given, Some(place)) } {
        Some(next) => call(next.entries()),
        None => call(given),
    }
}

/// The same as [`replace`] with the environment that the program has now.
///
/// # Safety
/// `program` is null or a C string.
pub unsafe fn replace_with_current(program: *const c_char, call: impl Fn(Strings) -> c_int) -> c_int {
    // SAFETY: the C library's own array; the program by the caller.
    unsafe { replace(environment::current(), program, call) }
}

/// Calls `posix_spawn` or its like, which returns when the child's image runs, 0 if it does.
///
/// # Safety
/// As [`replace`].
pub unsafe fn spawn(given: Strings, program: *const c_char, call: impl FnOnce(Strings) -> c_int) -> c_int {
    // SAFETY: by the caller.
    let Some(place) = (unsafe { child::begin(program) }) else { return call(given) };
    // SAFETY: by the caller. The child has left this memory when the call returns.
    let result = unsafe { with_place(given, place, program, false, call) };
    if result != 0 {
        child::remove(place);
    }
    result
}

/// Calls `system` or `popen`, which start the shell with the program's own `environ`; `has_failed` tells by the result
/// whether the shell was not started.
pub fn shell<R>(call: impl FnOnce() -> R, has_failed: impl FnOnce(&R) -> bool) -> R {
    // SAFETY: a C string.
    let Some(place) = (unsafe { child::begin(c"sh".as_ptr()) }) else { return call() };
    let lent = child::is_followed() && environment::lend(place);
    let local = local();
    if lent {
        // `system` can be cancelled, and then does not return here: the thread's end takes back what it was lent.
        local.lent += 1;
        if let Some(recorder) = recorder() {
            let before = core::mem::replace(&mut local.busy, QUIET);
            recorder.thread(local);
            local.busy = before;
        }
    }
    let result = call();
    if lent {
        local.lent = local.lent.saturating_sub(1);
        environment::take_back();
    }
    if has_failed(&result) {
        child::remove(place);
    }
    result
}
