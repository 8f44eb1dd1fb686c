//! How much stack a walk takes. Only an optimised build tells.

use std::ffi::c_void;

use heaptally_unwind::{CodeMap, FrameState, RuleCache, WalkMemory};

use crate::frame_shape::{
    Next, shape_expression, shape_no_cfi, shape_other_stack, shape_rbx_cfa, shape_realigned, shape_rsp,
};
use crate::harness::{OTHER_STACK, new_cache, new_memory, process, unwinder, with_state};

const PAINT: u64 = 0xA5A5_5A5A_A5A5_5A5A;
/// More than what the caller of `walk` in this test uses, which counts as the walk's.
const CALLER_BYTES: u64 = 200;

struct Setup {
    cache: &'static RuleCache,
    memory: &'static mut WalkMemory,
    low: *mut u64,
    used: u64,
}

extern "C" fn measure(state: &FrameState, data: *mut c_void) {
    // SAFETY: the test passes its setup.
    let setup = unsafe { &mut *data.cast::<Setup>() };
    // `state` lies in the frame of `with_state`, just above this function's.
    let top = std::ptr::from_ref(state) as u64;
    let mut place = setup.low;
    while (place as u64) < top - CALLER_BYTES - 128 {
        // SAFETY: the stack below this frame is not in use.
        unsafe { place.write_volatile(PAINT) };
        // SAFETY: still inside the stack.
        place = unsafe { place.add(1) };
    }
    // SAFETY: `state` is that of a frame of this thread, which waits for us.
    unsafe { unwinder(setup.cache).walk(setup.memory, *state) };
    let mut place = setup.low;
    // SAFETY: the stack below this frame was painted.
    while unsafe { place.read_volatile() } == PAINT {
        // SAFETY: the paint ends inside the stack.
        place = unsafe { place.add(1) };
    }
    setup.used = setup.used.max(top - place as u64);
}

extern "C" fn direct(data: *mut c_void) {
    // SAFETY: `measure` takes a setup.
    unsafe { with_state(measure, data) };
}

extern "C" fn through_realigned(data: *mut c_void) {
    // SAFETY: `direct` takes a setup.
    unsafe { shape_realigned(direct, data) };
}

extern "C" fn through_expression(data: *mut c_void) {
    // SAFETY: likewise.
    unsafe { shape_expression(direct, data) };
}

extern "C" fn through_no_cfi(data: *mut c_void) {
    // SAFETY: likewise.
    unsafe { shape_no_cfi(direct, data) };
}

extern "C" fn through_rsp(data: *mut c_void) {
    // SAFETY: likewise.
    unsafe { shape_rsp(direct, data) };
}

extern "C" fn through_rbx(data: *mut c_void) {
    // SAFETY: likewise.
    unsafe { shape_rbx_cfa(direct, data) };
}

#[test]
fn a_walk_takes_less_than_1_kib_of_stack() {
    let mut stack = vec![0u128; 4 << 10];
    let low = stack.as_mut_ptr();
    let end = low as u64 + 16 * stack.len() as u64;
    let mut worst = [0, 0];
    process().stack_bounds(low as u64);
    for next in
        [direct as Next, through_realigned, through_expression, through_no_cfi, through_rsp, through_rbx]
    {
        OTHER_STACK.set((low as u64, end));
        let mut setup = Setup { cache: new_cache(), memory: new_memory(), low: low.cast(), used: 0 };
        for worst in &mut worst {
            setup.used = 0;
            // SAFETY: the stack is aligned, large enough, and not in use.
            unsafe { shape_other_stack(next, (&raw mut setup).cast(), end) };
            *worst = u64::max(*worst, setup.used);
        }
    }
    OTHER_STACK.set((0, 0));
    if cfg!(not(debug_assertions)) {
        assert!(worst[0] < 1024, "without rules: {} bytes", worst[0]);
        assert!(worst[1] < 1024, "again: {} bytes", worst[1]);
    }
}
