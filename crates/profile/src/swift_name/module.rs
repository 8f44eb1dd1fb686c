//! In which module of Swift a function is declared.

use super::scan::find_outside;
use super::{mangled, wrapping};

/// The module; `None`: the name does not tell.
///
/// A closure belongs to its function, what stands in an extension to the extension's module, and what implements a protocol to the type
/// that does.
pub fn module(name: &str) -> Option<&str> {
    if mangled::is_mangled(name) {
        return of_mangled(name);
    }
    let peeled = wrapping::peel(name);
    if peeled.wrappings.iter().any(|wrapping| !wrapping.has_function()) {
        return None;
    }
    let mut rest = peeled.conformance.unwrap_or(peeled.inner);
    loop {
        rest = LEADS.iter().find_map(|lead| rest.strip_prefix(lead)).unwrap_or(rest);
        // `closure #1 () -> () in f`, `local #1 () -> () in f`.
        let is_within =
            rest.starts_with("closure #") || rest.starts_with("implicit closure #") || is_local(rest);
        match find_outside(rest, " in ").filter(|_| is_within) {
            Some(at) => rest = &rest[at + " in ".len()..],
            None => break,
        }
    }
    if let Some((module, _)) = rest.strip_prefix("(extension in ").and_then(|rest| rest.split_once("):")) {
        return Some(module);
    }
    // A closure of a global variable has the module alone.
    let end = rest.find(|next: char| !(next.is_alphanumeric() || next == '_')).unwrap_or(rest.len());
    let (module, behind) = rest.split_at(end);
    let is_one =
        !module.is_empty() && (behind.starts_with('.') || (behind.is_empty() && rest.len() < name.len()));
    is_one.then_some(module)
}

const LEADS: [&str; 4] =
    ["static ", "variable initialization expression of ", "default argument 0 of ", "default argument 1 of "];

fn is_local(name: &str) -> bool {
    let end =
        name.find(|next: char| !(next.is_alphanumeric() || matches!(next, '_' | '$'))).unwrap_or(name.len());
    end > 0 && name[end..].starts_with(" #")
}

/// The standard library, as names that are not mangled have it.
const SWIFT: &str = "Swift";

/// Of a mangled name: the module comes first (swift/docs/ABI/Mangling.rst), but for an extension's, which follows the type.
///
/// ```text
/// $s 4mine 6Parser V 5parse …    mine
/// $s Sa 6append …                Swift: Array.append
/// $s Sa 4mine E 5twice …         mine: an extension of Array
/// ```
fn of_mangled(name: &str) -> Option<&str> {
    let prefix =
        ["_$s", "_$S", "_$e", "$s", "$S", "$e"].into_iter().find(|prefix| name.starts_with(prefix))?;
    let rest = &name[prefix.len()..];
    let (module, mut rest) = match rest.as_bytes() {
        // A type of the standard library, of its concurrency, or something else of it.
        [b'S', b'c', kind, ..] if kind.is_ascii_alphabetic() => (SWIFT, &rest[3..]),
        [b'S', kind, ..] if kind.is_ascii_alphabetic() => (SWIFT, &rest[2..]),
        [b's', ..] => (SWIFT, &rest[1..]),
        _ => identifier(rest)?,
    };
    loop {
        let Some((word, behind)) = identifier(rest) else { return Some(module) };
        match behind.as_bytes().first() {
            Some(b'E') => return Some(word),
            // A type within the one before.
            Some(b'V' | b'C' | b'O' | b'P' | b'a') => rest = &behind[1..],
            _ => return Some(module),
        }
    }
}

/// An identifier behind its length, and what follows. One whose words are told by others has a length of 0 first.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..digits)?.parse().ok().filter(|length| *length > 0)?;
    if text.starts_with('0') {
        return None;
    }
    Some((text.get(digits..digits.checked_add(length)?)?, text.get(digits + length..)?))
}
