//! The recorder's table of functions: found once, called through.
//!
//! The only module with unsafe code. What it relies on is the recorder's promise about the symbol `heaptally_abi_v1`,
//! stated in `heaptally_runtime::abi`: a constant table, there for as long as the process, which begins with its size
//! in bytes, and whose functions may be called by any thread with a C string.

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(crate) use recorder::install;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(crate) use recorder::{Table, find};

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
pub(crate) use nowhere::{Table, find};

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod recorder {
    #![expect(unsafe_code, reason = "calls C functions that dlsym() found")]

    use heaptally_runtime::abi::{ABI_V1_NAME, AbiV1};
    use std::ffi::CStr;
    use std::mem::{offset_of, size_of};
    use std::ptr::{self, addr_of};
    use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

    /// Its address stands for "nobody has looked yet"; null for "there is no recorder".
    static UNKNOWN: AtomicU8 = AtomicU8::new(0);
    /// NOTE: no `OnceLock`: a child that is forked while another thread looks would wait for ever.
    static TABLE: AtomicPtr<AbiV1> = AtomicPtr::new(addr_of!(UNKNOWN).cast::<AbiV1>().cast_mut());

    /// The recorder's table, which holds at least its own size.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Table(*const AbiV1);

    // SAFETY: the table is constant, and its functions may be called by any thread: the recorder's promise.
    unsafe impl Send for Table {}
    // SAFETY: as above.
    unsafe impl Sync for Table {}

    /// The recorder's table, where there is a recorder.
    pub(crate) fn find() -> Option<Table> {
        let table = TABLE.load(Ordering::Acquire);
        if table.is_null() {
            return None;
        }
        if ptr::eq(table.cast::<AtomicU8>(), &UNKNOWN) {
            return find_slow();
        }
        Some(Table(table))
    }

    #[cold]
    #[inline(never)]
    fn find_slow() -> Option<Table> {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ABI_V1_NAME.as_ptr()) }.cast::<AbiV1>();
        if found.is_null() {
            // SAFETY: the name is a C string. A search that succeeds drops the loader's complaint, so that no one else reads
            // it, and unlike `dlerror` it allocates nothing for that.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"dlsym".as_ptr()) };
        }
        TABLE.store(found, Ordering::Release);
        (!found.is_null()).then_some(Table(found))
    }

    /// Has this process's next calls find `table`, in place of a recorder.
    #[cfg(test)]
    pub(crate) fn install(table: &'static AbiV1) -> Table {
        TABLE.store(ptr::from_ref(table).cast_mut(), Ordering::Release);
        Table::new(table)
    }

    /// Defines methods that call a function of the table; without effect where the table ends before it.
    macro_rules! functions {
        ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty => $given:expr),*);)*) => {
            impl Table {
                $($(#[$doc])* pub(crate) fn $name(self, $($argument: $kind),*) {
                    if !self.holds(const { offset_of!(AbiV1, $name) + size_of::<usize>() }) {
                        return;
                    }
                    // SAFETY: within the table, as it says itself.
                    let function = unsafe { addr_of!((*self.0).$name).read() };
                    // SAFETY: the recorder's function of this type; a name is a C string that lives during the call.
                    unsafe { function($($given),*) };
                })*
            }
        };
    }

    functions! {
        /// Opens a window of all threads.
        window_begin(name: &CStr => name.as_ptr());
        /// Closes it.
        window_end(name: &CStr => name.as_ptr());
        /// Opens a window of the calling thread.
        thread_window_begin(name: &CStr => name.as_ptr());
        /// Closes it.
        thread_window_end(name: &CStr => name.as_ptr());
        /// Adds to a window's iterations.
        window_iterations(name: &CStr => name.as_ptr(), count: u64 => count);
        /// The calling thread's allocations are not recorded from here on.
        pause();
        /// Undoes one pause.
        resume();
    }

    impl Table {
        /// A table that no recorder has.
        #[cfg(test)]
        pub(crate) fn new(table: &'static AbiV1) -> Self {
            Table(table)
        }

        /// Whether the table has `needed_bytes` bytes.
        fn holds(self, needed_bytes: usize) -> bool {
            // SAFETY: each table begins with this field.
            let size_bytes = unsafe { addr_of!((*self.0).size).read() };
            size_bytes >= needed_bytes as u64
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod nowhere {
    //! The same interface where there is no recorder for the platform.

    use std::ffi::CStr;

    /// A table that does not exist.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Table {}

    pub(crate) fn find() -> Option<Table> {
        None
    }

    impl Table {
        pub(crate) fn window_begin(self, _: &CStr) {}
        pub(crate) fn window_end(self, _: &CStr) {}
        pub(crate) fn thread_window_begin(self, _: &CStr) {}
        pub(crate) fn thread_window_end(self, _: &CStr) {}
        pub(crate) fn window_iterations(self, _: &CStr, _: u64) {}
        pub(crate) fn pause(self) {}
        pub(crate) fn resume(self) {}
    }
}
