//! Function names made comparable: without what a compiler or a linker adds, and with the names that one function of
//! libc has under several symbols.

/// A name, taken apart for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name without clone suffix, hash and parameter list.
    pub head: String,
    /// `head` without template or generic arguments.
    pub plain: String,
    /// The parameter list with its brackets, where the name has one.
    pub parameters: Option<String>,
}

impl Name {
    /// Takes `text` apart.
    pub fn new(text: &str) -> Self {
        let whole = without_hash(without_clone_suffix(&without_clone_marks(text)));
        let (head, parameters) = split_parameters(&whole);
        let head = libc_name(head);
        Self { plain: without_arguments(&head), head, parameters }
    }

    /// Whether both mean the same function. A parameter list counts only where both have one.
    pub fn same(&self, other: &Self) -> bool {
        let parameters = match (&self.parameters, &other.parameters) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => true,
        };
        parameters
            && (self.head == other.head
                || (self.has_arguments() || other.has_arguments()) && self.plain == other.plain)
    }

    /// Whether `self` ends with `other` at a `::` or a space: `std::Task::resume()` ends with `Task::resume`.
    pub fn ends_with(&self, other: &Self) -> bool {
        self.same(other)
            || [(&self.head, &other.head), (&self.plain, &other.plain)].iter().any(|(mine, theirs)| {
                mine.strip_suffix(theirs.as_str())
                    .is_some_and(|rest| rest.ends_with("::") || rest.ends_with(' '))
            })
    }

    /// Whether `self` begins with `other`.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.head.starts_with(&other.head)
    }

    /// Whether `self` holds `other` anywhere.
    pub fn contains(&self, other: &Self) -> bool {
        self.head.contains(&other.head)
    }

    fn has_arguments(&self) -> bool {
        self.head != self.plain
    }
}

/// Drops each ` [clone .x]`.
fn without_clone_marks(text: &str) -> String {
    let mut kept = text.trim().to_owned();
    while let Some(start) = kept.find(" [clone ") {
        let end = kept[start..].find(']').map_or(kept.len(), |length| start + length + 1);
        kept.replace_range(start..end, "");
    }
    if let Some(start) = kept.find('@') {
        kept.truncate(start);
    }
    kept
}

/// Drops `.constprop.0`, `.part.0`, `.cold`, `.llvm.123` and their like.
fn without_clone_suffix(mut name: &str) -> &str {
    const WORDS: [&str; 9] =
        ["constprop", "part", "isra", "cold", "llvm", "lto_priv", "actor", "destroy", "localalias"];
    while let Some((rest, last)) = name.rsplit_once('.') {
        let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        if rest.is_empty() || !(is_number || WORDS.contains(&last)) {
            break;
        }
        name = rest;
    }
    name
}

/// Drops Rust's `::h` with sixteen hexadecimal digits.
fn without_hash(name: &str) -> String {
    let kept = name.rsplit_once("::h").and_then(|(rest, hash)| {
        (hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(rest)
    });
    kept.unwrap_or(name).to_owned()
}

/// Cuts the parameter list off the end.
fn split_parameters(name: &str) -> (&str, Option<String>) {
    let body = name.strip_suffix(" const").unwrap_or(name);
    if !body.ends_with(')') || body.ends_with("operator()") {
        return (body, None);
    }
    let mut depth = 0_i32;
    for (at, byte) in body.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { (body, None) } else { (&body[..at], Some(body[at..].to_owned())) };
        }
    }
    (body, None)
}

/// Drops `<…>` groups. A name that begins with one (Rust's `<A as B>::f`) and operators stay as they are.
fn without_arguments(head: &str) -> String {
    if head.starts_with('<') || head.contains("operator") {
        return head.to_owned();
    }
    let mut plain = String::new();
    let mut depth = 0_usize;
    let mut previous = ' ';
    for character in head.chars() {
        match character {
            '<' => depth += 1,
            '>' if previous != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
        previous = character;
    }
    plain.trim_end_matches("::").to_owned()
}

/// One name for the functions of libc that have several.
fn libc_name(head: &str) -> String {
    if !head.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || head.starts_with("__cxa_") {
        return head.to_owned();
    }
    let mut name = head;
    for prefix in ["__GI_", "_IO_", "__libc_"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    let name = name.trim_start_matches('_');
    let name = match name {
        "" => head,
        "gsignal" => "raise",
        other => other,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: &str, right: &str) -> bool {
        Name::new(left).same(&Name::new(right))
    }

    #[test]
    fn clone_suffixes_and_hashes_fold() {
        assert!(same("helper", "helper.constprop.0"));
        assert!(same("big", "big.part.0.cold"));
        assert!(same("f", "f.llvm.123456"));
        assert!(same("R01::main", "R01::main::h0123456789abcdef"));
        assert!(same("gen", "gen(_Z3geni.Frame*) [clone .actor]"));
        assert!(!same("helper", "helper2"));
    }

    #[test]
    fn parameters_count_only_where_both_have_them() {
        assert!(same("operator new(unsigned long)", "operator new"));
        assert!(!same("operator new(unsigned long)", "operator new(unsigned long, std::align_val_t)"));
        assert!(same("ops()", "ops"));
    }

    #[test]
    fn template_arguments_fold() {
        assert!(same("N<...>::go()", "N<Pair<int, Pair<int, int> > >::go()"));
        assert!(!same("N<...>::go()", "M<int>::go()"));
        assert!(!same("N<...>::go()", "N<int>::stay()"));
    }

    #[test]
    fn libc_aliases_fold() {
        assert!(same("raise", "__GI_raise"));
        assert!(same("raise", "gsignal"));
        assert!(same("puts", "_IO_puts"));
        assert!(same("strdup", "__strdup"));
    }

    #[test]
    fn an_ending_needs_a_boundary() {
        assert!(!Name::new("xmalloc").ends_with(&Name::new("malloc")));
        assert!(Name::new("std::Task::resume()").ends_with(&Name::new("Task::resume")));
    }
}
