//! Patterns in which `*` stands for any run of characters, the empty one too. Everything else stands for itself.

/// Whether the whole of `text` fits `pattern`.
///
/// Takes at most `pattern.len() * text.len()` steps.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on after a `*` that turned out to have taken too little: behind it, and one more byte taken.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                p += 1;
                retry = Some((p, t));
            }
            (Some(a), Some(b)) if a == b => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((behind, taken)) if taken < text.len() => {
                    p = behind;
                    t = taken + 1;
                    retry = Some((behind, t));
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_takes_any_run() {
        assert!(matches("", ""));
        assert!(matches("*", ""));
        assert!(matches("a*", "a"));
        assert!(matches("a*c*", "abcd"));
        assert!(matches("*b*b", "abab b"));
        assert!(matches("lib*.so*", "libc.so.6"));
        assert!(matches("**x", "xx"));
    }

    #[test]
    fn the_whole_text_must_fit() {
        assert!(!matches("", "a"));
        assert!(!matches("a", ""));
        assert!(!matches("a*c", "abcd"));
        assert!(!matches("std::*", "mystd::x"));
        assert!(!matches("a?c", "abc"));
    }
}
