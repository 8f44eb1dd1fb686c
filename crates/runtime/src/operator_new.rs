//! Which `operator new` and `delete` stand behind the recorder's own.
//!
//! A C++ runtime's call `malloc`: they are passed on untouched, and the allocation is recorded there. Another
//! allocator's do not: they are recorded themselves. Any other library's may do either, from call to call: they are
//! recorded where no allocation was recorded meanwhile. Where the loader's look-up finds none (a C program that loads a
//! C++ plug-in, whose runtime is not in the global scope), the loaded objects are searched, without the loader's lock.
#![expect(unsafe_code, reason = "a look-up by the loader")]

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use heaptally_segment::layout::EntryPoint;

use crate::event::recorded;
use crate::object::{Scope, is_defined};
use crate::recorder::{Recorder, recorder};

/// How many operators there are.
pub const COUNT: usize = 20;
/// Those below this number allocate, the others free.
pub const FIRST_DELETE: usize = 8;

/// The operators' mangled names. The first eight allocate, in the order of [`EntryPoint::New`] and what follows it.
pub const NAMES: [&CStr; COUNT] = [
    c"_Znwm",
    c"_Znam",
    c"_ZnwmRKSt9nothrow_t",
    c"_ZnamRKSt9nothrow_t",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZnwmSt11align_val_tRKSt9nothrow_t",
    c"_ZnamSt11align_val_tRKSt9nothrow_t",
    c"_ZdlPv",
    c"_ZdaPv",
    c"_ZdlPvm",
    c"_ZdaPvm",
    c"_ZdlPvRKSt9nothrow_t",
    c"_ZdaPvRKSt9nothrow_t",
    c"_ZdlPvSt11align_val_t",
    c"_ZdaPvSt11align_val_t",
    c"_ZdlPvmSt11align_val_t",
    c"_ZdaPvmSt11align_val_t",
    c"_ZdlPvSt11align_val_tRKSt9nothrow_t",
    c"_ZdaPvSt11align_val_tRKSt9nothrow_t",
];

/// The functions to pass on to without further ado; 0: ask [`target`].
#[derive(Debug)]
pub struct PassTable(pub [AtomicUsize; COUNT]);

/// See [`PassTable`].
pub static PASS: PassTable = PassTable([const { AtomicUsize::new(0) }; COUNT]);

/// Bits of the entries of [`PASS`] that were found by search: they may go away with their object.
static SEARCHED: AtomicU32 = AtomicU32::new(0);

/// Where a call is to go on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The function; 0: there is none.
    pub address: usize,
    /// How it has to be recorded here: [`RUNTIME`], [`ALLOCATOR`], or [`LIBRARY`] and what [`recorded`] said.
    pub kind: usize,
}

/// [`Target::kind`]: not at all, since it calls `malloc`.
pub const RUNTIME: usize = 0;
/// [`Target::kind`]: always, since it does not call `malloc`.
pub const ALLOCATOR: usize = 1;
/// [`Target::kind`], from this number on: if it did not call `malloc` this time.
pub const LIBRARY: usize = 2;

/// The entry point of an operator that allocates.
pub fn entry_point(operator: usize) -> Option<EntryPoint> {
    EntryPoint::from_number(EntryPoint::New as u32 + operator as u32).filter(|_| operator < FIRST_DELETE)
}

/// Looks for what stands behind an operator, for a call from `near`.
#[cold]
pub fn target(operator: usize, near: u64) -> Target {
    const NONE: Target = Target { address: 0, kind: RUNTIME };
    let Some(name) = NAMES.get(operator) else { return NONE };
    let own = target as *const () as u64;
    let searched = recorder().and_then(|recorder| recorder.modules.definition(name, own, near));
    let address = match searched {
        Some(address) => address as usize,
        None if !is_defined(name, Scope::Behind) => 0,
        // SAFETY: a look-up by a C string.
        None => unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize },
    };
    if address == 0 {
        return NONE;
    }
    let definer = definer(address);
    if definer == Definer::Runtime && searched.is_some() {
        SEARCHED.fetch_or(1 << operator, Ordering::Relaxed);
        PASS.0[operator].store(address, Ordering::Release);
    }
    let kind = match definer {
        Definer::Runtime => RUNTIME,
        Definer::Allocator => ALLOCATOR,
        Definer::Library => LIBRARY.saturating_add(recorded() as usize),
    };
    Target { address, kind }
}

/// Code went away: what was found by search is looked for again.
pub(crate) fn forget_searched() {
    let searched = SEARCHED.swap(0, Ordering::AcqRel);
    for (operator, entry) in PASS.0.iter().enumerate() {
        if searched & (1 << operator) != 0 {
            entry.store(0, Ordering::Release);
        }
    }
}

/// Who defines an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definer {
    /// A C++ runtime, or the program itself.
    Runtime,
    /// An allocator.
    Allocator,
    /// Another library.
    Library,
}

impl Recorder {
    /// Who defines an operator, by the name of the object.
    pub(crate) fn definer_of_new(&self, address: usize) -> Definer {
        const ALLOCATORS: [&[u8]; 5] = [b"jemalloc", b"tcmalloc", b"mimalloc", b"tbbmalloc", b"rpmalloc"];
        const RUNTIMES: [&[u8]; 2] = [b"libstdc++", b"libc++"];
        self.modules.with_path(address as u64, |path| {
            let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            if file.is_empty() || RUNTIMES.iter().any(|runtime| file.starts_with(runtime)) {
                Definer::Runtime
            } else if ALLOCATORS.iter().any(|name| file.windows(name.len()).any(|part| part == *name)) {
                Definer::Allocator
            } else {
                Definer::Library
            }
        })
    }
}

fn definer(address: usize) -> Definer {
    // Without a recorder there is nothing to record, and it does not matter.
    recorder().map_or(Definer::Runtime, |recorder| recorder.definer_of_new(address))
}

/// Whether an operator is a C++ runtime's.
pub fn is_runtimes(address: usize) -> bool {
    definer(address) == Definer::Runtime
}
