//! The hooks: malloc and its family.
//!
//! Each entry point is a naked function that hands its caller's stack pointer, frame pointer and r14 on and jumps, so that the walk
//! starts exactly at the caller. What it jumps to is the same for all: a turn is asked for, the real function is called,
//! the result is told.
#![expect(unsafe_code, reason = "stands in for the C library's allocation functions")]

use core::arch::naked_asm;
use core::ffi::c_int;
use core::ptr;

use heaptally_runtime::event::{Admission, Armed, Caller, Turn, armed, enter, freed_inside, freeing};
use heaptally_runtime::{Allocation, EntryPoint, FreeKind};

use crate::arena;
use crate::real::{REAL, is_known, prepare};

// NOTE: the C library's own names for them (`__libc_malloc` …) are in `libc_name.rs`.

/// Defines an entry point: its name, the registers behind its own arguments, and where it jumps to.
macro_rules! entry_point {
    ($(#[$docs:meta])* $name:ident, $sp:literal, $bp:literal, $context:literal, $body:ident) => {
        $(#[$docs])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $bp, ", rbp"),
                concat!("mov ", $context, ", r14"),
                "jmp {}",
                ".cfi_endproc",
                sym $body,
            )
        }
    };
}

pub(crate) use entry_point;

entry_point!(/** `void *malloc(size_t)` */ malloc, "rsi", "rdx", "rcx", malloc_body);
entry_point!(/** `void *calloc(size_t, size_t)` */ calloc, "rdx", "rcx", "r8", calloc_body);
entry_point!(/** `void *realloc(void *, size_t)` */ realloc, "rdx", "rcx", "r8", realloc_body);
entry_point!(/** `void *reallocarray(void *, size_t, size_t)` */ reallocarray, "rcx", "r8", "r9", reallocarray_body);
entry_point!(/** `int posix_memalign(void **, size_t, size_t)` */ posix_memalign, "rcx", "r8", "r9", posix_memalign_body);
entry_point!(/** `void *aligned_alloc(size_t, size_t)` */ aligned_alloc, "rdx", "rcx", "r8", aligned_alloc_body);
entry_point!(/** `void *memalign(size_t, size_t)` */ memalign, "rdx", "rcx", "r8", memalign_body);
entry_point!(/** `void *valloc(size_t)` */ valloc, "rsi", "rdx", "rcx", valloc_body);
entry_point!(/** `void *pvalloc(size_t)` */ pvalloc, "rsi", "rdx", "rcx", pvalloc_body);

/// Calls the real function inside a turn and tells what came of it.
#[inline(always)]
pub(crate) fn allocate(
    caller: Caller,
    entry_point: EntryPoint,
    size: usize,
    alignment: usize,
    call: impl Fn() -> Option<*mut u8>,
) -> *mut u8 {
    let Some(armed) = armed() else {
        return allocate_unarmed(caller, entry_point, size, alignment, call);
    };
    if armed.is_closed() {
        let block = call().unwrap_or(ptr::null_mut());
        armed.passed(block as usize);
        return block;
    }
    allocate_recorded(armed, caller, entry_point, size, call)
}

/// PERF: apart, so that an allocation outside of windows saves no registers.
#[inline(never)]
fn allocate_recorded(
    armed: Armed,
    caller: Caller,
    entry_point: EntryPoint,
    size: usize,
    call: impl Fn() -> Option<*mut u8>,
) -> *mut u8 {
    record(armed.enter(), caller, entry_point, size, call)
}

/// Before the recorder has started, and in processes that it does not record.
#[inline(never)]
fn allocate_unarmed(
    caller: Caller,
    entry_point: EntryPoint,
    size: usize,
    alignment: usize,
    call: impl Fn() -> Option<*mut u8>,
) -> *mut u8 {
    if !is_known() && !prepare() {
        return arena::allocate(size, alignment);
    }
    record(enter(true), caller, entry_point, size, call)
}

#[inline(always)]
fn record(
    admission: Admission,
    caller: Caller,
    entry_point: EntryPoint,
    size: usize,
    call: impl Fn() -> Option<*mut u8>,
) -> *mut u8 {
    match admission {
        Admission::Record(turn) => {
            let block = call().unwrap_or(ptr::null_mut());
            tell(&turn, caller, entry_point, block, size);
            block
        }
        Admission::Pass => call().unwrap_or(ptr::null_mut()),
    }
}

#[inline(always)]
fn tell(turn: &Turn, caller: Caller, entry_point: EntryPoint, block: *mut u8, size: usize) {
    if block.is_null() {
        turn.failed(caller, entry_point);
    } else {
        turn.allocated(caller, entry_point, block as usize, size as u64, Allocation::New);
    }
}

unsafe extern "C" fn malloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: the real function's contract is the program's to keep.
    allocate(Caller { sp, bp, context }, EntryPoint::Malloc, size, 1, || unsafe { REAL.malloc(size) })
}

unsafe extern "C" fn calloc_body(count: usize, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    let total = count.saturating_mul(size);
    // SAFETY: as above.
    allocate(Caller { sp, bp, context }, EntryPoint::Calloc, total, 1, || unsafe { REAL.calloc(count, size) })
}

unsafe extern "C" fn aligned_alloc_body(
    alignment: usize,
    size: usize,
    sp: u64,
    bp: u64,
    context: u64,
) -> *mut u8 {
    // SAFETY: as above.
    let call = || unsafe { REAL.aligned_alloc(alignment, size) };
    allocate(Caller { sp, bp, context }, EntryPoint::AlignedAlloc, size, alignment, call)
}

unsafe extern "C" fn memalign_body(alignment: usize, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    let call = || unsafe { REAL.memalign(alignment, size) };
    allocate(Caller { sp, bp, context }, EntryPoint::Memalign, size, alignment, call)
}

unsafe extern "C" fn valloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    allocate(Caller { sp, bp, context }, EntryPoint::Valloc, size, 4096, || unsafe { REAL.valloc(size) })
}

unsafe extern "C" fn pvalloc_body(size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    allocate(Caller { sp, bp, context }, EntryPoint::Pvalloc, size, 4096, || unsafe { REAL.pvalloc(size) })
}

unsafe extern "C" fn posix_memalign_body(
    place: *mut *mut u8,
    alignment: usize,
    size: usize,
    sp: u64,
    bp: u64,
    context: u64,
) -> c_int {
    if !is_known() && !prepare() {
        let block = arena::allocate(size, alignment);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the program passes a place for the result.
        unsafe { place.write(block) };
        return 0;
    }
    // SAFETY: as above.
    let call = || unsafe { REAL.posix_memalign(place, alignment, size) }.unwrap_or(libc::ENOMEM);
    match enter(true) {
        Admission::Record(turn) => {
            let result = call();
            // SAFETY: on success the real function wrote the block there.
            let block = if result == 0 { unsafe { place.read() } } else { ptr::null_mut() };
            tell(&turn, Caller { sp, bp, context }, EntryPoint::PosixMemalign, block, size);
            result
        }
        Admission::Pass => call(),
    }
}

unsafe extern "C" fn realloc_body(block: *mut u8, size: usize, sp: u64, bp: u64, context: u64) -> *mut u8 {
    // SAFETY: as above.
    reallocate(Caller { sp, bp, context }, EntryPoint::Realloc, block, size, || unsafe {
        REAL.realloc(block, size)
    })
}

unsafe extern "C" fn reallocarray_body(
    block: *mut u8,
    count: usize,
    size: usize,
    sp: u64,
    bp: u64,
    context: u64,
) -> *mut u8 {
    let total = count.checked_mul(size);
    let call = || match total {
        // NOTE: not through the C library's own function, which calls `realloc` by its public name: that would come
        // here a second time.
        // SAFETY: as above.
        Some(total) => unsafe { REAL.realloc(block, total) },
        // It fails, and sets errno.
        // SAFETY: as above.
        None => unsafe { REAL.reallocarray(block, count, size) },
    };
    reallocate(Caller { sp, bp, context }, EntryPoint::Reallocarray, block, total.unwrap_or(usize::MAX), call)
}

#[inline(always)]
pub(crate) fn reallocate(
    caller: Caller,
    entry_point: EntryPoint,
    block: *mut u8,
    size: usize,
    call: impl Fn() -> Option<*mut u8>,
) -> *mut u8 {
    let is_ready = is_known() || prepare();
    if !is_ready || arena::owns(block) {
        return reallocate_early(caller, entry_point, block, size);
    }
    let Admission::Record(turn) = enter(true) else {
        if !block.is_null() {
            freed_inside(block as usize);
        }
        return call().unwrap_or(ptr::null_mut());
    };
    if block.is_null() {
        let new = call().unwrap_or(ptr::null_mut());
        tell(&turn, caller, entry_point, new, size);
        return new;
    }
    // Before the call: behind it, another thread may have been given the old address.
    let known = turn.take_block(block as usize);
    let new = call().unwrap_or(ptr::null_mut());
    if new.is_null() {
        if size == 0 {
            turn.freed(block as usize, known, FreeKind::Realloc);
            turn.reallocated_to_zero(caller, entry_point);
        } else {
            turn.keep(block as usize, known);
            turn.failed(caller, entry_point);
        }
        return new;
    }
    turn.freed(block as usize, known, FreeKind::Realloc);
    let kind = if new == block { Allocation::ReallocInPlace } else { Allocation::ReallocMoved };
    turn.allocated(caller, entry_point, new as usize, size as u64, kind);
    new
}

/// A realloc before the real functions are known, or of a block that the arena gave then.
#[cold]
#[inline(never)]
fn reallocate_early(caller: Caller, entry_point: EntryPoint, block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the real function's contract is the program's to keep.
    let new = allocate(caller, entry_point, size, 1, || unsafe { REAL.malloc(size) });
    if !new.is_null() && !block.is_null() {
        let kept = arena::size(block).min(size);
        // SAFETY: both blocks have at least that many bytes, and a new block overlaps no other.
        unsafe { ptr::copy_nonoverlapping(block, new, kept) };
    }
    new
}

/// Tells that a block is about to be given back; false: it is the arena's, and there is nothing to do.
#[inline(always)]
pub(crate) fn about_to_free(block: *mut u8) -> bool {
    if block.is_null() {
        return true;
    }
    if arena::owns(block) || (armed().is_none() && !is_known() && !prepare()) {
        return false;
    }
    freeing(block as usize);
    true
}

/// Not the exported `free` itself: a reference to that may reach the program's own.
#[inline(always)]
fn free_body(block: *mut u8) {
    if about_to_free(block) {
        // SAFETY: as above.
        unsafe { REAL.free(block) };
    }
}

/// `void free(void *)`
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut u8) {
    free_body(block);
}

/// `void cfree(void *)`, which C libraries had until 2018.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cfree(block: *mut u8) {
    free_body(block);
}

/// `void free_sized(void *, size_t)` of C23
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_sized(block: *mut u8, size: usize) {
    // SAFETY: as above. Where the C library lacks the function, `free` does the same.
    if about_to_free(block) && unsafe { REAL.free_sized(block, size) }.is_none() {
        // SAFETY: as above.
        unsafe { REAL.free(block) };
    }
}

/// `void free_aligned_sized(void *, size_t, size_t)` of C23
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_aligned_sized(block: *mut u8, alignment: usize, size: usize) {
    // SAFETY: as above.
    if about_to_free(block) && unsafe { REAL.free_aligned_sized(block, alignment, size) }.is_none() {
        // SAFETY: as above.
        unsafe { REAL.free(block) };
    }
}
