//! From a function's name in a file to its name for people.
//!
//! | the name begins with | demangled as |
//! |---|---|
//! | `_R`, or `_ZN` with a last part `17h` + 16 hex digits + `E` | Rust, without hashes |
//! | another `_Z` or `__Z` | C++, with parameters, without the return type |
//! | `$s`, `$S`, `$e`, each also behind `_`, or `_T0` | Swift, in full; stays mangled without the feature `swift` |
//! | anything else | itself: no other text is ever taken for a mangled name |
//!
//! **Clone suffixes** (`.constprop.0`, `.part.1`, `.isra.0`, `.cold`, `.llvm.123`, …: everything from the first dot
//! behind the mangled name) never reach a demangler. Each part of letters with the numbers behind it is appended in
//! brackets: `_Z3fooi.isra.0.cold` becomes `foo(int) [clone .isra.0] [clone .cold]`. A name that is not mangled keeps
//! its suffix as it is.
//!
//! **Coroutines.** GCC splits a coroutine `_Z3geni` in itself and two functions that take its frame, whose type is named
//! `_Z3geni.Frame`: `_Z3genPZ3geniE13_Z3geni.Frame.actor` and `….destroy`. These are told as clones of the coroutine:
//! `gen(int) [clone .actor]`. Clang's (`_Z3geni.resume`) are clones by their names.
//!
//! What cannot be demangled, is longer than 1 MiB either way, or nests without end, stays mangled.

use std::fmt::{self, Write};

mod cpp;
mod process;
#[cfg(feature = "swift")]
mod swift;

/// The longest name, mangled or not, in bytes.
const MAX_NAME_BYTES: usize = 1 << 20;

/// The name for people.
pub fn demangle(system_name: &str) -> String {
    demangle_all(&[system_name]).pop().unwrap_or_default()
}

/// A name in a file without what compilers append to copies of a function (`.constprop.0`, `.cold`), and that suffix.
pub fn without_clone_suffix(system_name: &str) -> (&str, &str) {
    let (base, suffix) = split_clone_suffix(system_name);
    if !suffix.is_empty() || is_mangled(system_name) {
        return (base, suffix);
    }
    // Names of C keep their suffix in reports; no identifier has a dot.
    match system_name.find('.') {
        Some(at) if at > 0 => system_name.split_at(at),
        _ => (system_name, ""),
    }
}

/// The names for people. For names of Swift, and names of C++ that nest deeply, it is faster than one by one.
pub(crate) fn demangle_all(system_names: &[&str]) -> Vec<String> {
    let mut swift_bases = Vec::new();
    for name in system_names.iter().filter(|name| is_swift(name)) {
        let (base, _) = split_clone_suffix(name);
        if base.len() <= MAX_NAME_BYTES {
            swift_bases.push(base);
        }
    }
    let mut swift_names = swift(&swift_bases).into_iter();
    let mut deep: Vec<(usize, &str)> = Vec::new();
    let mut names: Vec<Option<String>> = Vec::with_capacity(system_names.len());
    for (at, system_name) in system_names.iter().enumerate() {
        let (base, _) = split_clone_suffix(system_name);
        names.push(match Language::of(base) {
            _ if base.len() > MAX_NAME_BYTES => None,
            Language::Unknown => None,
            Language::Rust => rust(base),
            Language::Cpp => match cpp::demangle(base) {
                Ok(name) => Some(name),
                Err(cpp::Failure::Final) => None,
                Err(cpp::Failure::TooDeep) => {
                    deep.push((at, base));
                    None
                }
            },
            Language::Swift => swift_names.next().flatten(),
        });
    }
    let bases: Vec<&str> = deep.iter().map(|(_, base)| *base).collect();
    for ((at, _), name) in deep.iter().zip(process::demangle(&bases, cpp::demangle_deep)) {
        if let Some(place) = names.get_mut(*at) {
            *place = name;
        }
    }
    let with_suffix = |(name, system_name): (Option<String>, &&str)| match name {
        Some(name) => with_clone_suffix(name, split_clone_suffix(system_name).1),
        None => (*system_name).to_owned(),
    };
    names.into_iter().zip(system_names).map(with_suffix).collect()
}

/// Whether a name is mangled by a scheme that [`demangle`] knows.
pub(crate) fn is_mangled(system_name: &str) -> bool {
    Language::of(split_clone_suffix(system_name).0) != Language::Unknown
}

/// Whether a name is mangled as Rust's are.
pub(crate) fn is_rust(system_name: &str) -> bool {
    Language::of(split_clone_suffix(system_name).0) == Language::Rust
}

/// Splits a mangled name from its clone suffix, which is empty or begins with a dot.
pub(crate) fn split_clone_suffix(name: &str) -> (&str, &str) {
    let end = if let Some(end) = rust_legacy_end(name) {
        // A legacy Rust name may have dots inside.
        end
    } else if let Some(split) = split_coroutine(name) {
        return split;
    } else if name.starts_with("_Z") || name.starts_with("__Z") || name.starts_with("_R") || is_swift(name) {
        name.find('.').unwrap_or(name.len())
    } else {
        name.len()
    };
    name.split_at(end)
}

/// Of a function that takes a coroutine's frame: the coroutine's mangled name, and the clone suffix.
fn split_coroutine(name: &str) -> Option<(&str, &str)> {
    const FRAME: &str = ".Frame";
    if !name.starts_with("_Z") {
        return None;
    }
    name.rmatch_indices(FRAME).find_map(|(dot, _)| {
        let end = dot + FRAME.len();
        let suffix = &name[end..];
        if !suffix.starts_with('.') {
            return None;
        }
        // The identifier `_Z3geni.Frame` stands behind its length.
        let coroutine = name[..dot].rmatch_indices("_Z").map(|(start, _)| start).find(|&start| {
            let length = (end - start).to_string();
            name[..start].ends_with(&length)
        })?;
        Some((&name[coroutine..dot], suffix))
    })
}

/// Whether a name is mangled as Swift's are (swift/docs/ABI/Mangling.rst).
pub(crate) fn is_swift(system_name: &str) -> bool {
    let name = system_name.strip_prefix('_').unwrap_or(system_name);
    ["$s", "$S", "$e"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .or_else(|| system_name.strip_prefix("_T0"))
        .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
}

/// By which rules a name is mangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Unknown,
    Rust,
    Cpp,
    Swift,
}

impl Language {
    /// Of a name without clone suffix.
    fn of(base: &str) -> Self {
        if rust_legacy_end(base).is_some() {
            return Self::Rust;
        }
        match base.as_bytes() {
            [b'_', b'R', next, ..] if next.is_ascii_uppercase() || next.is_ascii_digit() => Self::Rust,
            [b'_', b'Z', _, ..] | [b'_', b'_', b'Z', _, ..] => Self::Cpp,
            _ if is_swift(base) => Self::Swift,
            _ => Self::Unknown,
        }
    }
}

/// Where a legacy Rust name (`_ZN…17h0123456789abcdefE`) ends.
fn rust_legacy_end(name: &str) -> Option<usize> {
    const HASH_BYTES: usize = "17h".len() + 16 + "E".len();
    if !name.starts_with("_ZN") {
        return None;
    }
    name.match_indices("17h").map(|(start, _)| start).find_map(|start| {
        let end = start + HASH_BYTES;
        let hash = name.as_bytes().get(start + 3..end - 1)?;
        let is_end = name.len() == end || name.as_bytes().get(end) == Some(&b'.');
        let is_hash = hash.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        (is_hash && name.as_bytes().get(end - 1) == Some(&b'E') && is_end).then_some(end)
    })
}

/// Appends a clone suffix in brackets.
fn with_clone_suffix(mut name: String, suffix: &str) -> String {
    let mut is_open = false;
    for part in suffix.split('.').skip(1) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !(is_number && is_open) {
            name.push_str(if is_open { "] [clone " } else { " [clone " });
            is_open = true;
        }
        name.push('.');
        name.push_str(part);
    }
    if is_open {
        name.push(']');
    }
    name
}

/// A text that refuses to grow beyond a limit.
#[derive(Debug, Default)]
struct LimitedText {
    text: String,
    is_full: bool,
}

impl Write for LimitedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len() + piece.len() > MAX_NAME_BYTES {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// A Rust name, both mangling schemes.
fn rust(base: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(base).ok()?;
    let mut text = LimitedText::default();
    // The alternate form has no hashes.
    write!(text, "{name:#}").ok()?;
    let is_cut = ["{size limit reached}", "{recursion limit reached}", "{invalid syntax}"]
        .iter()
        .any(|mark| text.text.contains(mark));
    (!is_cut && !text.text.is_empty()).then_some(text.text)
}

/// Names of Swift.
#[cfg(feature = "swift")]
fn swift(bases: &[&str]) -> Vec<Option<String>> {
    process::demangle(bases, swift::demangle)
}

/// Names of Swift: its demangler is not built in.
#[cfg(not(feature = "swift"))]
fn swift(_bases: &[&str]) -> Vec<Option<String>> {
    Vec::new()
}

#[cfg(test)]
mod tests;
