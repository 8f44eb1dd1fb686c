//! Names from a profile, made safe to print.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name with everything that a terminal could act on written as `\u{…}`: control characters (C0, DEL, C1), line and
/// paragraph separators, and the characters that turn the direction of text.
pub fn escape(name: &str) -> Cow<'_, str> {
    if !name.contains(is_unsafe) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if is_unsafe(character) {
            // Writing to a String does not fail.
            let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// A name in quotes, those in it marked. What is marked with a backslash in a profile's names is marked already.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", escape(name).replace('"', "\\\""))
}

/// JSON text in which no raw character is left that a terminal could act on. Within JSON these can only stand in
/// strings, where `\uXXXX` means the same.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    // A line feed between values is ours.
    let is_unsafe = |character: char| character != '\n' && is_unsafe(character);
    if !json.contains(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 8);
    for character in json.chars() {
        if is_unsafe(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal could act on a character. All of these lie below U+FFFF.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_command_a_terminal() {
        assert_eq!(escape("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(escape("\u{9b}31m\u{7f}\u{202e}"), "\\u{9b}31m\\u{7f}\\u{202e}");
        assert_eq!(escape("naïve::<T>"), "naïve::<T>");
    }

    #[test]
    fn a_name_ends_where_its_quotes_do() {
        assert_eq!(quote("look up"), "\"look up\"");
        assert_eq!(quote("a\"b\u{1b}"), "\"a\\\"b\\u{1b}\"");
    }

    #[test]
    fn json_means_the_same_after_it() {
        let json = serde_json::to_string("a\u{9b}b\u{7f}\u{1b}\"\\ü\u{202e}").unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.contains(is_unsafe));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "a\u{9b}b\u{7f}\u{1b}\"\\ü\u{202e}");
    }
}
