//! Functions, variables and types: from their full names to the simplified ones.
//!
//! | left out | full | simplified |
//! |---|---|---|
//! | modules, and where extensions stand | `(extension in b):a.T.f() -> ()` | `T.f()` |
//! | types of parameters and results | `a.f(x: Swift.Int, Swift.Int) async throws -> Swift.Int` | `f(x:_:)` |
//! | conditions | `a.f<A where A: Swift.Hashable>(A) -> ()` | `f<A>(_:)` |
//! | hashes of files | `a.(T in _1234).f() -> ()` | `T.f()` |

use super::scan::{closing, find_outside, is_operator, parts};

/// So deep functions in functions, and types in types, are followed.
const DEEPEST: usize = 32;

/// The simplified name of a function, a variable or a type.
pub(super) fn simplified(name: &str) -> String {
    entity(name, DEEPEST)
}

/// The simplified name of a type.
pub(super) fn simplified_type(name: &str) -> String {
    types(name, DEEPEST)
}

/// What a type's own function is called that implements a protocol's: `T.f(x:)` for `P.f(x:)`. Both are full, or both are simplified.
pub(super) fn implemented(of_type: &str, requirement: &str) -> String {
    let (lead, requirement) = match requirement.strip_prefix("static ") {
        Some(rest) => ("static ", rest),
        None => ("", requirement),
    };
    let name = without_extension(requirement);
    let end = [" ", "(", "<"].iter().filter_map(|end| name[last_dot(name)..].find(end)).min();
    let head = &name[..end.map_or(name.len(), |end| last_dot(name) + end)];
    // An accessor belongs to its property.
    let property = ACCESSORS.iter().find_map(|accessor| head.strip_suffix(accessor)).unwrap_or(head);
    let at = last_dot(property);
    let last = if at == 0 { name } else { &name[at + 1..] };
    format!("{lead}{of_type}.{last}")
}

/// Where the last dot of a path stands that a text begins with; 0: it has none.
fn last_dot(text: &str) -> usize {
    let end = find_outside(text, "(").into_iter().chain(find_outside(text, " ")).min().unwrap_or(text.len());
    super::scan::rfind_outside(&text[..end], ".").unwrap_or(0)
}

const ACCESSORS: [&str; 7] =
    [".getter", ".setter", ".modify", ".read", ".modify2", ".read2", ".unsafeMutableAddressor"];

/// What begins a name whose rest is an entity.
const LEADS: [&str; 5] = [
    "static ",
    "variable initialization expression of ",
    "property wrapper backing initializer of ",
    "lazy cache variable for ",
    "resilient ",
];

fn entity(name: &str, depth: usize) -> String {
    if depth == 0 {
        return name.to_owned();
    }
    if let Some(lead) = LEADS.iter().find(|lead| name.starts_with(**lead)) {
        return format!("{lead}{}", entity(&name[lead.len()..], depth - 1));
    }
    for (lead, is_kept) in [("default argument ", " of "), ("key path ", " for ")] {
        if let Some(rest) = name.strip_prefix(lead)
            && let Some(at) = rest.find(is_kept)
        {
            let (what, of) = (&rest[..at], &rest[at + is_kept.len()..]);
            let of = match (lead, super::scan::rfind_outside(of, " : ")) {
                ("key path ", Some(at)) => {
                    format!(
                        "{} : {}",
                        entity(&of[..at], depth - 1),
                        types(&of[at + " : ".len()..], depth - 1)
                    )
                }
                _ => entity(of, depth - 1),
            };
            return format!("{lead}{what}{is_kept}{of}");
        }
    }
    if let Some((head, rest)) = closure(name) {
        let outer = find_outside(rest, " in ").map_or("", |at| &rest[at + " in ".len()..]);
        let is_module = outer.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let outer = if is_module { String::new() } else { entity(outer, depth - 1) };
        return format!("{head} in {outer}");
    }
    if let Some((head, rest)) = numbered(name) {
        let at = find_outside(rest, " in ").unwrap_or(rest.len());
        let outer = rest.get(at + " in ".len()..).unwrap_or_default();
        if let Some(own) = signature(&rest[..at]) {
            return format!("{head}{own} in {}", entity(outer, depth - 1));
        }
    }
    if let Some(text) = of_type(name, depth - 1) {
        return text;
    }
    declared(name, depth)
}

/// A path with what is declared behind it: `a.T<A where …>.f(x: Swift.Int) -> ()`, `a.T.x.getter : Swift.Int`.
fn declared(name: &str, depth: usize) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = without_extension(name);
    let mut is_first = true;
    loop {
        let (part, behind) = component(rest);
        let is_path = behind.starts_with('.') && behind.len() > 1;
        if !(is_first && is_path && is_module(part)) {
            text.push_str(&shown(part, depth - 1));
        }
        is_first = false;
        rest = behind;
        if !is_path {
            break;
        }
        rest = &rest[1..];
        if !text.is_empty() {
            text.push('.');
        }
    }
    match signature(rest) {
        Some(signature) => text + &signature,
        // Something else that a demangler writes.
        None => name.to_owned(),
    }
}

/// What stands behind the name and the parameters of a function or a variable.
const BEHIND: [&str; 6] = [" -> ", " : ", " async", " throws", " rethrows", " reasync"];

/// The parameters as labels; what stands behind them is left out. `None`: the text is none of a function or variable.
fn signature(rest: &str) -> Option<String> {
    if let Some(behind) = rest.strip_prefix(' ')
        && let Some(fix) = ["infix", "prefix", "postfix"].iter().find(|fix| behind.starts_with(**fix))
    {
        return Some(format!(" {fix}{}", signature(&behind[fix.len()..])?));
    }
    let (generics, rest) = generics(rest);
    let (labels, behind) = match rest.starts_with('(').then(|| closing(rest)).flatten() {
        Some(end) => (labels(&rest[1..end]), &rest[end + 1..]),
        None => (String::new(), rest),
    };
    let is_known = behind.is_empty() || BEHIND.iter().any(|word| behind.starts_with(word));
    is_known.then(|| format!("{generics}{labels}"))
}

/// `(x:_:)` of `x: Swift.Int, Swift.Int`.
fn labels(parameters: &str) -> String {
    let mut text = "(".to_owned();
    for part in parts(parameters) {
        let label = part.split_once(':').map(|(label, _)| label).filter(|label| {
            !label.is_empty() && label.chars().all(|next| next.is_alphanumeric() || matches!(next, '_' | '`'))
        });
        text.push_str(label.unwrap_or("_"));
        text.push(':');
    }
    text.push(')');
    text
}

/// Lists of generic parameters at the front of a text, without conditions, and what follows.
fn generics(text: &str) -> (String, &str) {
    let mut kept = String::new();
    let mut rest = text;
    while rest.starts_with('<')
        && let Some(end) = closing(rest)
    {
        let inner = &rest[1..end];
        let inner = find_outside(inner, " where ").map_or(inner, |at| &inner[..at]);
        kept.push('<');
        kept.push_str(inner.trim_start());
        kept.push('>');
        rest = &rest[end + 1..];
    }
    (kept, rest)
}

/// The first component of a path, with its generic arguments, and what follows.
fn component(text: &str) -> (&str, &str) {
    let mut end = 0;
    if text.starts_with('(')
        && let Some(close) = closing(text)
        && text[..close].contains(" in ")
    {
        end = close + 1;
    } else if text.starts_with(is_operator) {
        end = text.find(' ').unwrap_or(text.len());
    } else {
        let is_name =
            |next: char| next.is_alphanumeric() || matches!(next, '_' | '$' | '`' | '@' | '~' | '?' | '!');
        end += text.find(|next| !is_name(next)).unwrap_or(text.len());
        if end == 0 && text.starts_with('[') {
            end = closing(text).map_or(0, |close| close + 1);
        }
    }
    if text[end..].starts_with('<')
        && let Some(close) = closing(&text[end..])
    {
        // A function's own are its signature's.
        let behind = end + close + 1;
        if !text[behind..].starts_with(['(', '<']) {
            end = behind;
        }
    }
    text.split_at(end)
}

/// A component as it is shown.
fn shown(part: &str, depth: usize) -> String {
    if let Some(inner) = part.strip_prefix('(')
        && let Some((name, _)) = inner.split_once(" in ")
    {
        // What stands behind the bracket are generic arguments.
        let arguments = closing(part).map_or("", |close| &part[close + 1..]);
        return format!("{name}{}", arguments_of(arguments, depth));
    }
    match part.find('<').filter(|at| *at > 0 && !part.starts_with(is_operator)) {
        Some(at) => format!("{}{}", &part[..at], arguments_of(&part[at..], depth)),
        None => part.to_owned(),
    }
}

/// Generic arguments, without conditions.
fn arguments_of(list: &str, depth: usize) -> String {
    if !list.starts_with('<') {
        return list.to_owned();
    }
    let (kept, rest) = generics(list);
    format!("{}{rest}", types(&kept, depth))
}

/// Whether a component is a module: a name that is no generic parameter's (`A`, `B1`).
fn is_module(part: &str) -> bool {
    let mut characters = part.chars();
    let is_parameter = characters.next().is_some_and(|first| first.is_ascii_uppercase())
        && characters.all(|next| next.is_ascii_digit());
    !is_parameter && part.chars().all(|next| next.is_alphanumeric() || next == '_') && part != "Self"
}

fn without_extension(mut name: &str) -> &str {
    while let Some((_, rest)) = name.strip_prefix("(extension in ").and_then(|rest| rest.split_once("):")) {
        name = rest;
    }
    name
}

/// `closure #1` and `implicit closure #2`, and what follows.
fn closure(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("implicit ").unwrap_or(name).strip_prefix("closure #")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = rest.get(digits..)?.strip_prefix(' ').filter(|_| digits > 0)?;
    Some((&name[..name.len() - rest.len() - 1], rest))
}

/// A local function's name with its number, `convert #1 `, and what follows.
fn numbered(name: &str) -> Option<(&str, &str)> {
    let at = find_outside(name, " #")?;
    let is_name = name[..at].chars().all(|next| next.is_alphanumeric() || matches!(next, '_' | '$'));
    let rest = &name[at + 2..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = rest.get(digits..)?.strip_prefix(' ').filter(|_| is_name && at > 0 && digits > 0)?;
    Some((&name[..name.len() - rest.len()], rest))
}

/// What is for types: `type metadata accessor for T`, `outlined copy of T`, `destroy value witness for T`.
fn of_type(name: &str, depth: usize) -> Option<String> {
    if let Some(at) = find_outside(name, " value witness for ") {
        let of = &name[at + " value witness for ".len()..];
        return Some(format!("{} for {}", &name[..at], types(of, depth)));
    }
    if let Some(at) = name.starts_with("outlined ").then(|| find_outside(name, " of ")).flatten() {
        let of = at + " of ".len();
        return Some(format!("{}{}", &name[..of], types(&name[of..], depth)));
    }
    let lead = FOR_TYPES.iter().find(|lead| name.starts_with(**lead))?;
    let rest = &name[lead.len()..];
    let text = match find_outside(rest, " and conformance ") {
        Some(at) => {
            let conformance = &rest[at + " and conformance ".len()..];
            format!("{} and conformance {}", types(&rest[..at], depth), conforming(conformance, depth))
        }
        // `P in T : Q in M`, `A.B : P in T : Q in M`, `T : P in M`.
        None => conforming_in(rest, depth),
    };
    Some(format!("{lead}{text}"))
}

const FOR_TYPES: [&str; 22] = [
    "type metadata accessor for ",
    "type metadata instantiation function for ",
    "type metadata instantiation cache for ",
    "type metadata completion function for ",
    "type metadata singleton initialization cache for ",
    "type metadata for ",
    "full type metadata for ",
    "generic type metadata pattern for ",
    "nominal type descriptor for ",
    "class metadata base offset for ",
    "metaclass for ",
    "associated type metadata accessor for ",
    "associated type witness table accessor for ",
    "base witness table accessor for ",
    "lazy protocol witness table accessor for type ",
    "lazy protocol witness table cache variable for type ",
    "protocol witness table accessor for ",
    "protocol witness table for ",
    "generic protocol witness table for ",
    "instantiation function for generic protocol witness table for ",
    "protocol conformance descriptor for ",
    "demangling cache variable for type metadata for ",
];

/// `T : P in M`: the type alone.
fn conforming(text: &str, depth: usize) -> String {
    let end = find_outside(text, " : ").unwrap_or(text.len());
    types(&text[..end], depth)
}

/// The same where something stands before the type: `A.B : P in T : Q in M`.
fn conforming_in(text: &str, depth: usize) -> String {
    match find_outside(text, " in ") {
        Some(at) if find_outside(&text[at..], " : ").is_some() => {
            let (what, of_type) = (&text[..at], &text[at + " in ".len()..]);
            format!("{} in {}", types(what, depth), conforming(of_type, depth))
        }
        _ => conforming(text, depth),
    }
}

/// Types within a text: their modules, the types of functions' parameters and conditions are left out.
fn types(text: &str, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return text.to_owned() };
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        let behind = without_extension(rest);
        if behind.len() < rest.len() {
            rest = behind;
            before = ' ';
            continue;
        }
        let begins = !(before.is_alphanumeric() || matches!(before, '_' | '.' | '@' | '#'));
        if next == '('
            && (begins || before == '.')
            && let Some(end) = closing(rest)
        {
            let inner = &rest[1..end];
            let behind = &rest[end + 1..];
            if let Some((name, _)) = inner.split_once(" in _") {
                kept.push_str(name);
            } else if is_function_type(behind)
                && !kept.ends_with("@callee_guaranteed ")
                && !is_lowered(&kept, inner)
            {
                // A function's type is shown by its labels.
                kept.push_str(&labels(inner));
                let result = behind.find(" -> ").map_or(behind, |at| &behind[at + " -> ".len()..]);
                rest = &result[types_end(result)..];
                before = ')';
                continue;
            } else {
                kept.push('(');
                kept.push_str(&types(inner, depth));
                kept.push(')');
            }
            rest = behind;
            before = ')';
            continue;
        }
        if next == '<'
            && let Some(end) = closing(rest)
        {
            let inner = &rest[1..end];
            let inner = find_outside(inner, " where ").map_or(inner, |at| &inner[..at]);
            kept.push('<');
            kept.push_str(types(inner, depth).trim_start());
            kept.push('>');
            rest = &rest[end + 1..];
            before = '>';
            continue;
        }
        if begins && (next.is_alphabetic() || next == '_') {
            let length =
                rest.find(|next: char| !(next.is_alphanumeric() || next == '_')).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(length);
            let is_path = behind.starts_with('.') && !behind.starts_with("..");
            if is_path && is_module(word) {
                rest = &behind[1..];
                // The next word is not a module, also where a dot follows.
                let length =
                    rest.find(|next: char| !(next.is_alphanumeric() || next == '_')).unwrap_or(rest.len());
                kept.push_str(&rest[..length]);
                before = rest[..length].chars().next_back().unwrap_or('.');
                rest = &rest[length..];
                if length == 0 {
                    before = ' ';
                }
            } else {
                kept.push_str(word);
                before = word.chars().next_back().unwrap_or(' ');
                rest = behind;
            }
            continue;
        }
        kept.push(next);
        before = next;
        rest = &rest[next.len_utf8()..];
    }
    kept
}

/// Whether a text is what stands behind the parameters in a function's type.
fn is_function_type(behind: &str) -> bool {
    [" -> ", " async -> ", " throws -> ", " async throws -> "].iter().any(|arrow| behind.starts_with(arrow))
}

/// Whether a function's type is a lowered one, whose parameters say how they are passed.
fn is_lowered(before: &str, parameters: &str) -> bool {
    let is_passed = |part: &str| {
        part.starts_with("@in")
            || part.starts_with("@unowned")
            || part.starts_with("@guaranteed")
            || part.starts_with("@owned")
            || part.starts_with("@out")
            || part.starts_with("@error")
    };
    parts(parameters).into_iter().any(is_passed)
        || [
            "@callee_guaranteed",
            "@callee_owned",
            "@callee_unowned",
            "@convention(thin)",
            "@async",
            "@yield_once",
        ]
        .iter()
        .any(|word| before.trim_end().ends_with(word))
}

/// Where the type ends with which a text begins, which is a function's result.
fn types_end(text: &str) -> usize {
    let end = [",", ")", "]", ">"].iter().filter_map(|end| find_outside(text, end)).min();
    end.unwrap_or(text.len())
}
