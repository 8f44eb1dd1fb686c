//! The registers of the function that runs.

#![expect(unsafe_code, reason = "reads registers")]

use core::arch::asm;

/// pc, rsp, rbp and rbx in the function that this is inlined into.
#[inline(always)]
pub(crate) fn registers() -> [u64; 4] {
    let (pc, sp, bp, bx);
    // SAFETY: reads registers into others.
    unsafe {
        asm!(
            "lea rax, [rip]",
            "mov rcx, rsp",
            "mov rdx, rbp",
            "mov rsi, rbx",
            out("rax") pc,
            out("rcx") sp,
            out("rdx") bp,
            out("rsi") bx,
            options(nomem, nostack, preserves_flags),
        );
    }
    [pc, sp, bp, bx]
}
