//! The library as a whole: its constructor, and what a `no_std` library owes the compiler.
#![expect(unsafe_code, reason = "a constructor and exported C functions")]

use core::ffi::{c_int, c_void};

use heaptally_runtime::{event, start};

use crate::real::{REAL, is_known, prepare};

/// Runs when the library has been loaded, after the first hooks at times.
extern "C" fn construct() {
    if is_known() || prepare() {
        start::settle();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Runs when the program exits, which it need not do: no count depends on it.
extern "C" fn destruct() {
    event::before_unload();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destruct;

/// `int dlclose(void *)`: afterwards code may have gone away.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    if !is_known() {
        prepare();
    }
    event::before_unload();
    // SAFETY: the real function's contract is the program's to keep.
    let result = unsafe { REAL.dlclose(handle) }.unwrap_or(-1);
    event::after_dlclose();
    result
}

/// `int pthread_setcanceltype(int, int *)`: the recorder has to know which threads can be cancelled inside of it.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int {
    if !is_known() {
        prepare();
    }
    // SAFETY: the real function's contract is the program's to keep.
    let result = unsafe { REAL.pthread_setcanceltype(kind, before) }.unwrap_or(libc::ENOSYS);
    if result == 0 {
        event::set_cancellable(kind == PTHREAD_CANCEL_ASYNCHRONOUS);
    }
    result
}

/// As glibc has it.
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

/// A panic in the recorder would be a fault of its own; it must not unwind into the program.
///
/// Only where the library itself is built, which is with `panic = "abort"`: the workspace's own builds check this crate
/// as an ordinary Rust library, whose user brings the handler.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

// The precompiled `core` names this function in the unwind information of code that is not always optimised away. It is
// never called: nothing here unwinds.
#[cfg(panic = "abort")]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "ud2",
    ".size rust_eh_personality, . - rust_eh_personality",
);
