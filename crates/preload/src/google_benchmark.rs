//! The hooks: functions of Google Benchmark's shared library, which tell of a benchmark's loop.
//!
//! Each tells and then jumps on to the real function, which so finds the stack and the registers of its call.
#![expect(unsafe_code, reason = "stands in for functions of another library")]

use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptally_runtime::google_benchmark::{Step, definition, tell, tell_name};

use crate::real::{is_known, next, prepare};

const COUNT: usize = 8;

/// The real functions' names, and what they tell.
const FUNCTIONS: [(&CStr, Step); COUNT] = [
    (c"_ZN9benchmark5State16StartKeepRunningEv", Step::Begin),
    (c"_ZN9benchmark5State17FinishKeepRunningEv", Step::End),
    (c"_ZN9benchmark5State11PauseTimingEv", Step::Pause),
    (c"_ZN9benchmark5State12ResumeTimingEv", Step::Resume),
    // Up to 1.7, and since 1.8.
    (c"_ZN9benchmark5State13SkipWithErrorEPKc", Step::Skip),
    (
        c"_ZN9benchmark5State13SkipWithErrorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        Step::Skip,
    ),
    (
        c"_ZN9benchmark5State15SkipWithMessageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        Step::Skip,
    ),
    (c"_ZNK9benchmark13BenchmarkName3strB5cxx11Ev", Step::Name),
];

/// Their addresses; 0: not loaded with the program.
static REAL: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Looks them up, where the library is.
pub(crate) fn look_up() {
    for ((name, _), place) in FUNCTIONS.iter().zip(&REAL) {
        let address = next(name) as usize;
        place.store(address, Ordering::Release);
        // Every version has the first.
        if address == 0 && place.as_ptr() == REAL[0].as_ptr() {
            return;
        }
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
                "je 2f",
                "jmp rax",
                "2:",
                "ud2",
                ".cfi_endproc",
                number = const $number,
                target = sym target,
            )
        }
    };
}

hook!(_ZN9benchmark5State16StartKeepRunningEv, 0);
hook!(_ZN9benchmark5State17FinishKeepRunningEv, 1);
hook!(_ZN9benchmark5State11PauseTimingEv, 2);
hook!(_ZN9benchmark5State12ResumeTimingEv, 3);
hook!(_ZN9benchmark5State13SkipWithErrorEPKc, 4);
hook!(_ZN9benchmark5State13SkipWithErrorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE, 5);
hook!(_ZN9benchmark5State15SkipWithMessageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE, 6);

/// `std::string BenchmarkName::str() const`: what it returns is told. The caller passes the place for it first.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _ZNK9benchmark13BenchmarkName3strB5cxx11Ev() {
    naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "xor edx, edx",
        "mov edi, 7",
        "mov rsi, qword ptr [rsp + 24]",
        "call {target}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rax, rax",
        "je 2f",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call rax",
        "mov qword ptr [rsp], rax",
        "mov rdi, rax",
        "call {tell}",
        "mov rax, qword ptr [rsp]",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        "2:",
        "ud2",
        ".cfi_endproc",
        target = sym target,
        tell = sym tell_result,
    )
}

/// Tells, and says where to go on; 0: nowhere.
unsafe extern "C" fn target(number: usize, near: u64, state: usize) -> usize {
    if !is_known() {
        prepare();
    }
    let (Some((name, step)), Some(real)) = (FUNCTIONS.get(number), REAL.get(number)) else { return 0 };
    // SAFETY: the program called this step's function with that object.
    unsafe { tell(*step, state) };
    match real.load(Ordering::Acquire) {
        0 => definition(name, near),
        address => address,
    }
}

unsafe extern "C" fn tell_result(text: usize) {
    // SAFETY: the name says that it is a string of libstdc++ with the C++11 ABI.
    unsafe { tell_name(text) };
}
