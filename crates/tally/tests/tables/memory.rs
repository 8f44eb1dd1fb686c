//! Memory for the tables, given back when the last user is gone.
#![expect(unsafe_code, reason = "gives out raw memory, as the operating system does")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use heaptally_segment::layout::PAGE;
use heaptally_tally::{Os, TableMap};

thread_local! {
    /// What the calling thread's tables take their memory from.
    static MEMORY: RefCell<Option<Arc<Memory>>> = const { RefCell::new(None) };
    /// What the calling thread says its kernel id is.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// All memory of one set of tables.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Addresses, as numbers so that threads can share them.
    parts: Mutex<Vec<(usize, Layout)>>,
    /// How many more times pages can be opened.
    openings: AtomicU32,
}

impl Memory {
    /// Memory that refuses to open more pages after so many times.
    pub(crate) fn new(openings: u32) -> Arc<Self> {
        Arc::new(Self { parts: Mutex::default(), openings: AtomicU32::new(openings) })
    }

    /// Makes the calling thread's tables use this memory, and gives the thread an id.
    pub(crate) fn enter(self: &Arc<Self>, thread: u32) {
        MEMORY.set(Some(self.clone()));
        THREAD.set(thread);
    }

    /// Zeroed memory for a table.
    pub(crate) fn table(&self, bytes: u64) -> TableMap {
        TableMap { base: self.map(bytes as usize), bytes }
    }

    fn map(&self, bytes: usize) -> *mut u8 {
        let layout = Layout::from_size_align(bytes, PAGE as usize).expect("the size is sane");
        // SAFETY: no table has the size 0.
        let base = unsafe { alloc_zeroed(layout) };
        assert!(!base.is_null(), "no memory for the test");
        self.parts.lock().expect("no test panics while it holds this").push((base as usize, layout));
        base
    }

    fn open(&self) -> bool {
        self.openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (base, layout) in self.parts.get_mut().map(std::mem::take).unwrap_or_default() {
            // SAFETY: `map` allocated it so; the tables that used it hold a share of this value.
            unsafe { dealloc(ptr::with_exposed_provenance_mut(base), layout) };
        }
    }
}

fn with_memory<T>(what: impl FnOnce(&Memory) -> T) -> T {
    MEMORY.with_borrow(|memory| what(memory.as_ref().expect("the thread entered")))
}

/// An operating system that serves the calling thread from what it entered.
pub(crate) fn os() -> Os {
    Os {
        map: |bytes| with_memory(|memory| memory.map(bytes)),
        open: |_, _| with_memory(Memory::open),
        thread: |name| {
            name[..4].copy_from_slice(b"test");
            THREAD.get()
        },
    }
}
