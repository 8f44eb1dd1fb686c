//! The recorder's C functions.
#![expect(unsafe_code, reason = "calls C functions that are looked up by name")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;

type WithName = unsafe extern "C" fn(*const c_char);
type WithCount = unsafe extern "C" fn(*const c_char, u64);

/// An open window; it is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Window(&'static CStr);

/// Opens a window and tells the iterations that it will see. Without a recorder nothing happens.
pub(crate) fn open(name: &'static CStr, iterations: u64) -> Window {
    if let (Some(begin), Some(tell)) = (find(c"heaptally_window_begin"), find(c"heaptally_window_iterations"))
    {
        // SAFETY: the recorder's function of that name has this type.
        let begin = unsafe { transmute::<*mut c_void, WithName>(begin) };
        // SAFETY: the name is a C string.
        unsafe { begin(name.as_ptr()) };
        // SAFETY: the recorder's function of that name has this type.
        let tell = unsafe { transmute::<*mut c_void, WithCount>(tell) };
        // SAFETY: the name is a C string.
        unsafe { tell(name.as_ptr(), iterations) };
    }
    Window(name)
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(end) = find(c"heaptally_window_end") {
            // SAFETY: the recorder's function of that name has this type.
            let end = unsafe { transmute::<*mut c_void, WithName>(end) };
            // SAFETY: the name is a C string.
            unsafe { end(self.0.as_ptr()) };
        }
    }
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a C string up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
