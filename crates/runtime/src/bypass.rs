//! Where an object's uses of the allocation functions lead: to the recorder, or past it.
#![expect(unsafe_code, reason = "reads the places that the loader binds")]

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::object::Found;

/// The functions that are looked at.
const NAMES: [&CStr; 6] =
    [c"malloc", c"calloc", c"realloc", c"posix_memalign", c"aligned_alloc", c"memalign"];
/// Of each so many places: one for calls, one for its address, one more of either.
const PLACES: usize = 3;

/// Where a place leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is not bound yet.
    Open,
    /// To the recorder, or to a function of another name.
    Elsewhere,
    /// To a function of that name which is not the recorder's.
    Allocator,
}

/// The places of an object that the loader binds to allocation functions; 0: none, or its reach is known.
#[derive(Debug, Default)]
pub(crate) struct Slots([[AtomicU64; PLACES]; NAMES.len()]);

impl Slots {
    /// Those of an object that is mapped, and perhaps not relocated yet.
    pub(crate) fn of(found: &Found) -> Self {
        let mut slots = Self::default();
        crate::elf::visit_relocations(found.bias, found.dynamic, |place, name| {
            if let Some(at) = NAMES.iter().position(|known| *known == name)
                && let Some(free) = slots.0[at].iter_mut().find(|slot| slot.load(Ordering::Relaxed) == 0)
            {
                *free.get_mut() = place;
            }
        });
        slots
    }

    /// Whether the reach of any is not known.
    pub(crate) fn are_open(&self) -> bool {
        self.0.iter().flatten().any(|slot| slot.load(Ordering::Relaxed) != 0)
    }

    /// Asks where each leads; true: one leads past the recorder. The object is loaded, and stays so meanwhile.
    pub(crate) fn look(&self, reach: impl Fn(u64, &'static CStr) -> Reach) -> bool {
        let mut is_past = false;
        for (slots, name) in self.0.iter().zip(NAMES) {
            for slot in slots {
                let place = slot.load(Ordering::Relaxed);
                if place == 0 {
                    continue;
                }
                // SAFETY: a relocation of the loaded object names the place, which lies in its data. Volatile, since the
                // loader writes there.
                let address = unsafe { (place as *const u64).read_unaligned() };
                let found = reach(address, name);
                if found != Reach::Open {
                    slot.store(0, Ordering::Relaxed);
                }
                is_past |= found == Reach::Allocator;
            }
        }
        is_past
    }
}
