//! The first line of a script, read as the kernel reads it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::exit::{Failure, NOT_FOUND};
use crate::message::quote;

/// The most that the kernel reads of a file to see what it is, in bytes.
pub(crate) const HEAD_BYTES: usize = 256;
/// What runs a text that the kernel does not take for a program: `execvp` does so.
pub(crate) const SHELL: &str = "/bin/sh";

/// What a file is, by its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ELF file.
    Elf,
    /// A script that names its interpreter.
    Script(PathBuf),
    /// A text that names none (which may be cut off, or empty): the shell runs it.
    Text,
    /// Bytes that are no program.
    Other,
}

/// Looks at the first [`HEAD_BYTES`] of a file.
pub(crate) fn kind(head: &[u8]) -> Kind {
    if head.starts_with(b"\x7fELF") {
        return Kind::Elf;
    }
    if let Some(interpreter) = interpreter(head) {
        return Kind::Script(interpreter);
    }
    // As shells tell: what follows the first line may be bytes.
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if first.contains(&0) { Kind::Other } else { Kind::Text }
}

/// Blanks and tabulators alone end a word: a carriage return is part of it.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let rest = head.strip_prefix(b"#!")?;
    let end = rest.iter().position(|byte| *byte == b'\n');
    let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
    let start = line.iter().position(|byte| !is_blank(byte))?;
    let line = line.get(start..).unwrap_or_default();
    let blank = line.iter().position(|byte| is_blank(byte) || *byte == 0);
    // A line that goes on beyond what is read must at least end its first word there.
    if end.is_none() && blank.is_none() && head.len() >= HEAD_BYTES {
        return None;
    }
    let word = line.get(..blank.unwrap_or(line.len())).unwrap_or(line);
    Some(OsString::from_vec(word.to_vec()).into())
}

/// Says that a script's interpreter is not there.
pub(crate) fn refuse_missing(interpreter: &Path, script: &Path) -> Failure {
    let words = format!("the interpreter {} of {} is not there", quote(interpreter), quote(script));
    let advice = if interpreter.as_os_str().as_bytes().ends_with(b"\r") {
        "its line ends as Windows ends lines: take the carriage returns out (sed -i 's/\\r$//')"
    } else {
        "install it, or mend the script's first line"
    };
    Failure::new(NOT_FOUND, format!("{words}\n{advice}"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_first_word_is_the_interpreter() {
        let of = |head: &str| kind(head.as_bytes());
        let script = |path: &str| Kind::Script(path.into());
        assert_eq!(of("#! /bin/sh -e\nx"), script("/bin/sh"));
        assert_eq!(of("#!\t/usr/bin/env\t-S python3\n"), script("/usr/bin/env"));
        assert_eq!(of("#!/bin/sh"), script("/bin/sh"));
        assert_eq!(of("#!/bin/sh\r\necho\r\n"), script("/bin/sh\r"));
        assert_eq!(kind(b"#!/\xff\n"), Kind::Script(OsStr::from_bytes(b"/\xff").into()));
    }

    #[test]
    fn what_names_no_interpreter_is_a_text() {
        for head in ["", "#!", "#!\n/bin/sh", "#! \t\n", "echo", "# !/bin/sh\n"] {
            assert_eq!(kind(head.as_bytes()), Kind::Text, "{head:?}");
        }
        assert_eq!(kind(b"\x7fELF"), Kind::Elf);
        assert_eq!(kind(b"a\0b"), Kind::Other);
        assert_eq!(kind(b"echo a\nexit\n\0"), Kind::Text);
    }

    /// Found out by trying: Linux 6.18 runs such a script by the shell where its path is cut off, and not where only
    /// its argument is.
    #[test]
    fn a_path_that_is_cut_off_names_none() {
        let cut = |line: String| kind(&line.as_bytes()[..HEAD_BYTES]);
        assert_eq!(cut(format!("#!/{}\n", "a".repeat(300))), Kind::Text);
        assert_eq!(cut(format!("#!/bin/sh {}\n", "a".repeat(300))), Kind::Script("/bin/sh".into()));
    }
}
