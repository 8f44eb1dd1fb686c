//! Names as reports print them: those of C++ as people write them, those of Swift simplified, none with the number that a compiler
//! gave to a clone.
//!
//! ```text
//! std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >       std::string
//! std::map<int, Item, std::less<int>, std::allocator<std::pair<int const, Item> > >     std::map<int, Item>
//! ```

use std::borrow::Cow;

use crate::model::Function;
use crate::{name_part, swift_name};

/// What LLVM gives to functions that it made visible to other modules, with a number that another build has otherwise.
const LLVM: &str = ".llvm.";

/// A name without what the standard library adds to it (inline namespaces, default arguments of containers), and without
/// LLVM's number of a clone.
pub fn shorten(name: &str) -> Cow<'_, str> {
    let name = without_llvm_number(name);
    if !name.contains("std::") {
        return name;
    }
    let mut short = name.replace("std::__cxx11::", "std::").replace("std::__1::", "std::");
    for (long, alias) in [
        ("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
        ("std::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"),
        ("std::basic_string_view<char, std::char_traits<char> >", "std::string_view"),
        ("std::basic_string_view<char, std::char_traits<char>>", "std::string_view"),
    ] {
        short = short.replace(long, alias);
    }
    for default in
        [", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<", ", std::default_delete<"]
    {
        short = without_argument(&short, default);
    }
    Cow::Owned(short)
}

/// Drops the template arguments that begin so, each up to its closing bracket.
fn without_argument(name: &str, begin: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(begin) {
        let (before, from) = rest.split_at(at);
        let Some(end) = closing(from.get(begin.len()..).unwrap_or_default()) else { break };
        let behind = from.get(begin.len() + end + 1..).unwrap_or_default();
        // Only a last argument is a default one; another one is followed by its successors.
        kept.push_str(before);
        if behind.starts_with([' ', '>', ',']) {
            rest = behind.strip_prefix(' ').filter(|behind| behind.starts_with('>')).unwrap_or(behind);
        } else {
            kept.push_str(begin);
            rest = from.get(begin.len()..).unwrap_or_default();
        }
    }
    kept.push_str(rest);
    kept
}

/// Where the bracket closes that is open at the start.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' if depth == 0 => return Some(at),
            '>' => depth -= 1,
            _ => {}
        }
        before = character;
    }
    None
}

/// Drops ` [clone .llvm.123]` and `.llvm.123`.
fn without_llvm_number(name: &str) -> Cow<'_, str> {
    let Some(at) = name.find(LLVM) else { return Cow::Borrowed(name) };
    let (before, behind) = name.split_at(at);
    let behind = behind.get(LLVM.len()..).unwrap_or_default();
    let rest = behind.trim_start_matches(|digit: char| digit.is_ascii_digit());
    if rest.len() == behind.len() {
        return Cow::Borrowed(name);
    }
    let (before, rest) = match (before.strip_suffix(" [clone "), rest.strip_prefix(']')) {
        (Some(before), Some(rest)) => (before, rest),
        _ => (before, rest),
    };
    Cow::Owned(format!("{before}{rest}"))
}

/// By which rules a name is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Its names have parameters, which are left out where there is little room.
    Cpp,
    /// Its names are simplified, and what is wrapped around a function is left out ([`swift_name`]).
    Swift,
    /// Any other, or unknown.
    Other,
}

impl Language {
    /// Of a function, by its mangled name or else by its source.
    pub fn of(function: &Function) -> Self {
        match function.system_name.starts_with("_Z") {
            true => Self::Cpp,
            false if swift_name::is_swift(function) => Self::Swift,
            false => Self::Other,
        }
    }
}

/// A name as reports print it where they do not print it in full, and where there is little room, too.
pub fn shown(name: &str, language: Language) -> [Cow<'_, str>; 2] {
    match language {
        Language::Cpp => [shorten(name), shorten(name_part::without_parameters(name))],
        Language::Other => [shorten(name), shorten(name)],
        Language::Swift => {
            let within = swift_name::function(name);
            let text = if within.is_empty() { swift_name::simplified(name) } else { within };
            [Cow::Owned(text.clone()), Cow::Owned(text)]
        }
    }
}

/// The texts that a function is printed as beside its whole name.
pub fn printed(function: &Function) -> Vec<Cow<'_, str>> {
    let language = Language::of(function);
    let mut texts = Vec::from(shown(&function.name, language));
    if language == Language::Swift {
        texts.push(Cow::Owned(swift_name::simplified(&function.name)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_adds_is_left_out() {
        for (long, short) in [
            (
                "add(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
                "add(std::string const&)",
            ),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector<int>::push_back(int const&)",
            ),
            (
                "std::map<int, Item, std::less<int>, std::allocator<std::pair<int const, Item> > >::find(int)",
                "std::map<int, Item>::find(int)",
            ),
            (
                "std::vector<int, mine::allocator<int> >::size()",
                "std::vector<int, mine::allocator<int> >::size()",
            ),
            ("std::broken<int, std::allocator<int", "std::broken<int, std::allocator<int"),
            ("alloc::vec::Vec<T>::push", "alloc::vec::Vec<T>::push"),
            ("a::render() [clone .llvm.9347151543946927007]", "a::render()"),
            ("render.llvm.9347151543946927007.cold", "render.cold"),
            ("f(int) [clone .llvm.12] [clone .cold]", "f(int) [clone .cold]"),
            ("a.llvm.rs", "a.llvm.rs"),
        ] {
            assert_eq!(shorten(long), short);
        }
    }

    #[test]
    fn parameters_are_left_out_of_cpp_names_only() {
        let short = |name, system_name: &str| {
            let function = Function { system_name: system_name.into(), ..Function::default() };
            let [_, short] = shown(name, Language::of(&function));
            short.into_owned()
        };
        assert_eq!(short("add(std::string const&)", "_Z3addv"), "add");
        assert_eq!(short("f(int (*)(char)) const", "_Z1f"), "f");
        assert_eq!(short("Call::operator()(int)", "_Z1f"), "Call::operator()");
        assert_eq!(
            short("main::{lambda(int)#1}::operator()(int) const", "_Z1f"),
            "main::{lambda(int)#1}::operator()"
        );
        assert_eq!(short("<fn(A) as B>::f", "_RNv"), "<fn(A) as B>::f");
        assert_eq!(short("(anonymous namespace)::f(int)", "_Z1f"), "(anonymous namespace)::f");
        assert_eq!(short("a::(anonymous namespace)::f", "_Z1f"), "a::(anonymous namespace)::f");
    }

    #[test]
    fn names_of_swift_are_those_of_the_function_within() {
        let name = "(1) await resume partial function for partial apply forwarder for closure #1 () -> () in a.f(x: Swift.Int) -> ()";
        let function = Function { name: name.into(), system_name: "$s1a".into(), ..Function::default() };
        assert_eq!(shown(name, Language::of(&function)), ["closure #1 in f(x:)"; 2]);
        assert_eq!(
            printed(&function),
            ["closure #1 in f(x:)", "closure #1 in f(x:)", "partial apply for closure #1 in f(x:)"]
        );
        let thunk = "reabstraction thunk helper from @escaping () -> () to @escaping () -> (@out ())";
        assert_eq!(shown(thunk, Language::Swift)[0], swift_name::simplified(thunk));
    }
}
