//! The table of C functions by which a program, the header `heaptally.h` and the crate `heaptally` reach the recorder.
//!
//! It is found by `dlsym(RTLD_DEFAULT, "heaptally_abi_v1")`. A field that lies beyond `size` does not exist.

use core::ffi::c_char;

/// Opens or closes a window of the given name, a C string.
pub type WindowFn = unsafe extern "C" fn(*const c_char);
/// Tells iterations of the window of the given name, a C string.
pub type IterationsFn = unsafe extern "C" fn(*const c_char, u64);
/// Pauses or resumes the calling thread.
pub type ThreadFn = unsafe extern "C" fn();

/// The name under which the recorder exports its [`AbiV1`].
pub const ABI_V1_NAME: &core::ffi::CStr = c"heaptally_abi_v1";

/// The recorder's functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AbiV1 {
    /// The table's size in bytes.
    pub size: u64,
    /// Opens a window that counts all threads.
    pub window_begin: WindowFn,
    /// Closes it.
    pub window_end: WindowFn,
    /// Opens a window that counts the calling thread.
    pub thread_window_begin: WindowFn,
    /// Closes it.
    pub thread_window_end: WindowFn,
    /// Adds to a window's iterations.
    pub window_iterations: IterationsFn,
    /// The calling thread's allocations are not recorded from here on; nests.
    pub pause: ThreadFn,
    /// Undoes one pause.
    pub resume: ThreadFn,
}
