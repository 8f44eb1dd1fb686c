//! The C functions by which a program opens and closes windows, and the table of them.
//!
//! The functions are exported by name too, for programs that declare them weak.
#![expect(unsafe_code, reason = "exported C functions")]

use core::ffi::c_char;

use heaptally_runtime::abi::AbiV1;
use heaptally_runtime::window;

use crate::real::{is_known, prepare};

/// The recorder may not have started: a window can be opened before the first allocation.
fn ready() {
    if !is_known() {
        prepare();
    }
}

/// Opens a window that counts all threads.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_window_begin(name: *const c_char) {
    ready();
    window::begin(name);
}

/// Closes it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_window_end(name: *const c_char) {
    ready();
    window::end(name);
}

/// Opens a window that counts the calling thread.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_thread_window_begin(name: *const c_char) {
    ready();
    window::thread_begin(name);
}

/// Closes it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_thread_window_end(name: *const c_char) {
    ready();
    window::thread_end(name);
}

/// Adds to a window's iterations.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_window_iterations(name: *const c_char, count: u64) {
    ready();
    window::iterations(name, count);
}

/// The calling thread's allocations are not recorded from here on; nests.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_pause() {
    ready();
    window::pause();
}

/// Undoes one pause.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn heaptally_resume() {
    ready();
    window::resume();
}

/// The table: see [`AbiV1`].
#[unsafe(no_mangle)]
pub(crate) static heaptally_abi_v1: AbiV1 = AbiV1 {
    size: size_of::<AbiV1>() as u64,
    window_begin: heaptally_window_begin,
    window_end: heaptally_window_end,
    thread_window_begin: heaptally_thread_window_begin,
    thread_window_end: heaptally_thread_window_end,
    window_iterations: heaptally_window_iterations,
    pause: heaptally_pause,
    resume: heaptally_resume,
};
