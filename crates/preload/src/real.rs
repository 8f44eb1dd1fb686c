//! The real functions: those that the program would call without this library.
#![expect(unsafe_code, reason = "calls functions by their looked-up addresses")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use heaptally_runtime::event;
use heaptally_runtime::operator_new;
use heaptally_runtime::start::{self, Scope, Surroundings};

use crate::arena;
use crate::google_benchmark;
use crate::malloc_counter;
use crate::swift_task;

type Address = *mut c_void;
/// An array of C strings that ends with a null pointer.
pub(crate) type Strings = *const *const c_char;

/// Declares the table of real functions: a field per function, with its name and type.
macro_rules! real_functions {
    ($($field:ident: $name:literal = fn($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        /// The real functions' addresses; null: not there (an old or another C library).
        #[derive(Debug)]
        pub(crate) struct Real {
            $($field: AtomicPtr<c_void>,)*
        }

        pub(crate) static REAL: Real = Real { $($field: AtomicPtr::new(core::ptr::null_mut()),)* };

        impl Real {
            fn look_up_all(&self) {
                $(self.$field.store(next($name), Ordering::Release);)*
            }

            $(
                /// Calls the real function; `None`: it is not there.
                ///
                /// # Safety
                /// As that function's own.
                #[inline(always)]
                pub(crate) unsafe fn $field(&self, $($argument: $kind),*) -> Option<real_functions!(@result $($result)?)> {
                    let address = self.$field.load(Ordering::Relaxed);
                    if address.is_null() {
                        return None;
                    }
                    // SAFETY: the function of that name has this type.
                    let function = unsafe {
                        transmute::<Address, unsafe extern "C" fn($($kind),*) $(-> $result)?>(address)
                    };
                    // SAFETY: by the caller.
                    Some(unsafe { function($($argument),*) })
                }
            )*
        }
    };
    (@result) => { () };
    (@result $result:ty) => { $result };
}

real_functions! {
    malloc: c"malloc" = fn(size: usize) -> *mut u8;
    calloc: c"calloc" = fn(count: usize, size: usize) -> *mut u8;
    realloc: c"realloc" = fn(block: *mut u8, size: usize) -> *mut u8;
    reallocarray: c"reallocarray" = fn(block: *mut u8, count: usize, size: usize) -> *mut u8;
    free: c"free" = fn(block: *mut u8);
    free_sized: c"free_sized" = fn(block: *mut u8, size: usize);
    free_aligned_sized: c"free_aligned_sized" = fn(block: *mut u8, alignment: usize, size: usize);
    posix_memalign: c"posix_memalign" = fn(place: *mut *mut u8, alignment: usize, size: usize) -> c_int;
    aligned_alloc: c"aligned_alloc" = fn(alignment: usize, size: usize) -> *mut u8;
    memalign: c"memalign" = fn(alignment: usize, size: usize) -> *mut u8;
    valloc: c"valloc" = fn(size: usize) -> *mut u8;
    pvalloc: c"pvalloc" = fn(size: usize) -> *mut u8;
    libc_malloc: c"__libc_malloc" = fn(size: usize) -> *mut u8;
    libc_calloc: c"__libc_calloc" = fn(count: usize, size: usize) -> *mut u8;
    libc_realloc: c"__libc_realloc" = fn(block: *mut u8, size: usize) -> *mut u8;
    libc_free: c"__libc_free" = fn(block: *mut u8);
    libc_memalign: c"__libc_memalign" = fn(alignment: usize, size: usize) -> *mut u8;
    libc_valloc: c"__libc_valloc" = fn(size: usize) -> *mut u8;
    libc_pvalloc: c"__libc_pvalloc" = fn(size: usize) -> *mut u8;
    dlclose: c"dlclose" = fn(handle: *mut c_void) -> c_int;
    pthread_setcanceltype: c"pthread_setcanceltype" = fn(kind: c_int, before: *mut c_int) -> c_int;
    munmap: c"munmap" = fn(address: *mut c_void, len: usize) -> c_int;
    mremap: c"mremap" = fn(address: *mut c_void, len: usize, new_len: usize, flags: c_int, new: *mut c_void) -> *mut c_void;
    shmdt: c"shmdt" = fn(address: *const c_void) -> c_int;
    execve: c"execve" = fn(path: *const c_char, arguments: Strings, environment: Strings) -> c_int;
    execvpe: c"execvpe" = fn(file: *const c_char, arguments: Strings, environment: Strings) -> c_int;
    fexecve: c"fexecve" = fn(file: c_int, arguments: Strings, environment: Strings) -> c_int;
    execveat: c"execveat" = fn(folder: c_int, path: *const c_char, arguments: Strings, environment: Strings, flags: c_int) -> c_int;
    posix_spawn: c"posix_spawn" = fn(child: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int;
    posix_spawnp: c"posix_spawnp" = fn(child: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int;
    pidfd_spawn: c"pidfd_spawn" = fn(child: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int;
    pidfd_spawnp: c"pidfd_spawnp" = fn(child: *mut c_int, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int;
    system: c"system" = fn(command: *const c_char) -> c_int;
    popen: c"popen" = fn(command: *const c_char, mode: *const c_char) -> *mut c_void;
}

/// The next definition of a function behind this library; null: there is none.
pub(crate) fn next(name: &CStr) -> Address {
    if !start::is_defined(name, Scope::Behind) {
        return core::ptr::null_mut();
    }
    // SAFETY: a look-up by a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

const UNKNOWN: u32 = 0;
const LOOKING: u32 = 1;
const KNOWN: u32 = 2;

static STAGE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// A pointer that the loader fills in when it relocates this library.
static RELOCATED: AtomicPtr<u32> = AtomicPtr::new((&raw const STAGE).cast_mut().cast());

/// Whether the real functions can be called.
#[inline(always)]
pub(crate) fn is_known() -> bool {
    STAGE.load(Ordering::Acquire) == KNOWN
}

/// Looks the real functions up and starts the recorder, if nobody did. False: they cannot be called yet, by this thread
/// now (it is looking them up itself), or since this library is not relocated (an indirect function's resolver of
/// another library allocates): the arena must serve.
#[cold]
#[inline(never)]
pub(crate) fn prepare() -> bool {
    if RELOCATED.load(Ordering::Relaxed) != (&raw const STAGE).cast_mut().cast() {
        return false;
    }
    if STAGE.compare_exchange(UNKNOWN, LOOKING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        REAL.look_up_all();
        google_benchmark::look_up();
        malloc_counter::look_up();
        swift_task::look_up();
        STAGE.store(KNOWN, Ordering::Release);
        // What a look-up allocates is not the program's.
        event::quietly(|| {
            start::start(surroundings);
            look_up_operators();
        });
    }
    // Whoever comes while another thread looks up is served by the arena, and never waits: it may hold a lock that
    // the look-up wants.
    is_known()
}

fn surroundings() -> Surroundings {
    Surroundings {
        next_malloc: REAL.malloc.load(Ordering::Relaxed) as usize,
        next_new: next(operator_new::NAMES[0]) as usize,
        early_allocations: arena::blocks() as u64,
    }
}

/// Operators of a C++ runtime that the loader finds are passed on to without further ado.
fn look_up_operators() {
    for (name, entry) in operator_new::NAMES.iter().zip(&operator_new::PASS.0) {
        let address = next(name) as usize;
        if address != 0 && operator_new::is_runtimes(address) {
            entry.store(address, Ordering::Release);
        }
    }
}
