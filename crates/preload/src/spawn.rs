//! The hooks: functions that start a program as a child.
#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use heaptally_runtime::exec::{shell, spawn};

use crate::exec::ready;
use crate::real::{REAL, Strings};

/// Defines a function of `posix_spawn`'s kind.
macro_rules! spawner {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            child: *mut c_int,
            program: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: Strings,
            environment: Strings,
        ) -> c_int {
            ready();
            // SAFETY: the real function's contract is the program's to keep.
            let call = |environment| unsafe {
                REAL.$name(child, program, actions, attributes, arguments, environment).unwrap_or(libc::ENOSYS)
            };
            // SAFETY: likewise.
            unsafe { spawn(environment, program, call) }
        }
    };
}

spawner!(/** `int posix_spawn(pid_t *, const char *, …)` */ posix_spawn);
spawner!(/** `int posix_spawnp(pid_t *, const char *, …)` */ posix_spawnp);
spawner!(/** `int pidfd_spawn(int *, const char *, …)`, of glibc 2.39 */ pidfd_spawn);
spawner!(/** `int pidfd_spawnp(int *, const char *, …)`, of glibc 2.39 */ pidfd_spawnp);

/// `int system(const char *)`
#[unsafe(no_mangle)]
unsafe extern "C" fn system(command: *const c_char) -> c_int {
    ready();
    // SAFETY: as above. A result of -1 does not say that there was no child.
    shell(|| unsafe { REAL.system(command) }.unwrap_or(-1), |_| false)
}

/// `FILE *popen(const char *, const char *)`
#[unsafe(no_mangle)]
unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    ready();
    // SAFETY: as above.
    shell(|| unsafe { REAL.popen(command, mode) }.unwrap_or(ptr::null_mut()), |file| file.is_null())
}
