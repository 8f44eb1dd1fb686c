//! What is remembered, and when it is not.

use heaptally_unwind::{FrameState, RuleCache, Unwinder, Walk, WalkMemory};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{Process, new_cache, new_memory, process, with_state};

struct Setup {
    cache: &'static RuleCache,
    memory: &'static mut WalkMemory,
    live: AtomicU32,
}

impl Setup {
    fn walk(&mut self, generation: u32, state: &FrameState) -> Walk {
        let unwinder: Unwinder<'_, Process> = Unwinder {
            cache: self.cache,
            map: process(),
            generation,
            live_generation: &self.live,
            #[cfg(feature = "mutation")]
            mutation: 0,
        };
        // SAFETY: `state` is that of a frame of this thread, which waits for us.
        unsafe { unwinder.walk(self.memory, *state) }
    }
}

fn used(cache: &RuleCache) -> bool {
    !format!("{cache:?}").contains("used: 0")
}

extern "C" fn check(state: &FrameState, data: *mut c_void) {
    // SAFETY: the test passes its setup.
    let setup = unsafe { &mut *data.cast::<Setup>() };
    // An unload that comes during a walk: what it found is used, and not kept.
    setup.live.store(2, Ordering::Relaxed);
    assert_eq!(setup.walk(1, state).kept, 0);
    assert!(!used(setup.cache));
    assert_eq!(setup.walk(2, state).kept, 0, "another generation");
    assert!(used(setup.cache));
    let len = setup.memory.len();
    assert_eq!(setup.walk(2, state).kept, len);
    setup.memory.forget();
    assert!(setup.memory.is_empty());
    assert_eq!(setup.walk(2, state).kept, 0, "forgotten");
    setup.cache.flush(0, u64::MAX);
    assert!(!used(setup.cache));
    assert_eq!(setup.walk(2, state).kept, len, "a remembered walk needs no rules");
}

#[test]
fn an_unload_forgets_rules_and_stacks() {
    let mut setup = Setup { cache: new_cache(), memory: new_memory(), live: AtomicU32::new(1) };
    // SAFETY: `check` takes a setup.
    unsafe { with_state(check, (&raw mut setup).cast()) };
}
