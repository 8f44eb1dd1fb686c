//! The hooks: the exec family.
#![expect(unsafe_code, reason = "stands in for the C library's exec functions")]

use core::arch::naked_asm;
use core::ffi::{c_char, c_int};

use heaptally_runtime::exec::{replace, replace_with_current};

use crate::real::{REAL, Strings, is_known, prepare};

pub(crate) fn ready() {
    if !is_known() {
        prepare();
    }
}

/// `int execve(const char *, char *const [], char *const [])`
#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    ready();
    // SAFETY: the real function's contract is the program's to keep.
    let call = |environment| unsafe { REAL.execve(path, arguments, environment) }.unwrap_or(-1);
    // SAFETY: likewise.
    unsafe { replace(environment, path, call) }
}

/// `int execv(const char *, char *const [])`
#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    ready();
    // SAFETY: as above.
    let call = |environment| unsafe { REAL.execve(path, arguments, environment) }.unwrap_or(-1);
    // SAFETY: as above.
    unsafe { replace_with_current(path, call) }
}

/// `int execvp(const char *, char *const [])`
#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    ready();
    // SAFETY: as above.
    let call = |environment| unsafe { REAL.execvpe(file, arguments, environment) }.unwrap_or(-1);
    // SAFETY: as above.
    unsafe { replace_with_current(file, call) }
}

/// `int execvpe(const char *, char *const [], char *const [])`
#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(file: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    ready();
    // SAFETY: as above.
    let call = |environment| unsafe { REAL.execvpe(file, arguments, environment) }.unwrap_or(-1);
    // SAFETY: as above.
    unsafe { replace(environment, file, call) }
}

/// `int fexecve(int, char *const [], char *const [])`
#[unsafe(no_mangle)]
unsafe extern "C" fn fexecve(file: c_int, arguments: Strings, environment: Strings) -> c_int {
    ready();
    // SAFETY: as above.
    let call = |environment| unsafe { REAL.fexecve(file, arguments, environment) }.unwrap_or(-1);
    // SAFETY: as above.
    unsafe { replace(environment, argument(arguments), call) }
}

/// `int execveat(int, const char *, char *const [], char *const [], int)`
#[unsafe(no_mangle)]
unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    ready();
    // SAFETY: as above.
    let call =
        |environment| unsafe { REAL.execveat(folder, path, arguments, environment, flags) }.unwrap_or(-1);
    // SAFETY: as above. An empty path names the descriptor.
    let name = unsafe { if path.is_null() || *path == 0 { argument(arguments) } else { path } };
    // SAFETY: as above.
    unsafe { replace(environment, name, call) }
}

/// The program's own name for itself, where no path is at hand.
unsafe fn argument(arguments: Strings) -> *const c_char {
    if arguments.is_null() {
        return core::ptr::null();
    }
    // SAFETY: the array ends with a null pointer, by the exec function's contract.
    unsafe { *arguments }
}

/// Defines a function whose arguments are a list: the first is kept, the others, which end with a null pointer, become an
/// array on the stack, since those in registers are pushed below those that lie there already.
macro_rules! with_list {
    ($(#[$docs:meta])* $name:ident, $body:ident) => {
        $(#[$docs])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "pop r10",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_register rip, r10",
                "push r9",
                ".cfi_adjust_cfa_offset 8",
                "push r8",
                ".cfi_adjust_cfa_offset 8",
                "push rcx",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "mov rsi, rsp",
                "push r10",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_offset rip, -48",
                "call {}",
                "pop r10",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_register rip, r10",
                "add rsp, 40",
                ".cfi_adjust_cfa_offset -40",
                "push r10",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_offset rip, -8",
                "ret",
                ".cfi_endproc",
                sym $body,
            )
        }
    };
}

with_list!(/** `int execl(const char *, const char *, ...)` */ execl, execl_body);
with_list!(/** `int execlp(const char *, const char *, ...)` */ execlp, execlp_body);
with_list!(/** `int execle(const char *, const char *, ..., char *const [])` */ execle, execle_body);

unsafe extern "C" fn execl_body(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execv(path, arguments) }
}

unsafe extern "C" fn execlp_body(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execvp(file, arguments) }
}

unsafe extern "C" fn execle_body(path: *const c_char, arguments: Strings) -> c_int {
    let mut end = arguments;
    // SAFETY: the list ends with a null pointer, and the environment follows.
    let environment = unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        *end.add(1).cast::<Strings>()
    };
    // SAFETY: as above.
    unsafe { execve(path, arguments, environment) }
}
