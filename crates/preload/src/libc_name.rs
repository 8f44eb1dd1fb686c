//! The hooks: the C library's own names of the allocation functions, `__libc_malloc` and its like.
//!
//! Allocators and tools of others call them to reach the C library's `malloc` behind their own. What comes here from
//! inside an allocation function is that function's, and passed on; what a program calls itself is recorded.
#![expect(unsafe_code, reason = "stands in for the C library's allocation functions")]

use core::arch::naked_asm;

use heaptally_runtime::EntryPoint;
use heaptally_runtime::event::Caller;

use crate::allocation::{about_to_free, allocate, entry_point, reallocate};
use crate::real::REAL;

entry_point!(/** `void *__libc_malloc(size_t)` */ __libc_malloc, "rsi", "rdx", "rcx", malloc_body);
entry_point!(/** `void *__libc_calloc(size_t, size_t)` */ __libc_calloc, "rdx", "rcx", "r8", calloc_body);
entry_point!(/** `void *__libc_realloc(void *, size_t)` */ __libc_realloc, "rdx", "rcx", "r8", realloc_body);
entry_point!(/** `void *__libc_memalign(size_t, size_t)` */ __libc_memalign, "rdx", "rcx", "r8", memalign_body);
entry_point!(/** `void *__libc_valloc(size_t)` */ __libc_valloc, "rsi", "rdx", "rcx", valloc_body);
entry_point!(/** `void *__libc_pvalloc(size_t)` */ __libc_pvalloc, "rsi", "rdx", "rcx", pvalloc_body);

unsafe extern "C" fn malloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: the real function's contract is the program's to keep.
    allocate(Caller { sp, bp, context }, EntryPoint::LibcMalloc, size, 1, || unsafe {
        REAL.libc_malloc(size)
    })
}

unsafe extern "C" fn calloc_body(count: usize, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    let total = count.saturating_mul(size);
    // SAFETY: as above.
    let call = || unsafe { REAL.libc_calloc(count, size) };
    allocate(Caller { sp, bp, context }, EntryPoint::LibcCalloc, total, 1, call)
}

unsafe extern "C" fn realloc_body(block: *mut u8, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    let call = || unsafe { REAL.libc_realloc(block, size) };
    reallocate(Caller { sp, bp, context }, EntryPoint::LibcRealloc, block, size, call)
}

unsafe extern "C" fn memalign_body(alignment: usize, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    let call = || unsafe { REAL.libc_memalign(alignment, size) };
    allocate(Caller { sp, bp, context }, EntryPoint::LibcMemalign, size, alignment, call)
}

unsafe extern "C" fn valloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    allocate(Caller { sp, bp, context }, EntryPoint::LibcValloc, size, 4096, || unsafe {
        REAL.libc_valloc(size)
    })
}

unsafe extern "C" fn pvalloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    allocate(Caller { sp, bp, context }, EntryPoint::LibcPvalloc, size, 4096, || unsafe {
        REAL.libc_pvalloc(size)
    })
}

/// `void __libc_free(void *)`
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_free(block: *mut u8) {
    if about_to_free(block) {
        // SAFETY: as above.
        unsafe { REAL.libc_free(block) };
    }
}
