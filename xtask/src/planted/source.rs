//! Source text of Rust and C++, read no further than needed: where functions begin, and where a line may be added.
//!
//! Each byte is code, or part of a comment, of a literal, or of a preprocessor's line. Braces, names and ends of lines
//! mean something in code only.

use super::random::Random;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Cpp,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Behind the brace that opens the body.
    pub(crate) body: usize,
}

/// The text with everything that is not code as blanks; its length and its ends of lines are the same.
pub(crate) fn code(text: &str, language: Language) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let len = skipped(bytes, at, language);
        for byte in code.iter_mut().skip(at).take(len).filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        at += len.max(1);
    }
    code
}

/// How many bytes from `at` on are no code.
fn skipped(bytes: &[u8], at: usize, language: Language) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b'\n');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if rest.starts_with(b"//") {
        return find(rest, b"\n").unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return comment(rest, language);
    }
    if language == Language::Cpp && rest.starts_with(b"#") && is_first_of_line(bytes, at) {
        return directive(rest);
    }
    if let Some(len) = raw(rest, language).filter(|_| !is_word(before)) {
        return len;
    }
    match rest.first() {
        Some(b'"') => quoted(rest, b'"'),
        Some(b'\'') if language == Language::Cpp && !is_word(before) => quoted(rest, b'\''),
        Some(b'\'') if language == Language::Rust => character(rest),
        _ => 0,
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn comment(rest: &[u8], language: Language) -> usize {
    let (mut at, mut depth) = (2, 1_usize);
    while at < rest.len() && depth > 0 {
        let pair = rest.get(at..at + 2).unwrap_or_default();
        match pair {
            b"*/" => (depth, at) = (depth - 1, at + 2),
            b"/*" if language == Language::Rust => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

fn is_first_of_line(bytes: &[u8], at: usize) -> bool {
    let line = bytes.get(..at).unwrap_or_default().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().all(u8::is_ascii_whitespace)
}

/// A preprocessor's line, with those that continue it.
fn directive(rest: &[u8]) -> usize {
    let ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let mut ends = ends.filter(|&at| at == 0 || rest.get(at - 1) != Some(&b'\\'));
    ends.next().unwrap_or(rest.len())
}

/// A raw string.
fn raw(rest: &[u8], language: Language) -> Option<usize> {
    let (opens, end): (usize, Vec<u8>) = match language {
        Language::Rust => {
            let prefix = if rest.starts_with(b"br") { 2 } else { usize::from(rest.starts_with(b"r")) };
            let marks = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
            let is_raw = prefix > 0 && rest.get(prefix + marks) == Some(&b'"');
            let mut end = vec![b'"'];
            end.extend(std::iter::repeat_n(b'#', marks));
            (is_raw.then_some(prefix + marks + 1)?, end)
        }
        Language::Cpp => {
            let inner = rest.strip_prefix(b"R\"")?;
            let open = inner.iter().position(|byte| *byte == b'(')?;
            let mut end = vec![b')'];
            end.extend_from_slice(inner.get(..open)?);
            end.push(b'"');
            (2 + open + 1, end)
        }
    };
    let inner = rest.get(opens..)?;
    Some(find(inner, &end).map_or(rest.len(), |at| opens + at + end.len()))
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == quote {
            break;
        }
    }
    at.min(rest.len())
}

/// A character of Rust; 0 where it is a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return quoted(rest, b'\'');
    }
    // One character of up to four bytes.
    let end = (2..=5).find(|&at| rest.get(at) == Some(&b'\''));
    let is_one = |end: usize| {
        let inner = std::str::from_utf8(rest.get(1..end).unwrap_or_default());
        inner.is_ok_and(|inner| inner.chars().count() == 1)
    };
    end.filter(|&end| is_one(end)).map_or(0, |end| end + 1)
}

/// The functions of a text whose bodies may call an allocator, in its order.
pub(crate) fn functions(text: &str, language: Language) -> Vec<Function> {
    let code = code(text, language);
    match language {
        Language::Rust => rust_functions(&code),
        Language::Cpp => cpp_functions(&code),
    }
}

fn words_before(code: &[u8], at: usize, count: usize) -> Vec<&str> {
    let start = at.saturating_sub(200);
    let before = std::str::from_utf8(code.get(start..at).unwrap_or_default()).unwrap_or_default();
    before.split_whitespace().rev().take(count).collect()
}

fn name_at(code: &[u8], at: usize) -> String {
    let name = code.iter().skip(at).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    name.map(|byte| char::from(*byte)).collect()
}

fn rust_functions(code: &[u8]) -> Vec<Function> {
    let macros = macros(code);
    let mut functions = Vec::new();
    let starts = code.windows(3).enumerate().filter(|(_, window)| *window == b"fn ").map(|(at, _)| at);
    for at in starts {
        let before = at.checked_sub(1).and_then(|at| code.get(at)).copied().unwrap_or(b' ');
        let name = name_at(code, at + 3);
        let is_constant = words_before(code, at, 3)
            .iter()
            .take_while(|word| !word.ends_with(['}', ';', '{']))
            .any(|word| *word == "const");
        if !before.is_ascii_whitespace()
            || name.is_empty()
            || is_constant
            || macros.iter().any(|of| of.contains(&at))
        {
            continue;
        }
        let mut depth = 0_i32;
        for (offset, byte) in code.iter().enumerate().skip(at + 3) {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b';' if depth == 0 => break,
                b'{' if depth == 0 => {
                    functions.push(Function { name, body: offset + 1 });
                    break;
                }
                _ => {}
            }
        }
    }
    functions
}

/// Where macros are defined.
fn macros(code: &[u8]) -> Vec<std::ops::Range<usize>> {
    let starts =
        code.windows(12).enumerate().filter(|(_, window)| *window == b"macro_rules!").map(|(at, _)| at);
    starts.map(|at| at..end_of_block(code, at)).collect()
}

/// Behind the bracket that closes the first one from `at` on.
fn end_of_block(code: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Blocks behind parameters, outside of other functions.
fn cpp_functions(code: &[u8]) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut at = 0;
    // Behind the last thing that ended.
    let mut start = 0;
    while let Some(byte) = code.get(at) {
        match byte {
            // A default of a parameter.
            b'{' if is_open(code.get(start..at).unwrap_or_default()) => {
                at = end_of_block(code, at);
                continue;
            }
            b'{' => match cpp_function(code.get(start..at).unwrap_or_default()) {
                Some(name) => {
                    if !name.is_empty() {
                        functions.push(Function { name, body: at + 1 });
                    }
                    at = end_of_block(code, at);
                    start = at;
                    continue;
                }
                None => start = at + 1,
            },
            b'}' | b';' => start = at + 1,
            _ => {}
        }
        at += 1;
    }
    functions
}

/// Whether a text ends within round brackets.
fn is_open(text: &[u8]) -> bool {
    let count = |bracket: u8| text.iter().filter(|byte| **byte == bracket).count();
    count(b'(') > count(b')')
}

/// The name of the function that a text declares; empty where nothing may be added to it; `None`: it is none.
fn cpp_function(declaration: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(declaration).unwrap_or_default();
    let mut head = text.trim_end();
    let qualifiers = ["const", "noexcept", "override", "final", "mutable"];
    while let Some(rest) = qualifiers.iter().find_map(|word| head.strip_suffix(word)) {
        head = rest.trim_end();
    }
    if !head.ends_with(')') {
        return None;
    }
    let open = head.find('(')?;
    let before = head.get(..open)?.trim_end();
    let name: String = before
        .chars()
        .rev()
        .take_while(|character| character.is_alphanumeric() || *character == '_' || *character == '~')
        .collect();
    let name: String = name.chars().rev().collect();
    let is_block =
        ["if", "for", "while", "switch", "catch", "namespace", "do", "else"].contains(&name.as_str());
    // Also where a macro says it.
    let lower = text.to_ascii_lowercase();
    let is_constant = lower.contains("constexpr") || lower.contains("consteval");
    match (is_block, is_constant || name.is_empty()) {
        (true, _) => None,
        (false, true) => Some(String::new()),
        (false, false) => Some(name),
    }
}

/// Adds blank lines where an end of a line is code, about behind every eighth, and some at the front.
pub(crate) fn drift(text: &str, language: Language, random: &mut Random) -> String {
    let code = code(text, language);
    let mut drifted = "\n".repeat(1 + random.below(40));
    for line in lines(text, &code) {
        drifted.push_str(line);
        if line.ends_with('\n') && random.below(8) == 0 {
            drifted.push_str(&"\n".repeat(1 + random.below(3)));
        }
    }
    drifted
}

/// Lines, those together that a literal, a comment or a directive joins.
fn lines<'t>(text: &'t str, code: &[u8]) -> Vec<&'t str> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (end, _) in text.match_indices('\n') {
        // The last byte before and the first behind are code or blank in the text too: no literal goes on.
        let is_kept = |at: usize| code.get(at) == text.as_bytes().get(at);
        let is_code = (end == 0 || is_kept(end - 1)) && is_kept(end + 1) && !text[start..end].ends_with('\\');
        if is_code {
            lines.push(&text[start..=end]);
            start = end + 1;
        }
    }
    lines.push(&text[start..]);
    lines
}

/// Functions and implementations of Rust that stand behind each other, in another order.
pub(crate) fn shuffle(text: &str, random: &mut Random) -> String {
    let mut items = items(text);
    let mut at = 0;
    while at < items.len() {
        let run = items[at..].iter().take_while(|(_, is_free)| *is_free).count();
        random.shuffle(&mut items[at..at + run]);
        at += run + 1;
    }
    items.into_iter().map(|(item, _)| item).collect()
}

/// The items of a file with what stands before each, and whether their order means nothing.
fn items(text: &str) -> Vec<(&str, bool)> {
    let code = code(text, Language::Rust);
    let mut items = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_end = depth == 0 && matches!(byte, b'}' | b';');
        // With the rest of the line, unless that has code.
        let rest_end =
            code.iter().skip(at + 1).position(|byte| *byte == b'\n').map_or(code.len(), |len| at + 2 + len);
        if is_end && at >= start && code[at + 1..rest_end].iter().all(u8::is_ascii_whitespace) {
            let is_free = is_free(&code[start..rest_end]);
            items.push((&text[start..rest_end], is_free));
            start = rest_end;
        }
    }
    items.push((&text[start..], false));
    items
}

fn is_free(code: &[u8]) -> bool {
    let text = std::str::from_utf8(code).unwrap_or_default();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let is_item = first.is_some_and(|line| {
        let words: Vec<&str> = line.split([' ', '<', '(']).collect();
        let kinds = ["pub", "unsafe", "async"];
        let kind = words.iter().find(|word| !kinds.contains(word) && !word.ends_with(')'));
        kind.is_some_and(|kind| ["fn", "impl"].contains(kind))
    });
    is_item && text.trim_end().ends_with('}') && !text.contains("#!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, language: Language) -> Vec<String> {
        functions(text, language).into_iter().map(|function| function.name).collect()
    }

    #[test]
    fn functions_of_rust() {
        let text = "const fn a() {}\nfn b<'a>(x: &'a [u8; 2]) -> char { '{' }\ntrait T { fn c(); fn d() {} }\n\
                    // fn e() {}\nmacro_rules! m { () => { fn f() {} } }\nconst S: &str = r#\"fn g() {\"#;\npub fn h() where u8: Copy {}\n";
        assert_eq!(names(text, Language::Rust), ["b", "d", "h"]);
    }

    #[test]
    fn functions_of_cpp() {
        let text = "#define F(x) \\\n  void f() {}\nnamespace n { class C : B { public: C() : a(1), b(2) { if (x) { } }\n\
                    int get() const noexcept { return 1'000; } constexpr int k() { return 1; } };\n\
                    template <class T> void put(T t, T u = {}) { for (;;) { } }\nenum E { A };\nint x[] = { 1 };\nconst char *s = R\"x({ void g() {)x\"; }\n";
        assert_eq!(names(text, Language::Cpp), ["C", "get", "put"]);
    }

    #[test]
    fn lines_move_and_nothing_else() {
        let text = "fn a() {\n    let text = \"one\n  two\";\n    /* three\n four */\n}\n";
        let drifted = drift(text, Language::Rust, &mut Random::new(3, &[]));
        let without = |text: &str| {
            text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_ne!(text, drifted);
        assert_eq!(without(text), without(&drifted));
        assert!(drifted.contains("\"one\n  two\""));
    }

    #[test]
    fn only_what_has_no_order_is_shuffled() {
        let text = "use a::{b, c};\n/// One.\nfn one() {}\n#[inline]\nfn two() {}\nmacro_rules! m { () => {} }\nfn three() { m!(); }\nstatic X: u8 = 0;\n";
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let shuffled = shuffle(text, &mut Random::new(seed, &[]));
            assert!(shuffled.starts_with("use a") && shuffled.ends_with("X: u8 = 0;\n"), "{shuffled}");
            assert!(
                shuffled.find("macro_rules").unwrap_or(0) < shuffled.find("three").unwrap_or(0),
                "{shuffled}"
            );
            assert!(
                shuffled.contains("/// One.\nfn one") && shuffled.contains("#[inline]\nfn two"),
                "{shuffled}"
            );
            seen.insert(shuffled);
        }
        assert_eq!(seen.len(), 2);
    }
}
