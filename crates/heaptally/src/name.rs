//! Names of windows, and how they become C strings without allocating.

use crate::table::Table;
use std::ffi::{CStr, CString};

/// The longest name, in bytes, for which a `&str` is not copied to the heap.
const SHORT_BYTES: usize = 255;

/// A window's name.
///
/// Made from a C string, which is handed on as it is, or from a `&str`, which is copied to the stack at each call. A
/// `&str` of more than 255 bytes is copied to the heap while the calling thread's recording is paused, so that no
/// report shows it. A `&str` ends at its first NUL byte, as C's strings do.
///
/// ```
/// let size = 64;
/// let name = format!("parse/{size}");
/// let _literal = heaptally::window(c"parse");
/// let _computed = heaptally::window(name.as_str());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Name<'name>(Kind<'name>);

#[derive(Clone, Copy, Debug)]
enum Kind<'name> {
    C(&'name CStr),
    Text(&'name str),
}

impl<'name> From<&'name CStr> for Name<'name> {
    fn from(name: &'name CStr) -> Self {
        Name(Kind::C(name))
    }
}

impl<'name> From<&'name CString> for Name<'name> {
    fn from(name: &'name CString) -> Self {
        Name(Kind::C(name))
    }
}

impl<'name> From<&'name str> for Name<'name> {
    fn from(name: &'name str) -> Self {
        Name(Kind::Text(name))
    }
}

impl<'name> From<&'name String> for Name<'name> {
    fn from(name: &'name String) -> Self {
        Name(Kind::Text(name))
    }
}

/// A name that can be given to the recorder any number of times without allocating.
#[derive(Debug)]
pub(crate) enum Held<'name> {
    C(&'name CStr),
    /// At most [`SHORT_BYTES`] bytes, none of them NUL.
    Short(&'name str),
    /// `Some` until it is dropped.
    Long(Option<CString>, Table),
}

impl<'name> Held<'name> {
    /// Copies a long name to the heap, unrecorded.
    pub(crate) fn new(name: Name<'name>, table: Table) -> Self {
        let text = match name.0 {
            Kind::C(name) => return Held::C(name),
            Kind::Text(text) => text.split('\0').next().unwrap_or_default(),
        };
        if text.len() <= SHORT_BYTES {
            return Held::Short(text);
        }
        table.pause();
        // NOTE: it has no NUL, so this cannot fail; a name must not be able to panic all the same.
        let copy = CString::new(text).unwrap_or_default();
        table.resume();
        Held::Long(Some(copy), table)
    }

    /// Calls `call` with the name as a C string.
    pub(crate) fn with(&self, call: impl FnOnce(&CStr)) {
        match self {
            Held::C(name) => call(name),
            Held::Short(text) => {
                let mut buffer = [0; SHORT_BYTES + 1];
                let bytes = text.as_bytes().iter().take(SHORT_BYTES);
                buffer.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
                if let Ok(name) = CStr::from_bytes_until_nul(&buffer) {
                    call(name);
                }
            }
            Held::Long(name, _) => {
                if let Some(name) = name {
                    call(name);
                }
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Held::Long(name, table) = self {
            table.pause();
            drop(name.take());
            table.resume();
        }
    }
}
