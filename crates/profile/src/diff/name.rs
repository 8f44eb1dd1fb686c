//! Names without what differs from build to build.
//!
//! | left out | of | leaves |
//! |---|---|---|
//! | clone suffixes, in brackets or not | `f [clone .part.0]`, `f.llvm.99`, `f.constprop.0.cold` | `f` |
//! | hashes of crates and functions | `a[5f3c9d21ab]::f`, `a::f::h0123456789abcdef` | `a::f` |
//! | numbers of closures, lambdas and unnamed types | `f::{closure#3}`, `f::{{closure}}`, `{lambda(int)#2}`, `$_1` | `f::{closure}`, `{lambda(int)}`, `$_` |
//! | places of unnamed types | `(lambda at a.cc:7:3)`, `<impl at src/a.rs:7:1: 7:9>` | `(lambda)`, `<impl>` |
//! | Swift's wrappings and numbers | `(1) await resume partial function for a.f()`, `closure #2 in a.f()` | `a.f()`, `closure in a.f()` |
//!
//! Parameters and generic arguments stay: overloads and instances are functions of their own. [`without_generics`]
//! leaves out the latter.

use crate::swift_name;

/// Suffixes that compilers give to clones and parts of functions.
const CLONES: [&str; 18] = [
    "actor",
    "cleanup",
    "cold",
    "constprop",
    "destroy",
    "exit",
    "hot",
    "isra",
    "llvm",
    "localalias",
    "lto_priv",
    "omp_fn",
    "_omp_fn",
    "part",
    "resume",
    "unlikely",
    "variant",
    "warm",
];

/// What stands before the place of a type without name.
const PLACES: [&str; 6] = ["lambda at ", "struct at ", "class at ", "union at ", "enum at ", "impl at "];

/// The name that is compared.
pub(super) fn normal_name(name: &str) -> String {
    let within = swift_name::full_function(without_hash(without_suffix(name)));
    let name = within.as_ref();
    let mut normal = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (kept, skipped) = step(&normal, rest);
        normal.push_str(kept);
        rest = rest.get(skipped..).unwrap_or_default();
        if skipped == 0 {
            normal.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    // In the middle of a name too, as C++ demanglers write it behind a function that encloses another.
    while let Some(start) = normal.find(" [clone ") {
        let Some(end) = normal[start..].find(']') else { break };
        normal.replace_range(start..=start + end, "");
    }
    normal
}

/// What stands for the front of `rest`, and how many bytes that is; 0: the next character stands for itself.
fn step<'t>(before: &str, rest: &'t str) -> (&'t str, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(behind) = rest.strip_prefix('#') {
        let count = digits(behind);
        let next = behind.as_bytes().get(count);
        if count > 0 && matches!(next, Some(b'}')) {
            return ("", 1 + count);
        }
        // Swift: `closure #1 in`, `local #1 () in`.
        if count > 0 && before.ends_with(' ') && matches!(next, Some(b' ')) {
            return ("", 2 + count);
        }
    }
    if rest.starts_with("{{") {
        return ("{", 2);
    }
    if rest.starts_with("}}") {
        return ("}", 2);
    }
    if let Some(behind) = rest.strip_prefix("$_") {
        return (rest.get(..2).unwrap_or_default(), 2 + digits(behind));
    }
    for quoted in ["'lambda", "'unnamed"] {
        if let Some(behind) = rest.strip_prefix(quoted) {
            return (quoted_prefix(rest, quoted), quoted.len() + digits(behind));
        }
    }
    if rest.starts_with('[') && before.ends_with(|last: char| last.is_alphanumeric() || last == '_') {
        let hex = rest.bytes().skip(1).take_while(u8::is_ascii_hexdigit).count();
        if hex >= 8 && rest.as_bytes().get(1 + hex) == Some(&b']') {
            return ("", hex + 2);
        }
    }
    for place in PLACES {
        if rest.starts_with(place)
            && let Some(end) = rest.find([')', '>'])
        {
            return (rest.get(..place.len() - " at ".len()).unwrap_or_default(), end);
        }
    }
    ("", 0)
}

fn quoted_prefix<'t>(rest: &'t str, quoted: &str) -> &'t str {
    rest.get(..quoted.len()).unwrap_or_default()
}

/// Without `.part.0`, `.llvm.99`, ` [clone .cold]` at the end, any number of them.
fn without_suffix(mut name: &str) -> &str {
    loop {
        if let Some((function, clone)) = name.rsplit_once(" [clone ")
            && clone.ends_with(']')
        {
            name = function;
            continue;
        }
        let mut rest = name;
        while let Some((head, number)) = rest.rsplit_once('.')
            && !number.is_empty()
            && !head.is_empty()
            && !head.ends_with('.')
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            rest = head;
        }
        match rest.rsplit_once('.') {
            Some((head, word)) if !head.is_empty() && CLONES.contains(&word) => name = head,
            // A nested function's number, or a static one's behind LTO.
            _ => return rest,
        }
    }
}

/// Without the hash at the end of a legacy Rust name.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((head, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => head,
        _ => name,
    }
}

/// A name without generic arguments: `Vec<u8>::push` and `Vec<u16>::push` are one then. The arguments of a C++ template
/// take the parameters with them, which depend on them.
pub(super) fn without_generics(name: &str) -> String {
    let name = match name.strip_prefix("generic specialization <").and_then(|rest| rest.split_once("> of ")) {
        Some((_, function)) => function,
        None => name,
    };
    let mut kept = String::with_capacity(name.len());
    // By open bracket: whether what is inside it is kept.
    let mut open: Vec<bool> = Vec::new();
    let mut was_generic = false;
    let mut before = ' ';
    for character in name.chars() {
        let keeps = open.last().copied().unwrap_or(true);
        match character {
            '<' if !is_operator(&kept) => {
                // `<A as B>::f` begins where a path does; behind a name it is its arguments.
                let begins_path =
                    matches!(before, ' ' | '<' | '&' | '(' | '[' | '*' | ',') || kept.is_empty();
                let inside = keeps && begins_path;
                if keeps && !begins_path {
                    was_generic = true;
                    let len = kept.strip_suffix("::").map_or(kept.len(), str::len);
                    kept.truncate(len);
                }
                if inside {
                    kept.push('<');
                }
                open.push(inside);
            }
            '>' if before != '-' && !open.is_empty() => {
                let was_kept = open.pop();
                if was_kept == Some(true) {
                    kept.push('>');
                }
            }
            '(' if keeps && was_generic && open.is_empty() && !name.contains("::{") => break,
            character if keeps => kept.push(character),
            _ => {}
        }
        before = character;
    }
    kept
}

fn is_operator(kept: &str) -> bool {
    kept.ends_with("operator") || kept.ends_with("operator<")
}

/// How much alike two names are, from 0 to 1: the last part of the path counts most.
pub(super) fn similarity(a: &str, b: &str) -> f64 {
    let (a_path, a_last) = split_last(a);
    let (b_path, b_last) = split_last(b);
    let last = pairs_in_common(a_last, b_last);
    let path = if a_path == b_path { 1.0 } else { pairs_in_common(a_path, b_path) };
    0.8_f64.mul_add(last, 0.2 * path)
}

/// The path, and the name in it, without parameters and arguments.
fn split_last(name: &str) -> (&str, &str) {
    let end = name.find('(').filter(|&at| at > 0).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(name);
    match name.rfind("::") {
        Some(at) => (name.get(..at).unwrap_or_default(), name.get(at + 2..).unwrap_or_default()),
        None => ("", name),
    }
}

/// Dice's coefficient of the pairs of neighbouring characters.
fn pairs_in_common(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let pairs = |text: &str| {
        let lower: Vec<u8> = text.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
        let mut pairs: Vec<[u8; 2]> = lower.windows(2).filter_map(|pair| pair.try_into().ok()).collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    let (mut at, mut other, mut common) = (0, 0, 0_usize);
    while let (Some(x), Some(y)) = (a.get(at), b.get(other)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => other += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                at += 1;
                other += 1;
            }
        }
    }
    match a.len() + b.len() {
        0 => 0.0,
        all => 2.0 * common as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_build_to_build_is_left_out() {
        for (name, normal) in [
            ("helper.constprop.0", "helper"),
            ("big.part.0.isra.0.cold", "big"),
            ("f.llvm.123456789", "f"),
            ("f.cold.1", "f"),
            ("main._omp_fn.0", "main"),
            ("static_one.lto_priv.7", "static_one"),
            ("nested.4711", "nested"),
            ("foo(int) [clone .isra.0] [clone .cold]", "foo(int)"),
            ("print(char const*, ...)", "print(char const*, ...)"),
            ("a::b::h0123456789abcdef", "a::b"),
            ("a::hash", "a::hash"),
            ("bench[5f3c9d21ab]::run::<core[1234567890abcdef]::T>", "bench::run::<core::T>"),
            ("f(int (&) [16])", "f(int (&) [16])"),
            ("get[abi:cxx11](int)", "get[abi:cxx11](int)"),
            ("a::f::{closure#3}::{closure#0}", "a::f::{closure}::{closure}"),
            ("a::f::{{closure}}", "a::f::{closure}"),
            ("<a::{impl#7} as T>::f", "<a::{impl} as T>::f"),
            ("main::{lambda(int)#2}::operator()(int) const", "main::{lambda(int)}::operator()(int) const"),
            ("main::$_1::operator()(int) const", "main::$_::operator()(int) const"),
            ("main::'lambda3'(int)::operator()(int)", "main::'lambda'(int)::operator()(int)"),
            ("S<(lambda at /src/a.cc:7:3)>::run()", "S<(lambda)>::run()"),
            ("m::<impl at src/a.rs:7:1: 7:9>::f", "m::<impl>::f"),
            ("(1) await resume partial function for a.f() async -> ()", "a.f() async -> ()"),
            ("closure #2 (Swift.Int) in a.f()", "closure (Swift.Int) in a.f()"),
            ("function signature specialization <Arg[0] = Dead> of a.f()", "a.f()"),
            ("{unnamed type#1}::f()", "{unnamed type}::f()"),
            ("", ""),
            (".5", ".5"),
            ("...", "..."),
            ("#1}", "}"),
        ] {
            assert_eq!(normal_name(name), normal, "{name}");
        }
    }

    #[test]
    fn generic_arguments_fold_by_request() {
        for (name, short) in [
            ("alloc::vec::Vec<u8>::push", "alloc::vec::Vec::push"),
            (
                "<alloc::vec::Vec<u8> as core::iter::Extend<u8>>::extend",
                "<alloc::vec::Vec as core::iter::Extend>::extend",
            ),
            ("core::mem::swap::<u8>", "core::mem::swap"),
            ("push<int>(std::vector<int>&, int)", "push"),
            ("add(std::vector<int>&)", "add(std::vector&)"),
            ("operator<<(int)", "operator<<(int)"),
            ("generic specialization <Swift.Int> of a.f() -> ()", "a.f() -> ()"),
            ("f::<fn(u8) -> u8>", "f"),
        ] {
            assert_eq!(without_generics(name), short, "{name}");
        }
    }

    #[test]
    fn renamed_functions_are_more_alike_than_others() {
        assert!(similarity("swap_a", "swap_b") > 0.7);
        assert!(similarity("old_name", "new_name") > 0.5);
        assert!(similarity("a::Parser::header", "a::Parser::headers") > 0.8);
        assert!(similarity("gone", "fresh") < 0.3);
        assert!(similarity("a::b::parse", "a::b::render") < 0.45);
        assert_eq!(similarity("a::b", "a::b"), 1.0);
    }
}
