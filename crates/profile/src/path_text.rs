//! File paths as text, without loss.
//!
//! A path on Linux is any bytes without NUL; a profile holds text. The rule, both ways:
//!
//! | bytes of the path | text |
//! |---|---|
//! | a backslash | `\\` |
//! | a byte that is no part of valid UTF-8 | `\xNN`, two lower-case hex digits |
//! | everything else | itself |
//!
//! So `n\377m` (octal) is written `n\xffm`, and each path has exactly one text.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Writes the bytes of a path as text.
pub fn escape_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for (index, piece) in chunk.valid().split('\\').enumerate() {
            if index > 0 {
                text.push_str("\\\\");
            }
            text.push_str(piece);
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Reads a path back from its text. A backslash that begins neither form stands for itself.
pub fn unescape_path(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (b'\\', [b'\\', next @ ..]) => (b'\\', next),
            (b'\\', [b'x', high, low, next @ ..]) => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, next),
                _ => (first, after),
            },
            _ => (first, after),
        };
        bytes.push(byte);
        rest = next;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The value of a lower-case hex digit.
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn paths_have_the_documented_text() {
        assert_eq!(escape_path(b"/usr/bin/true"), "/usr/bin/true");
        assert_eq!(escape_path(b"dir with space/n\xffm"), "dir with space/n\\xffm");
        assert_eq!(escape_path(b"a\\xff"), "a\\\\xff");
        assert_eq!(escape_path("h\u{e9}".as_bytes()), "h\u{e9}");
    }

    #[test]
    fn lone_backslashes_stand_for_themselves() {
        assert_eq!(unescape_path("a\\b\\x4\\"), PathBuf::from("a\\b\\x4\\"));
        assert_eq!(unescape_path("\\xFF"), PathBuf::from("\\xFF"));
    }

    proptest! {
        #[test]
        fn every_path_survives(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = escape_path(&bytes);
            let path = unescape_path(&text);
            prop_assert_eq!(path.as_os_str().as_bytes(), &bytes[..]);
        }

        #[test]
        fn paths_made_of_escapes_survive(text in "[\\\\x0-9a-f]{0,24}") {
            let path = unescape_path(&escape_path(text.as_bytes()));
            prop_assert_eq!(path, PathBuf::from(text));
        }
    }
}
