//! The command's own words on the error output.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use heaptally_profile::path_text::escape_path;
use heaptally_report::escape::escape;

/// A name or path in quotes, with everything in it visible.
pub(crate) fn quote(name: impl AsRef<OsStr>) -> String {
    quote_bytes(name.as_ref().as_bytes())
}

/// A path with everything in it visible.
pub(crate) fn shown(path: &std::path::Path) -> String {
    escape(&escape_path(path.as_os_str().as_bytes())).into_owned()
}

/// As [`quote`], of bytes.
pub(crate) fn quote_bytes(name: &[u8]) -> String {
    format!("`{}`", visible(name))
}

/// A name or path with everything in it visible, without quotes.
pub(crate) fn visible(name: &[u8]) -> String {
    escape(&escape_path(name)).into_owned()
}

/// The text of a file, without the byte order mark that some editors put before it; or the line, from 1, that is no UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, usize> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        before.filter(|byte| **byte == b'\n').count() + 1
    })
}

/// Prints a message, its further lines indented. A closed error output is no error.
pub(crate) fn print(message: &str) {
    let text = format!("heaptally: {}\n", message.trim_end().replace('\n', "\n  "));
    // At once, so that it does not mix with what others write there.
    let _closed = std::io::stderr().write_all(text.as_bytes());
}
