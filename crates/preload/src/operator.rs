//! The hooks: C++'s `operator new` and `delete`.
//!
//! Where a C++ runtime's stand behind them they jump there at once. Another allocator's, and another library's, are called
//! and told.
//! An exception that the real operator throws passes through: the frames here are described, and hold nothing.
#![expect(unsafe_code, reason = "stands in for the C++ runtime's operators")]

use core::arch::naked_asm;

use heaptally_runtime::event::{Admission, Caller, enter, freeing, recorded};
use heaptally_runtime::operator_new::{self, LIBRARY, PASS, RUNTIME, Target, entry_point};
use heaptally_runtime::{Allocation, FreeKind};

use crate::real::{is_known, prepare};

/// Defines an `operator new`: its symbol, its number, and its number times eight.
macro_rules! operator_new {
    ($name:ident, $number:literal) => {
        #[doc = stringify!($name)]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "mov rax, qword ptr [rip + {pass} + 8*{number}]",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                // Ask where to go, keeping the arguments.
                "2:",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov edi, {number}",
                "mov rsi, qword ptr [rsp + 24]",
                "call {target}",
                "mov rcx, rdx",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "je 4f",
                "test rcx, rcx",
                "jne 3f",
                "jmp rax",
                // Another allocator's: call it and tell. rbp and r14 are the caller's throughout; the latter is an argument
                // on the stack.
                "3:",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "sub rsp, 32",
                ".cfi_adjust_cfa_offset 32",
                "mov qword ptr [rsp + 24], rcx",
                "call rax",
                "mov qword ptr [rsp + 16], rax",
                "mov rdi, rax",
                "mov rsi, qword ptr [rsp + 32]",
                "lea rdx, [rsp + 40]",
                "mov rcx, rbp",
                "mov r8d, {number}",
                "mov r9, qword ptr [rsp + 24]",
                "mov qword ptr [rsp], r14",
                "call {tell}",
                "mov rax, qword ptr [rsp + 16]",
                "add rsp, 40",
                ".cfi_adjust_cfa_offset -40",
                "ret",
                "4:",
                "ud2",
                ".cfi_endproc",
                pass = sym PASS,
                number = const $number,
                target = sym target,
                tell = sym tell_new,
            )
        }
    };
}

/// Defines an `operator delete`.
macro_rules! operator_delete {
    ($name:ident, $number:literal) => {
        #[doc = stringify!($name)]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "mov rax, qword ptr [rip + {pass} + 8*{number}]",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2:",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov rdx, rdi",
                "mov edi, {number}",
                "mov rsi, qword ptr [rsp + 24]",
                "call {target}",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "je 4f",
                "jmp rax",
                "4:",
                "ud2",
                ".cfi_endproc",
                pass = sym PASS,
                number = const $number,
                target = sym target_and_tell_delete,
            )
        }
    };
}

operator_new!(_Znwm, 0);
operator_new!(_Znam, 1);
operator_new!(_ZnwmRKSt9nothrow_t, 2);
operator_new!(_ZnamRKSt9nothrow_t, 3);
operator_new!(_ZnwmSt11align_val_t, 4);
operator_new!(_ZnamSt11align_val_t, 5);
operator_new!(_ZnwmSt11align_val_tRKSt9nothrow_t, 6);
operator_new!(_ZnamSt11align_val_tRKSt9nothrow_t, 7);
operator_delete!(_ZdlPv, 8);
operator_delete!(_ZdaPv, 9);
operator_delete!(_ZdlPvm, 10);
operator_delete!(_ZdaPvm, 11);
operator_delete!(_ZdlPvRKSt9nothrow_t, 12);
operator_delete!(_ZdaPvRKSt9nothrow_t, 13);
operator_delete!(_ZdlPvSt11align_val_t, 14);
operator_delete!(_ZdaPvSt11align_val_t, 15);
operator_delete!(_ZdlPvmSt11align_val_t, 16);
operator_delete!(_ZdaPvmSt11align_val_t, 17);
operator_delete!(_ZdlPvSt11align_val_tRKSt9nothrow_t, 18);
operator_delete!(_ZdaPvSt11align_val_tRKSt9nothrow_t, 19);

#[cold]
unsafe extern "C" fn target(operator: usize, near: u64) -> Target {
    if !is_known() {
        prepare();
    }
    operator_new::target(operator, near)
}

#[cold]
unsafe extern "C" fn target_and_tell_delete(operator: usize, near: u64, block: *mut u8) -> Target {
    // SAFETY: it has no contract beyond its types.
    let target = unsafe { target(operator, near) };
    if target.kind != RUNTIME && !block.is_null() {
        if target.kind < LIBRARY {
            freeing(block as usize);
        } else if let Admission::Record(turn) = enter(false) {
            // What another library's operator frees by `free` is told there.
            if let Some(known) = turn.take_new_block(block as usize) {
                turn.freed(block as usize, Some(known), FreeKind::Free);
            }
        }
    }
    target
}

unsafe extern "C" fn tell_new(
    block: *mut u8,
    size: usize,
    sp: u64,
    bp: u64,
    operator: usize,
    kind: usize,
    context: u64,
) {
    let Some(entry_point) = entry_point(operator) else { return };
    // It called `malloc`, and that was recorded there.
    if kind >= LIBRARY && LIBRARY.saturating_add(recorded() as usize) != kind {
        return;
    }
    let Admission::Record(turn) = enter(true) else { return };
    let caller = Caller { sp, bp, context };
    if block.is_null() {
        turn.failed(caller, entry_point);
    } else if !turn.is_latest(block as usize) {
        turn.allocated(caller, entry_point, block as usize, size as u64, Allocation::New);
    }
}
