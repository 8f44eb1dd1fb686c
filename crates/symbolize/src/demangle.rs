//! From a function's name in a file to its name for people.
//!
//! | the name begins with | demangled as |
//! |---|---|
//! | `_R`, or `_ZN` with a last part `17h` + 16 hex digits + `E` | Rust, without hashes |
//! | another `_Z` or `__Z` | C++, with parameters, without the return type |
//! | anything else | itself: no other text is ever taken for a mangled name |
//!
//! **Clone suffixes** (`.constprop.0`, `.part.1`, `.isra.0`, `.cold`, `.llvm.123`, …: everything from the first dot
//! behind the mangled name) never reach a demangler. Each part of letters with the numbers behind it is appended in
//! brackets: `_Z3fooi.isra.0.cold` becomes `foo(int) [clone .isra.0] [clone .cold]`. A name that is not mangled keeps
//! its suffix as it is.
//!
//! What cannot be demangled, is longer than 1 MiB either way, or nests without end, stays mangled.

use std::fmt::{self, Write};
use std::panic;
use std::thread;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// The longest name, mangled or not, in bytes.
const MAX_NAME_BYTES: usize = 1 << 20;
/// How deeply C++ names may nest when the first try found them too deep.
const DEEP_RECURSION: u32 = 4096;
/// The stack for such names; only what is used becomes resident.
const DEEP_STACK_BYTES: usize = 256 << 20;

/// The name for people.
pub fn demangle(system_name: &str) -> String {
    let (base, suffix) = split_clone_suffix(system_name);
    let name = match Language::of(base) {
        _ if base.len() > MAX_NAME_BYTES => None,
        // Swift's names ($s, $S, _$s) have their place here.
        Language::Unknown => None,
        Language::Rust => rust(base),
        Language::Cpp => cpp(base),
    };
    match name {
        Some(name) => with_clone_suffix(name, suffix),
        None => system_name.to_owned(),
    }
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
    } else if name.starts_with("_Z") || name.starts_with("__Z") || name.starts_with("_R") {
        name.find('.').unwrap_or(name.len())
    } else {
        name.len()
    };
    name.split_at(end)
}

/// By which rules a name is mangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Unknown,
    Rust,
    Cpp,
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

/// A C++ name. Names that nest too deeply for the stack at hand are tried again on a stack of their own.
fn cpp(base: &str) -> Option<String> {
    match cpp_within(base, None) {
        Ok(name) => Some(name),
        Err(CppFailure::Final) => None,
        Err(CppFailure::TooDeep) => {
            let base = base.to_owned();
            let deep = thread::Builder::new()
                .name("demangle".to_owned())
                .stack_size(DEEP_STACK_BYTES)
                .spawn(move || cpp_within(&base, Some(DEEP_RECURSION)).ok());
            deep.ok()?.join().ok()?
        }
    }
}

/// Why a C++ name was not demangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CppFailure {
    /// A greater depth may help.
    TooDeep,
    /// Nothing helps.
    Final,
}

/// A C++ name up to a depth of nesting; `None`: the library's own.
fn cpp_within(base: &str, depth: Option<u32>) -> Result<String, CppFailure> {
    let mut parse = ParseOptions::default();
    let mut write = DemangleOptions::new().no_return_type();
    if let Some(depth) = depth {
        parse = parse.recursion_limit(depth);
        write = write.recursion_limit(depth);
    }
    // The bytes come from any file, and the library is large: a panic in it is one more way not to know the name.
    let result = panic::catch_unwind(|| {
        let symbol = match BorrowedSymbol::new_with_options(base.as_bytes(), &parse) {
            Ok(symbol) => symbol,
            Err(cpp_demangle::error::Error::TooMuchRecursion) => return Err(CppFailure::TooDeep),
            Err(_) => return Err(CppFailure::Final),
        };
        let mut text = LimitedText::default();
        match symbol.structured_demangle(&mut text, &write) {
            Ok(()) if text.text.is_empty() => Err(CppFailure::Final),
            Ok(()) => Ok(text.text),
            Err(_) if text.is_full => Err(CppFailure::Final),
            Err(_) => Err(CppFailure::TooDeep),
        }
    });
    result.unwrap_or(Err(CppFailure::Final))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_scheme_is_known_by_its_prefix() {
        let expected = [
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("__ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar"),
            (
                "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
                "<&T as core::fmt::Debug>::fmt",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Z1gIiEvT_", "g<int>(int)"),
            ("main", "main"),
            ("", ""),
        ];
        for (mangled, name) in expected {
            assert_eq!(demangle(mangled), name, "{mangled}");
        }
    }

    #[test]
    fn a_static_function_called_h_is_no_unsigned_char() {
        for name in ["h", "i", "v", "PKc", "3foo", "_", "_Z", "__Z", "_R"] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn clone_suffixes_come_after_the_name() {
        let expected = [
            ("_Z3fooi.constprop.0", "foo(int) [clone .constprop.0]"),
            ("_Z3fooi.isra.0.cold", "foo(int) [clone .isra.0] [clone .cold]"),
            ("_Z3fooi.part.0.constprop.12", "foo(int) [clone .part.0] [clone .constprop.12]"),
            ("_ZN3foo3bar17h0123456789abcdefE.llvm.1234", "foo::bar [clone .llvm.1234]"),
            ("_RNvC6_123foo3bar.llvm.A1B2", "123foo::bar [clone .llvm] [clone .A1B2]"),
            ("helper.constprop.0", "helper.constprop.0"),
        ];
        for (mangled, name) in expected {
            assert_eq!(demangle(mangled), name, "{mangled}");
        }
    }

    #[test]
    fn deeply_nested_names_come_whole() {
        // W<W<…<int>…> >, 400 levels.
        let mangled = format!("_Z1f{}i{}", "1WI".repeat(400), "E".repeat(400));
        let name = demangle(&mangled);
        assert!(name.starts_with("f(W<W<W<"), "{}", &name[..40.min(name.len())]);
        assert_eq!(name.matches('W').count(), 400);
    }

    #[test]
    fn names_without_end_stay_mangled() {
        let too_deep = format!("_Z1f{}i{}", "1WI".repeat(100_000), "E".repeat(100_000));
        assert_eq!(demangle(&too_deep), too_deep);
        let pointers = format!("_Z1f{}i", "P".repeat(1 << 19));
        assert_eq!(demangle(&pointers), pointers);
        // Each level doubles: 2^60 ints.
        let mut doubling = "_Z1f1PIiiE".to_owned();
        for level in 0..36 {
            let last = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            write!(doubling, "S_IS{last}_S{last}_E").unwrap();
        }
        assert!(demangle(&doubling).len() <= MAX_NAME_BYTES);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(name in "(_Z|_ZN|_R|__Z|)[ -~]{0,60}") {
            demangle(&name);
        }

        #[test]
        fn no_mangled_like_text_makes_it_panic(name in "_Z[NSKTLIEXJDtsabicdvPR0-9_.]{0,80}") {
            demangle(&name);
        }
    }
}
