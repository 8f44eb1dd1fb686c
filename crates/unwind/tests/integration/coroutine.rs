//! Stacks that are not the thread's.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

use heaptally_unwind::End;

use crate::frame_shape::shape_other_stack;
use crate::harness::{OTHER_STACK, Recorder, process};

thread_local! {
    static RECORDER: Cell<*mut Recorder> = const { Cell::new(std::ptr::null_mut()) };
    static CONTEXTS: Cell<*mut [libc::ucontext_t; 3]> = const { Cell::new(std::ptr::null_mut()) };
}

extern "C" fn fiber(number: usize) {
    for round in 0..50 {
        deep(round % 7);
        // SAFETY: the test set up these contexts.
        unsafe { libc::swapcontext(&raw mut (*CONTEXTS.get())[number], &raw const (*CONTEXTS.get())[2]) };
    }
}

#[inline(never)]
fn deep(depth: u32) {
    if depth > 0 {
        deep(depth - 1);
    }
    // SAFETY: the test stored its recorder.
    unsafe { &mut *RECORDER.get() }.event();
}

/// What a context's first function returns to, as the runtime learns it: the word at the new stack's top.
fn coroutine_start() -> u64 {
    // SAFETY: an all-zero context is what `getcontext` fills.
    let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
    let mut stack = vec![0u64; 1024];
    extern "C" fn never() {}
    // SAFETY: the context has a stack, and is not switched to.
    unsafe {
        libc::getcontext(&raw mut context);
        context.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        context.uc_stack.ss_size = 8192;
        libc::makecontext(&raw mut context, never, 0);
        *(context.uc_mcontext.gregs[libc::REG_RSP as usize] as *const u64)
    }
}

#[test]
fn contexts_end_at_their_start() {
    process().coroutine_start.store(coroutine_start(), Ordering::Relaxed);
    let mut recorder = Recorder::new();
    // SAFETY: as above.
    let mut contexts: [libc::ucontext_t; 3] = unsafe { std::mem::zeroed() };
    let mut stacks = vec![vec![0u8; 256 << 10]; 2];
    RECORDER.set(&raw mut recorder);
    CONTEXTS.set(&raw mut contexts);
    for number in 0..2 {
        // SAFETY: `fiber` takes one integer, and its context has a stack.
        unsafe {
            libc::getcontext(&raw mut contexts[number]);
            contexts[number].uc_stack.ss_sp = stacks[number].as_mut_ptr().cast();
            contexts[number].uc_stack.ss_size = stacks[number].len();
            contexts[number].uc_link = &raw mut contexts[2];
            let start: extern "C" fn(usize) = fiber;
            libc::makecontext(
                &raw mut contexts[number],
                std::mem::transmute::<extern "C" fn(usize), extern "C" fn()>(start),
                1,
                number,
            );
        }
    }
    for round in 0..40 {
        for number in 0..2 {
            if number == 1 && round % 3 == 0 {
                continue;
            }
            // SAFETY: the contexts were made above.
            unsafe { libc::swapcontext(&raw mut contexts[2], &raw const contexts[number]) };
            // SAFETY: the recorder is the one above.
            let stack = unsafe { &*RECORDER.get() }.stack.clone();
            assert_eq!(stack.last(), Some(&process().coroutine_start.load(Ordering::Relaxed)));
            assert!(stack.len() < 12, "{stack:x?}");
        }
        // SAFETY: the recorder is the one above.
        unsafe { &mut *RECORDER.get() }.event();
    }
}

extern "C" fn events(_: *mut c_void) {
    deep(3);
    deep(4);
}

#[test]
fn a_function_on_another_stack_has_its_caller() {
    let mut recorder = Recorder::new();
    RECORDER.set(&raw mut recorder);
    let mut stack = vec![0u128; 16 << 10];
    let low = stack.as_mut_ptr() as u64;
    let end = low + 16 * stack.len() as u64;
    for is_known in [false, true, false] {
        OTHER_STACK.set(if is_known { (low, end) } else { (0, 0) });
        for _ in 0..4 {
            // SAFETY: the stack is aligned and large enough.
            unsafe { shape_other_stack(events, std::ptr::null_mut(), end) };
            assert_eq!(recorder.walk.unwrap().end, End::Complete);
            recorder.event();
        }
    }
    extern "C" fn nested(end: *mut c_void) {
        // SAFETY: as above; the middle of the same memory is free.
        unsafe { shape_other_stack(events, std::ptr::null_mut(), end as u64 - (128 << 10)) };
    }
    OTHER_STACK.set((0, 0));
    for _ in 0..4 {
        // SAFETY: as above.
        unsafe { shape_other_stack(nested, end as *mut c_void, end) };
    }
}
