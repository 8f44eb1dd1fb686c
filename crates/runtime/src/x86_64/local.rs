//! The thread-local words, by the initial-exec model.
//!
//! Not `thread_local!`: in a shared library that goes through `__tls_get_addr`, which may call `malloc`.
#![expect(unsafe_code, reason = "thread-local storage by hand")]

use core::arch::{asm, global_asm};

use crate::local::Local;

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 16",
    ".hidden heaptally_local",
    ".globl heaptally_local",
    ".type heaptally_local,@tls_object",
    ".size heaptally_local,48",
    "heaptally_local:",
    ".zero 48",
    ".popsection",
);

const _: () = assert!(size_of::<Local>() == 48 && align_of::<Local>() == 16);

/// The calling thread's [`Local`]; all zero in a new thread.
#[inline]
pub(crate) fn local() -> *mut Local {
    let local;
    // SAFETY: reads the thread pointer and a relocated constant; the sum is the thread's own bytes.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + heaptally_local@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) local,
            options(nostack, pure, readonly),
        );
    }
    local
}
