//! In which language a function is written, as far as its names and its file tell.

use crate::model::Function;

/// A language whose standard library has a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    /// `mangled`: it has a mangled name, which tells more than the name for people.
    Cpp {
        mangled: bool,
    },
    Swift,
    Go,
    /// C, or unknown.
    Other,
}

/// The language of a function.
///
/// Rust's mangled names are those of RFC 2603 (`_R`) and the older ones, which are C++ names that end in a hash
/// (`17h` and 16 hex digits); Swift's begin with `$s`, `$S` or `$e` (swift/docs/ABI/Mangling.rst).
pub(super) fn language(function: &Function) -> Language {
    let symbol = function.system_name.as_str();
    if symbol.starts_with("_R") || (symbol.starts_with("_ZN") && ends_in_rust_hash(symbol)) {
        return Language::Rust;
    }
    if symbol.starts_with("_Z") {
        return Language::Cpp { mangled: true };
    }
    if ["$s", "$S", "$e", "_$s", "_$S", "_T0"].iter().any(|prefix| symbol.starts_with(prefix)) {
        return Language::Swift;
    }
    match function.file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => Language::Rust,
        Some("swift") => Language::Swift,
        Some("go") => Language::Go,
        // Go's run time has assembler files, whose functions are named as Go's own.
        Some("s") if function.name.contains('.') => Language::Go,
        Some("cc" | "cpp" | "cxx" | "c++" | "C" | "hh" | "hpp" | "hxx" | "h" | "inl" | "ipp" | "tcc") => {
            Language::Cpp { mangled: false }
        }
        _ => Language::Other,
    }
}

/// Whether a symbol ends in `17h<16 hex digits>E`, or does so before a suffix such as `.llvm.1234`.
fn ends_in_rust_hash(symbol: &str) -> bool {
    let base = symbol.find("E.").map_or(symbol, |at| &symbol[..=at]);
    let Some(hash) = base.strip_suffix('E').and_then(|base| base.get(base.len().checked_sub(19)?..)) else {
        return false;
    };
    hash.strip_prefix("17h").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A Rust name such as `<A as B>::f` or `<A>::f`: the type, and the trait if there is one. `None` for a plain path.
pub(super) fn qualified(name: &str) -> Option<(&str, Option<&str>)> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 0_usize;
    let mut trait_at = None;
    let mut before = 0;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The `>` of `->` closes nothing.
            b'>' if before == b'-' => {}
            b'>' if depth == 0 => {
                let (of_type, of_trait) = match trait_at {
                    Some(split) => (inner.get(..split)?, Some(inner.get(split + " as ".len()..at)?)),
                    None => (inner.get(..at)?, None),
                };
                return Some((of_type, of_trait));
            }
            b'>' => depth -= 1,
            b' ' if depth == 0 && trait_at.is_none() && inner[at..].starts_with(" as ") => {
                trait_at = Some(at)
            }
            _ => {}
        }
        before = byte;
    }
    None
}

/// The path within a Rust type: without references, pointers and brackets. `None` for one that has no path (a
/// primitive type, a generic parameter).
pub(super) fn type_path(mut of_type: &str) -> Option<&str> {
    const WRAPPINGS: [&str; 9] = ["&", "*const ", "*mut ", "mut ", "dyn ", "impl ", "[", "(", " "];
    loop {
        if let Some((_, rest)) = of_type.strip_prefix('\'').and_then(|rest| rest.split_once(' ')) {
            of_type = rest;
            continue;
        }
        match WRAPPINGS.iter().find_map(|wrapping| of_type.strip_prefix(wrapping)) {
            Some(rest) => of_type = rest,
            None => break,
        }
    }
    if of_type.starts_with('<') {
        return Some(of_type);
    }
    let identifier = of_type.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(of_type.len());
    of_type[identifier..].starts_with("::").then_some(of_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(system_name: &str, file: &str) -> Language {
        language(&Function { system_name: system_name.into(), file: file.into(), ..Function::default() })
    }

    #[test]
    fn mangled_names_tell_the_language() {
        assert_eq!(of("_RNvCs1234_7mycrate4main", ""), Language::Rust);
        assert_eq!(of("_ZN4core3fmt5write17h0123456789abcdefE", ""), Language::Rust);
        assert_eq!(of("_ZN4core3fmt5write17h0123456789abcdefE.llvm.99", ""), Language::Rust);
        assert_eq!(of("_ZN4core3fmt5writeEv", "x.rs"), Language::Cpp { mangled: true });
        assert_eq!(of("_ZN1hE", ""), Language::Cpp { mangled: true });
        assert_eq!(of("$sSa6appendyyxF", ""), Language::Swift);
    }

    #[test]
    fn without_one_the_file_does() {
        assert_eq!(of("push", "src/a.rs"), Language::Rust);
        assert_eq!(of("push", "/x/vector.tcc"), Language::Cpp { mangled: false });
        assert_eq!(of("main.push", "/src/main.go"), Language::Go);
        assert_eq!(of("push", "a.c"), Language::Other);
        assert_eq!(of("", ""), Language::Other);
    }

    #[test]
    fn a_qualified_name_is_split_at_its_own_as() {
        assert_eq!(qualified("<A as b::C>::f"), Some(("A", Some("b::C"))));
        assert_eq!(qualified("<[T]>::to_vec"), Some(("[T]", None)));
        assert_eq!(
            qualified("<v::V<<X as y::Y>::Z> as m::T>::f"),
            Some(("v::V<<X as y::Y>::Z>", Some("m::T")))
        );
        assert_eq!(qualified("<fn() -> u8 as m::T>::f"), Some(("fn() -> u8", Some("m::T"))));
        assert_eq!(qualified("a::b"), None);
        assert_eq!(qualified("<open"), None);
    }

    #[test]
    fn a_type_is_known_by_its_path() {
        assert_eq!(type_path("&mut [a::B]"), Some("a::B]"));
        assert_eq!(type_path("&'a dyn core::fmt::Write"), Some("core::fmt::Write"));
        assert_eq!(type_path("T"), None);
        assert_eq!(type_path("&str"), None);
        assert_eq!(type_path("fn(a::B)"), None);
        assert_eq!(type_path("'"), None);
    }
}
