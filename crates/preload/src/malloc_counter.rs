//! The hooks: functions of the malloc counters that Swift's package-benchmark carries, which it calls around iterations.
//!
//! They come from a library whose own `malloc` stands behind the recorder's. Each tells and then jumps on to the real function,
//! which so finds its arguments, however many it has. Where there is none it returns.
#![expect(unsafe_code, reason = "stands in for functions of another library")]

use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptally_runtime::google_benchmark::definition;
use heaptally_runtime::package_benchmark::{Step, set_counters_there, tell};

use crate::real::{is_known, next, prepare};

const COUNT: usize = 5;

/// The real functions' names.
const FUNCTIONS: [&CStr; COUNT] = [
    c"set_malloc_hook",
    c"clear_malloc_hook",
    c"malloc_interposer_enable",
    c"malloc_interposer_disable",
    c"malloc_interposer_get_stats",
];

/// Their addresses; 0: not loaded with the program.
static REAL: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Looks them up, where the library is.
pub(crate) fn look_up() {
    let mut is_any_there = false;
    for (name, place) in FUNCTIONS.iter().zip(&REAL) {
        let address = next(name) as usize;
        place.store(address, Ordering::Release);
        is_any_there |= address != 0;
    }
    if is_any_there {
        set_counters_there();
    }
}

/// Defines a hook that tells and jumps on: its symbol and its number.
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
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "mov rdx, rdi",
                "mov edi, {number}",
                "mov rsi, qword ptr [rsp + 56]",
                "call {target}",
                "add rsp, 8",
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
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2:",
                "ret",
                ".cfi_endproc",
                number = const $number,
                target = sym target,
            )
        }
    };
}

hook!(set_malloc_hook, 0);
hook!(clear_malloc_hook, 1);
hook!(malloc_interposer_enable, 2);
hook!(malloc_interposer_disable, 3);
hook!(malloc_interposer_get_stats, 4);

/// Tells, and says where to go on; 0: nowhere. `near` is an address in the caller, `first` what it passes first.
unsafe extern "C" fn target(number: usize, near: u64, first: usize) -> usize {
    if !is_known() {
        prepare();
    }
    let (Some(name), Some(real)) = (FUNCTIONS.get(number), REAL.get(number)) else { return 0 };
    let address = match real.load(Ordering::Acquire) {
        0 => definition(name, near),
        address => address,
    };
    // What does not exist does not count either.
    if address != 0 {
        tell(match number {
            0 if first != 0 => Step::Hooked,
            0 | 1 => Step::Unhooked,
            2 => Step::Enabled,
            3 => Step::Disabled,
            _ => Step::Read,
        });
    }
    address
}
