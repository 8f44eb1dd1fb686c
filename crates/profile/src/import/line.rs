//! Lines of text with their numbers, and the errors that name them.

use crate::Error;

/// A line without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) bytes: &'a [u8],
}

/// The lines of a content.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = Line<'_>> + Clone {
    let end = content.strip_suffix(b"\n").map_or(content, |content| content);
    let is_empty = content.is_empty();
    end.split(|&byte| byte == b'\n')
        .filter(move |_| !is_empty)
        .enumerate()
        .map(|(at, bytes)| Line { number: at + 1, bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes) })
}

impl<'a> Line<'a> {
    /// The line as text: what is not UTF-8 in it becomes a mark, as names do that a terminal cannot show either.
    pub(super) fn text(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    pub(super) fn is_blank(self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// An error here.
    pub(super) fn error(self, format: &'static str, reason: impl Into<String>) -> Error {
        at_line(format, self.number, reason)
    }
}

/// An error in a line.
pub(super) fn at_line(format: &'static str, number: usize, reason: impl Into<String>) -> Error {
    Error::Import { format, place: format!("line {number}"), reason: reason.into() }
}

/// A word for a message: short, and with everything in it visible.
pub(super) fn shown(word: &str) -> String {
    const SHOWN: usize = 40;
    let cut: String = word.chars().take(SHOWN).collect();
    let more = if cut.len() < word.len() { "…" } else { "" };
    format!("\"{}{more}\"", cut.escape_debug())
}

/// A decimal number without a sign.
pub(super) fn number(word: &str) -> Result<u64, String> {
    // `parse` takes a plus sign, too.
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{} is no number", shown(word)));
    }
    word.parse().map_err(|_| format!("{} is too large a number", shown(word)))
}

/// A hexadecimal number, with or without `0x`.
pub(super) fn hex(word: &str) -> Result<u64, String> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("{} is no hexadecimal number", shown(word)));
    }
    u64::from_str_radix(digits, 16).map_err(|_| format!("{} is too large a number", shown(word)))
}

/// A symbol without the offset that tracers put behind it: `name+12` or `name+0x1f`.
pub(super) fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once('+') {
        Some((name, offset)) if !name.is_empty() && (number(offset).is_ok() || is_hex(offset)) => name,
        _ => symbol,
    }
}

fn is_hex(offset: &str) -> bool {
    offset.starts_with("0x") && hex(offset).is_ok()
}

/// `path/file.c:12` or `file.rs:12:5` as its file and line; a file without a line has line 0.
pub(super) fn source(text: &str) -> (&str, u32) {
    let parted = |text: &'_ str| -> Option<(usize, u32)> {
        let (file, line) = text.rsplit_once(':')?;
        Some((file.len(), number(line).ok()?.try_into().ok()?))
    };
    let Some((end, last)) = parted(text) else { return (text, 0) };
    let file = text.get(..end).unwrap_or(text);
    match parted(file) {
        // What follows the line is the column.
        Some((end, line)) => (file.get(..end).unwrap_or(file), line),
        None => (file, last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let numbers = |text: &str| lines(text.as_bytes()).map(|line| line.number).collect::<Vec<_>>();
        assert_eq!(numbers(""), [0; 0]);
        assert_eq!(numbers("a"), [1]);
        assert_eq!(numbers("a\n"), [1]);
        assert_eq!(numbers("a\n\nb\r\n"), [1, 2, 3]);
        assert_eq!(lines(b"a\r\nb").map(|line| line.text().len()).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn numbers_are_whole_and_fit() {
        assert_eq!(number("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "-1", "+1", "1.5", "18446744073709551616", "1e3"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        assert_eq!(hex("0xff"), Ok(255));
        assert!(hex("0x").is_err() && hex("10000000000000000").is_err());
    }

    #[test]
    fn offsets_and_columns_go() {
        assert_eq!(without_offset("main+12"), "main");
        assert_eq!(without_offset("main+0x1f"), "main");
        assert_eq!(without_offset("operator+"), "operator+");
        assert_eq!(without_offset("a::operator+(b)"), "a::operator+(b)");
        assert_eq!(source("a/b.c:12"), ("a/b.c", 12));
        assert_eq!(source("b.rs:12:5"), ("b.rs", 12));
        assert_eq!(source("b.rs"), ("b.rs", 0));
    }
}
