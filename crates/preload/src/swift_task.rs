//! The hooks: functions of Swift's concurrency library between which a task of `async let` lives.
//!
//! Such a task gets no memory of its own by `malloc`. Each hook tells and then jumps on to the real function, which so finds the
//! stack and the registers of its call (Swift's own calling convention has some that C's preserves).
#![expect(unsafe_code, reason = "stands in for functions of another library")]

use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptally_runtime::event::Caller;
use heaptally_runtime::google_benchmark::definition;
use heaptally_runtime::task_origin::{async_let_begins, async_let_ends};

use crate::real::{is_known, next, prepare};

const BEGIN: usize = 0;
const FUNCTIONS: [&CStr; 2] = [c"swift_asyncLet_begin", c"swift_asyncLet_finish"];

/// Their addresses; 0: not loaded with the program.
static REAL: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Looks them up, where the library is.
pub(crate) fn look_up() {
    for (name, place) in FUNCTIONS.iter().zip(&REAL) {
        place.store(next(name) as usize, Ordering::Release);
    }
}

/// Defines a hook: its symbol and its number.
macro_rules! hook {
    ($name:ident, $number:literal) => {
        #[doc = stringify!($name)]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "push rcx",
                ".cfi_adjust_cfa_offset 8",
                "push r8",
                ".cfi_adjust_cfa_offset 8",
                "push r9",
                ".cfi_adjust_cfa_offset 8",
                "push rax",
                ".cfi_adjust_cfa_offset 8",
                "mov rsi, rdi",
                "mov edi, {number}",
                "lea rdx, [rsp + 56]",
                "mov rcx, rbp",
                "mov r8, r14",
                "call {target}",
                "mov r11, rax",
                "pop rax",
                ".cfi_adjust_cfa_offset -8",
                "pop r9",
                ".cfi_adjust_cfa_offset -8",
                "pop r8",
                ".cfi_adjust_cfa_offset -8",
                "pop rcx",
                ".cfi_adjust_cfa_offset -8",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test r11, r11",
                "je 2f",
                "jmp r11",
                "2:",
                "ud2",
                ".cfi_endproc",
                number = const $number,
                target = sym target,
            )
        }
    };
}

hook!(swift_asyncLet_begin, 0);
hook!(swift_asyncLet_finish, 1);

/// Tells, and says where to go on; 0: nowhere. `place` is the task's, `sp` points to the return address.
unsafe extern "C" fn target(number: usize, place: u64, sp: u64, bp: u64, context: u64) -> usize {
    if !is_known() {
        prepare();
    }
    let (Some(name), Some(real)) = (FUNCTIONS.get(number), REAL.get(number)) else { return 0 };
    if number == BEGIN {
        async_let_begins(Caller { sp, bp, context }, place);
    } else {
        async_let_ends(place);
    }
    match real.load(Ordering::Acquire) {
        0 => {
            // SAFETY: the hook's caller has put its return address there.
            let near = unsafe { (sp as *const u64).read() };
            definition(name, near)
        }
        address => address,
    }
}
