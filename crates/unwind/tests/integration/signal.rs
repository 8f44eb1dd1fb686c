//! Events in signal handlers, on the same stack and on another.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use heaptally_unwind::{INTERRUPTED, SIGNAL};

use crate::frame_shape::{ORDINARY, shape_realigned, shape_stepped};
use crate::harness::{OTHER_STACK, Recorder};

thread_local! {
    /// Where the handler's events go.
    pub(crate) static RECORDER: Cell<*mut Recorder> = const { Cell::new(std::ptr::null_mut()) };
    static NESTED: Cell<c_int> = const { Cell::new(0) };
}

extern "C" fn handler(_: c_int) {
    // SAFETY: the test's thread stored its recorder.
    let recorder = unsafe { &mut *RECORDER.get() };
    recorder.event();
    let nested = NESTED.replace(0);
    if nested != 0 {
        // SAFETY: a signal that this test handles.
        unsafe { libc::raise(nested) };
        recorder.event();
    }
    recorder.event();
}

pub(crate) fn handle(signal: c_int, flags: c_int) {
    // SAFETY: an all-zero action is valid, and gets its handler below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags;
    // SAFETY: the action is complete.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }, 0);
}

pub(crate) fn raise_at_depth(depth: u32, recorder: &mut Recorder, signal: c_int) {
    if depth > 0 {
        raise_at_depth(depth - 1, recorder, signal);
    } else {
        recorder.event();
        RECORDER.set(recorder);
        // SAFETY: a signal that this test handles.
        unsafe { libc::raise(signal) };
        let count = |flag| recorder.stack.iter().filter(|address| **address & flag != 0).count();
        assert!(recorder.differences > 0 || (count(SIGNAL), count(INTERRUPTED)) == (1, 1));
    }
    recorder.event();
}

#[test]
fn a_handler_on_the_same_stack() {
    handle(libc::SIGUSR1, 0);
    let mut recorder = Recorder::new();
    for depth in [0, 5, 30, 6, 6] {
        raise_at_depth(depth, &mut recorder, libc::SIGUSR1);
    }
}

#[test]
fn a_handler_on_an_alternate_stack_below_and_above_the_threads() {
    handle(libc::SIGUSR2, libc::SA_ONSTACK);
    handle(libc::SIGURG, 0);
    let mut recorder = Recorder::new();
    recorder.asks_libgcc = true;
    let mut memory = vec![0u8; 1 << 20];
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    // SAFETY: the memory outlives the thread's use of it, which ends below.
    assert_eq!(unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) }, 0);
    for is_known in [false, true] {
        OTHER_STACK.set(if is_known { (stack.ss_sp as u64, stack.ss_sp as u64 + (1 << 20)) } else { (0, 0) });
        for depth in [0, 5, 30, 6, 6] {
            NESTED.set(libc::SIGURG);
            raise_at_depth(depth, &mut recorder, libc::SIGUSR2);
        }
    }
    let off = libc::stack_t { ss_flags: libc::SS_DISABLE, ..stack };
    // SAFETY: no handler runs.
    assert_eq!(unsafe { libc::sigaltstack(&raw const off, std::ptr::null_mut()) }, 0);
    assert!(recorder.kept * 3 > recorder.frames, "{} of {}", recorder.kept, recorder.frames);
}

/// A signal that comes at every instruction of a function: its frame is right in the prologue and epilogue too.
#[test]
fn a_signal_at_each_instruction() {
    extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the test's thread stored its recorder.
        unsafe { &mut *RECORDER.get() }.event();
    }
    // SAFETY: as in `handle`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the action is complete.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()) }, 0);
    extern "C" fn nothing(_: *mut c_void) {}
    let mut recorder = Recorder::new();
    RECORDER.set(&raw mut recorder);
    for shape in ORDINARY {
        // In a realigned frame the CFA is r10 for a while, which no one can know but the signal's context.
        if shape as usize == shape_realigned as *const () as usize {
            continue;
        }
        let before = recorder.events;
        // SAFETY: the trap flag makes the processor raise SIGTRAP after each instruction until it is cleared.
        unsafe { shape_stepped(shape, std::ptr::null_mut(), nothing) };
        assert!(recorder.events > before + 8, "{}", recorder.events - before);
    }
}
