//! What the program tells by itself: windows, pauses, iterations.
#![expect(unsafe_code, reason = "reads C strings of the program's")]

use core::ffi::c_char;
use core::sync::atomic::Ordering;

use crate::event::with_thread;
use crate::local::{Local, RECORDING, local};
use crate::recorder::{Recorder, recorder};
use crate::start::bytes;

/// Runs a window call, unless the thread is inside the recorder.
fn window_call(name: *const c_char, call: impl FnOnce(&'static Recorder, &mut Local, &[u8])) {
    let Some(recorder) = recorder() else { return };
    let local = local();
    // SAFETY: the program passes a C string, by the function's contract.
    let Some(name) = (unsafe { bytes(name) }) else {
        recorder.tally.header().stray_ends.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let Some(idle) = local.enter(RECORDING) else {
        recorder.tally.header().lost_window_calls.fetch_add(1, Ordering::Relaxed);
        return;
    };
    call(recorder, local, name);
    local.leave(idle);
}

/// `heaptally_window_begin`
pub fn begin(name: *const c_char) {
    window_call(name, |recorder, _, name| {
        recorder.look_around();
        recorder.tally.window_begin(name);
    });
}

/// `heaptally_window_end`
pub fn end(name: *const c_char) {
    window_call(name, |recorder, _, name| {
        recorder.look_around();
        recorder.tally.window_end(name);
    });
}

/// `heaptally_thread_window_begin`
pub fn thread_begin(name: *const c_char) {
    window_call(name, |recorder, local, name| match recorder.thread(local) {
        Some(thread) => {
            recorder.look_around();
            recorder.tally.thread_window_begin(thread.tally(), name);
        }
        None => recorder.tally.lose_window(),
    });
}

/// `heaptally_thread_window_end`
pub fn thread_end(name: *const c_char) {
    // Its begin was refused too, and counted.
    window_call(name, |recorder, local, name| {
        if let Some(thread) = recorder.thread(local) {
            recorder.tally.thread_window_end(thread.tally(), name);
        }
    });
}

/// `heaptally_window_iterations`
pub fn iterations(name: *const c_char, count: u64) {
    window_call(name, |recorder, _, name| recorder.tally.window_iterations(name, count));
}

/// `heaptally_pause`
pub fn pause() {
    window_call(c"".as_ptr(), |recorder, local, _| {
        if !with_thread(recorder, local, |thread| recorder.tally.pause(thread.tally())) {
            recorder.tally.lose_window();
        }
    });
}

/// `heaptally_resume`
pub fn resume() {
    // Without a state its pause was refused too, and counted.
    window_call(c"".as_ptr(), |recorder, local, _| {
        with_thread(recorder, local, |thread| recorder.tally.resume(thread.tally()));
    });
}
