//! Without the recorder the crate has no effect and, once it has looked for it, does not allocate.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is this call's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is this call's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_recorded_and_nothing_allocated() {
    let long = "n".repeat(1_000);
    let before = ALLOCATIONS.get();
    assert!(!heaptally::is_recording());
    {
        let _window = heaptally::window(c"w");
        let _thread = heaptally::thread_window("t");
        let _long = heaptally::window(&long);
        let _pause = heaptally::pause();
        heaptally::iterations("w", 1);
    }
    assert_eq!(ALLOCATIONS.get(), before);
    drop(Box::new(1));
    assert_eq!(ALLOCATIONS.get(), before + 1, "the allocator counts");
}

#[test]
fn a_window_may_end_on_another_thread() {
    let window = heaptally::window(c"w");
    std::thread::scope(|scope| {
        scope.spawn(move || drop(window));
    });
}
