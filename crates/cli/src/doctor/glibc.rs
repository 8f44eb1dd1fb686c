//! The C library's version: this machine's, and the one that a program asks for.
#![expect(unsafe_code, reason = "asks the C library for its version")]

use std::ffi::CStr;

use super::finding::Finding;

/// The oldest version with which the recorder works.
const OLDEST: Version = (2, 31);

/// Major and minor number.
pub(crate) type Version = (u32, u32);

/// The version that this command runs with.
pub(crate) fn running() -> Option<(Version, String)> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: has no preconditions; returns a constant.
        let text = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned();
        Some((parse(&text)?, text))
    }
    #[cfg(not(target_env = "gnu"))]
    {
        None
    }
}

/// Reads `2.36`, or the beginning of `2.36.9000`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Looks at this machine's C library.
pub(crate) fn of_this_machine() -> Finding {
    let (major, minor) = OLDEST;
    match running() {
        Some((version, text)) if version >= OLDEST => {
            Finding::ok("glibc", format!("{text} ({major}.{minor} is the oldest that will do)"))
        }
        Some((_, text)) => Finding::problem(
            "glibc",
            format!("{text} is too old"),
            format!("use a system with glibc {major}.{minor} or later"),
        ),
        None => Finding::problem(
            "glibc",
            "this command does not run with glibc",
            "use a build of heaptally for x86_64-unknown-linux-gnu",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse("2.36"), Some((2, 36)));
        assert_eq!(parse("2.9.1"), Some((2, 9)));
        assert!(parse("2.9") < parse("2.31"));
        assert_eq!([parse("2"), parse(""), parse("2.x")], [None; 3]);
        assert_eq!(of_this_machine().level, super::super::finding::Level::Ok);
    }
}
