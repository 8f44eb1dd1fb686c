//! Where in the file something stands.

use std::fmt;
use std::ops::Range;

use crate::message::quote_bytes;

/// A line and a column, both counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// The place of a byte. Beyond the end it is the end.
    pub(crate) fn of(text: &[u8], at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count() + 1;
        Self { line, column }
    }

    /// The place where a span begins.
    pub(crate) fn of_span(text: &str, span: Option<Range<usize>>) -> Self {
        Self::of(text.as_bytes(), span.map_or(0, |span| span.start))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// The name that is most like `wrong`, quoted; `None` if none is like it.
pub(crate) fn nearest<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    const LEAST: f64 = 0.4;
    // What is longer is no slip of the hand, and takes its square in time.
    const LONGEST_BYTES: usize = 100;
    if wrong.len() > LONGEST_BYTES {
        return None;
    }
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(wrong, name);
    let mut found: Option<(f64, &str)> = None;
    for name in names {
        let this = likeness(name);
        // The first of equals.
        if this >= LEAST && found.is_none_or(|(best, _)| this > best) {
            found = Some((this, name));
        }
    }
    found.map(|(_, name)| quote_bytes(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_1() {
        let text = "a = 1\nwörter = 2\n";
        let of = |at| Place::of(text.as_bytes(), at).to_string();
        assert_eq!([of(0), of(4), of(6), of(14), of(1000)], ["1:1", "1:5", "2:1", "2:8", "3:1"]);
        assert_eq!(Place::of(b"", 0).to_string(), "1:1");
        assert_eq!(Place::of(b"\xff\xff\n\xff", 3).to_string(), "2:1");
    }

    #[test]
    fn the_nearest_name() {
        let names = ["repeat", "report", "strict", "segment-dir"];
        let nearest = |wrong: &str| nearest(wrong, names);
        assert_eq!(nearest("reapet").as_deref(), Some("`repeat`"));
        assert_eq!(nearest("segment_dir").as_deref(), Some("`segment-dir`"));
        assert_eq!(nearest("zzz"), None);
        assert_eq!(nearest(&"repeat".repeat(100_000)), None);
    }
}
