//! Objects that `dl_iterate_phdr` does not show: those in namespaces of their own (`dlmopen`, `LD_AUDIT`), and those that
//! came where the loader cannot be watched.
//!
//! A namespace has a C library of its own, whose `malloc` nobody can stand in for: what is loaded there is not recorded,
//! and is said. The loader lists namespaces for debuggers, since glibc 2.35, in `_r_debug`'s later form.
#![expect(unsafe_code, reason = "reads the loader's records")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use heaptally_unwind::is_readable;

use crate::object::{Found, Scope, is_defined};

/// Where an object was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the program is.
    Program,
    /// In a namespace of its own, as the first.
    First,
    /// In a namespace of its own, behind the first.
    Apart,
}

/// `struct r_debug_extended` of `<link.h>`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Debug {
    version: AtomicI32,
    map: AtomicPtr<LinkMap>,
    pub(crate) break_address: u64,
    pub(crate) state: AtomicI32,
    loader_base: u64,
    /// Only where `version` is 2 or more.
    next: AtomicPtr<Debug>,
}

/// `struct link_map` of `<link.h>`: the part that is public.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
    dynamic: u64,
    next: *mut LinkMap,
    previous: *mut LinkMap,
}

/// More namespaces or objects than any loader has: its lists do not go round in a circle.
const STEPS_MAX: usize = 1 << 16;

/// The loader's record for debuggers.
static DEBUG: AtomicPtr<Debug> = AtomicPtr::new(core::ptr::null_mut());

/// The loader's function that finds the object around an address without a lock; null before glibc 2.35.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// `struct dl_find_object` of `<dlfcn.h>`.
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    map: *const LinkMap,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut FoundObject) -> c_int;

/// Looks up what this module needs. To be called once, while the loader's symbols can be looked up.
pub(crate) fn prepare() -> Option<&'static Debug> {
    let look_up = |name: &CStr| {
        if !is_defined(name, Scope::Elsewhere) {
            return core::ptr::null_mut();
        }
        // SAFETY: a look-up by a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    FIND_OBJECT.store(look_up(c"_dl_find_object"), Ordering::Release);
    DEBUG.store(look_up(c"_r_debug").cast(), Ordering::Release);
    debug()
}

/// The loader's record; `None`: it has none, or [`prepare`] was not called.
pub(crate) fn debug() -> Option<&'static Debug> {
    // SAFETY: the symbol names the loader's record, which stays.
    unsafe { DEBUG.load(Ordering::Acquire).as_ref() }
}

/// Shows all objects in namespaces other than the first. To be called with the loader's lock held.
pub(crate) fn visit(see: &mut dyn FnMut(&Found, Place)) {
    let Some(first) = debug() else { return };
    let mut next = if first.version.load(Ordering::Acquire) >= 2 {
        first.next.load(Ordering::Acquire)
    } else {
        core::ptr::null_mut()
    };
    let mut steps = 0;
    // SAFETY: the loader's records of namespaces stay.
    while let Some(namespace) = unsafe { next.as_ref() } {
        let mut map = namespace.map.load(Ordering::Acquire);
        let mut place = Place::First;
        // SAFETY: the loader's lock is held, under which no object leaves its list.
        while let Some(object) = unsafe { map.as_ref() } {
            if let Some(found) = read(object, object.bias) {
                see(&found, place);
                place = Place::Apart;
            }
            map = object.next;
            steps += 1;
            if steps > STEPS_MAX {
                return;
            }
        }
        next = namespace.next.load(Ordering::Acquire);
    }
}

/// The loaded object around an address of a live frame; `None` also where the loader lacks the function.
pub(crate) fn object_at(address: u64) -> Option<Found> {
    let function = FIND_OBJECT.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    // SAFETY: the C library's function of that name has this type.
    let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(function) };
    let mut found = FoundObject {
        flags: 0,
        start: core::ptr::null_mut(),
        end: core::ptr::null_mut(),
        map: core::ptr::null(),
        eh_frame: core::ptr::null_mut(),
        reserved: [0; 7],
    };
    // SAFETY: it takes no lock and writes the record.
    if unsafe { find(address as *mut c_void, &raw mut found) } != 0 {
        return None;
    }
    // SAFETY: the frame is live, so its object stays loaded, and the loader's record of it.
    let object = unsafe { found.map.as_ref() }?;
    read(object, found.start as u64)
}

/// Runs `work` with the loader's lock held, under which no object comes or goes.
pub(crate) fn with_lock(work: &mut dyn FnMut()) {
    unsafe extern "C" fn first(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: `data` is the work below, which nobody else uses meanwhile.
        let work = unsafe { &mut *data.cast::<&mut dyn FnMut()>() };
        work();
        1
    }
    let mut work = work;
    // SAFETY: the callback has the right form, and the work outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut work).cast()) };
}

/// What an object's ELF header says, which lies at `start`.
fn read(object: &LinkMap, start: u64) -> Option<Found> {
    const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
    // An object that was linked for another address than 0 has its header elsewhere than at its bias.
    if start == 0 || !start.is_multiple_of(4096) || !is_readable(start) {
        return None;
    }
    let word = |at: u64| {
        // SAFETY: the first page of a loaded object is readable, and the header lies in it.
        unsafe { ((start + at) as *const u32).read_unaligned() }
    };
    if word(0) != MAGIC {
        return None;
    }
    // `e_phoff` and `e_phnum`.
    let headers = start + (u64::from(word(32)) | u64::from(word(36)) << 32);
    let count = word(56) as u16;
    if !is_readable(headers) || !is_readable(headers + u64::from(count.max(1)) * 56 - 8) {
        return None;
    }
    // SAFETY: all-zero bytes are a valid record.
    let mut info: libc::dl_phdr_info = unsafe { core::mem::zeroed() };
    info.dlpi_addr = object.bias;
    info.dlpi_name = object.name;
    info.dlpi_phdr = headers as *const libc::Elf64_Phdr;
    info.dlpi_phnum = count;
    // SAFETY: the object stays loaded, by the callers.
    unsafe { Found::read(&info) }
}
