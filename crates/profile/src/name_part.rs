//! Parts of functions' names, as demanglers write them for C++ and Rust.

/// Without the parameters of a function at the end, and what follows them.
pub fn without_parameters(name: &str) -> &str {
    let Some(end) = name.rfind(')').filter(|_| !name.ends_with('>')) else { return name };
    let mut depth = 0_usize;
    for (at, character) in name.get(..=end).unwrap_or(name).char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let front = name.get(..at).unwrap_or(name);
                    let is_name = front.is_empty() || front.ends_with("operator") || front.ends_with("::");
                    return if is_name { name } else { front };
                }
            }
            _ => {}
        }
    }
    name
}

/// Without generic arguments at the end.
pub fn without_arguments(name: &str) -> &str {
    if !name.ends_with('>')
        || name.ends_with("operator>")
        || name.ends_with("->")
        || name.ends_with(">>") && name.contains("operator>>")
    {
        return name;
    }
    let mut depth = 0_usize;
    for (at, character) in name.char_indices().rev() {
        match character {
            '>' => depth += 1,
            '<' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let front = name.get(..at).unwrap_or(name);
                    let front = front.strip_suffix("::").unwrap_or(front);
                    return if front.is_empty() { name } else { front };
                }
            }
            _ => {}
        }
    }
    name
}
