//! Swift names, by Swift's own demangler.
//!
//! The vendored demangler writes the types that Swift's syntax abbreviates in full. They are abbreviated here, so that
//! a name is the one that Swift's tools print:
//!
//! | written | abbreviated |
//! |---|---|
//! | `Swift.Optional<T>` | `T?`, or `(T)?` where `T` is a function or a composition |
//! | `Swift.Array<T>` | `[T]` |
//! | `Swift.Dictionary<K, V>` | `[K : V]` |
//!
//! Names whose full form has 4096 bytes or more stay mangled.

use symbolic_common::{Language, Name, NameMangling};
use symbolic_demangle::{Demangle, DemangleOptions};

/// How deeply abbreviated types may nest; those further in stay as they are.
const MAX_DEPTH: u32 = 64;

/// The full name; `None` where it is no valid Swift name.
pub(super) fn demangle(base: &str) -> Option<String> {
    let name =
        Name::new(base, NameMangling::Mangled, Language::Swift).demangle(DemangleOptions::complete())?;
    // What is not valid comes back as it is.
    (name != base).then(|| abbreviate(&name, MAX_DEPTH))
}

/// A type that Swift's syntax abbreviates.
#[derive(Clone, Copy)]
enum Sugar {
    Optional,
    Array,
    Dictionary,
}

const SUGAR: [(&str, Sugar); 3] = [
    ("Swift.Optional<", Sugar::Optional),
    ("Swift.Array<", Sugar::Array),
    ("Swift.Dictionary<", Sugar::Dictionary),
];

/// Abbreviates the types in a name.
fn abbreviate(name: &str, depth: u32) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    let mut last = None;
    while let Some(next) = rest.chars().next() {
        // A longer identifier may end with the same letters.
        let is_start = !last.is_some_and(|last: char| last.is_alphanumeric() || matches!(last, '_' | '.'));
        if is_start
            && depth > 0
            && let Some((short, length)) = abbreviated(rest, depth)
        {
            text.push_str(&short);
            rest = &rest[length..];
            last = Some('>');
            continue;
        }
        text.push(next);
        rest = &rest[next.len_utf8()..];
        last = Some(next);
    }
    text
}

/// The abbreviation of the type that a text begins with, and how many bytes of the text it stands for.
fn abbreviated(text: &str, depth: u32) -> Option<(String, usize)> {
    let (opening, sugar) = SUGAR.into_iter().find(|(opening, _)| text.starts_with(opening))?;
    let inner = &text[opening.len()..];
    let arguments = Arguments::of(inner)?;
    let whole = abbreviate(&inner[..arguments.end], depth - 1);
    let short = match (sugar, arguments.comma) {
        (Sugar::Optional, None) if arguments.is_composed => format!("({whole})?"),
        (Sugar::Optional, None) => format!("{whole}?"),
        (Sugar::Array, None) => format!("[{whole}]"),
        (Sugar::Dictionary, Some(comma)) => {
            let key = abbreviate(&inner[..comma], depth - 1);
            let value = inner[comma..arguments.end].trim_start_matches(", ");
            format!("[{key} : {}]", abbreviate(value, depth - 1))
        }
        _ => return None,
    };
    Some((short, opening.len() + arguments.end + 1))
}

/// A list of generic arguments.
struct Arguments {
    /// Where its `>` stands.
    end: usize,
    /// Where the comma between its first two arguments stands.
    comma: Option<usize>,
    /// Whether it has a function's arrow or a composition's `&` that is in no bracket.
    is_composed: bool,
}

impl Arguments {
    /// Reads up to the `>` that ends the list. `None` where there is none.
    fn of(inner: &str) -> Option<Self> {
        let bytes = inner.as_bytes();
        let mut depth = 0_u32;
        let mut comma = None;
        let mut is_composed = false;
        for (at, &byte) in bytes.iter().enumerate() {
            let is_arrow = byte == b'>' && at.checked_sub(1).is_some_and(|before| bytes[before] == b'-');
            match byte {
                b'<' | b'(' | b'[' => depth += 1,
                b'>' if is_arrow => is_composed |= depth == 0,
                b'>' if depth == 0 => return Some(Self { end: at, comma, is_composed }),
                b')' | b']' | b'>' => depth = depth.checked_sub(1)?,
                b',' if depth == 0 => comma = comma.or(Some(at)),
                b'&' => is_composed |= depth == 0,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_abbreviated_as_swift_writes_them() {
        let expected = [
            ("f(Swift.Array<Swift.Int>) -> ()", "f([Swift.Int]) -> ()"),
            ("Swift.Optional<Swift.Optional<A>>", "A??"),
            ("Swift.Optional<(A) -> B>", "((A) -> B)?"),
            ("Swift.Optional<G<(A) -> B>>", "G<(A) -> B>?"),
            ("Swift.Optional<A & B>", "(A & B)?"),
            ("Swift.Dictionary<A, Swift.Array<(B, C)>>", "[A : [(B, C)]]"),
            ("Swift.Dictionary<G<A, B>, C>", "[G<A, B> : C]"),
            ("MySwift.Array<A>", "MySwift.Array<A>"),
            ("Swift.Array.append", "Swift.Array.append"),
            ("Swift.Array<A", "Swift.Array<A"),
            ("Swift.Dictionary<A>", "Swift.Dictionary<A>"),
        ];
        for (written, abbreviated) in expected {
            assert_eq!(abbreviate(written, MAX_DEPTH), abbreviated);
        }
    }
}
