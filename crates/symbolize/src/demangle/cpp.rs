//! C++ names.

use std::panic;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use super::LimitedText;

/// How deeply names may nest when the first try found them too deep.
const DEEP_RECURSION: u32 = 4096;

/// A C++ name. Names that nest too deeply are for [`demangle_deep`].
pub(super) fn demangle(base: &str) -> Result<String, Failure> {
    within(base, None)
}

/// A C++ name that nests deeply. At some names that no compiler makes the library takes time and memory that double with
/// each level, and this takes a large stack, so it is for a process that can be ended.
pub(super) fn demangle_deep(base: &str) -> Option<String> {
    within(base, Some(DEEP_RECURSION)).ok()
}

/// Why a C++ name was not demangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A greater depth may help.
    TooDeep,
    /// Nothing helps.
    Final,
}

/// A C++ name up to a depth of nesting; `None`: the library's own.
fn within(base: &str, depth: Option<u32>) -> Result<String, Failure> {
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
            Err(cpp_demangle::error::Error::TooMuchRecursion) => return Err(Failure::TooDeep),
            Err(_) => return Err(Failure::Final),
        };
        let mut text = LimitedText::default();
        match symbol.structured_demangle(&mut text, &write) {
            Ok(()) if text.text.is_empty() => Err(Failure::Final),
            Ok(()) => Ok(text.text),
            Err(_) if text.is_full => Err(Failure::Final),
            Err(_) => Err(Failure::TooDeep),
        }
    });
    result.unwrap_or(Err(Failure::Final))
}
