//! The hooks: functions by which memory goes away. They are passed on; whoever reads the program's memory asks again then
//! what of it is there.
#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use core::ffi::{c_int, c_void};

use heaptally_runtime::event::unmapped;

use crate::real::REAL;

/// `int munmap(void *, size_t)`
///
/// Before the real functions are known it is the system call: signal handlers may call it, in which they are not looked up.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    // SAFETY: the real function's contract is the program's to keep.
    let result = unsafe { REAL.munmap(address, len) }
        // SAFETY: likewise.
        .unwrap_or_else(|| unsafe { libc::syscall(libc::SYS_munmap, address, len) } as c_int);
    unmapped();
    result
}

/// `void *mremap(void *, size_t, size_t, int, ... /* void * */)`
#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(
    address: *mut c_void,
    len: usize,
    new_len: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    // SAFETY: as above. The last argument means nothing unless the flags say so.
    let result = unsafe { REAL.mremap(address, len, new_len, flags, new) }
        // SAFETY: likewise.
        .unwrap_or_else(
            || unsafe { libc::syscall(libc::SYS_mremap, address, len, new_len, flags, new) } as *mut c_void
        );
    unmapped();
    result
}

/// `int shmdt(const void *)`
#[unsafe(no_mangle)]
unsafe extern "C" fn shmdt(address: *const c_void) -> c_int {
    // SAFETY: as above.
    let result = unsafe { REAL.shmdt(address) }
        // SAFETY: likewise.
        .unwrap_or_else(|| unsafe { libc::syscall(libc::SYS_shmdt, address) } as c_int);
    unmapped();
    result
}
