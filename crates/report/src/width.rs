//! Text in columns of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text that takes at most so many columns: of a longer one the middle is left out, and `…` stands for it.
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    // The end tells more: it has the function's own name, the front its namespace.
    let back = take(text.chars().rev(), room - room / 3);
    let front = take(text.chars(), room - width(&back));
    format!("{front}…{}", back.chars().rev().collect::<String>())
}

/// A text that takes at most so many columns: of a longer one the front is left out, and `…` stands for it.
pub(crate) fn cut_front(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    format!("…{}", take(text.chars().rev(), room).chars().rev().collect::<String>())
}

/// The characters that fit.
fn take(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut taken = 0;
    characters
        .take_while(|character| {
            taken += character.width().unwrap_or(0);
            taken <= columns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(cut_middle("abcdefghij", 10), "abcdefghij");
        assert_eq!(cut_middle("abcdefghij", 7), "ab…ghij");
        assert_eq!(cut_middle("abcdefghij", 1), "…");
        assert_eq!(cut_middle("abcdefghij", 0), "");
        assert_eq!(cut_front("abcdefghij", 4), "…hij");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let wide = "世界世界世界";
        assert_eq!(width(wide), 12);
        for columns in 0..=13 {
            assert!(width(&cut_middle(wide, columns)) <= columns, "{columns}");
        }
    }
}
