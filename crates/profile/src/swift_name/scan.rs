//! Brackets and what stands between them.

/// Steps over a text and tells how deep each character lies in brackets: at the brackets themselves as outside of them.
///
/// The `>` of an arrow closes nothing. A bracket that closes none is taken for a character.
struct Depths<'t> {
    characters: std::str::CharIndices<'t>,
    depth: usize,
    before: char,
    /// Whether this is within an operator's name, which begins behind a dot.
    is_operator: bool,
}

fn depths(text: &str) -> Depths<'_> {
    Depths { characters: text.char_indices(), depth: 0, before: ' ', is_operator: false }
}

impl Iterator for Depths<'_> {
    /// Where, which character, how deep.
    type Item = (usize, char, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, character) = self.characters.next()?;
        let is_arrow = character == '>' && self.before == '-';
        let is_angle = matches!(character, '<' | '>');
        self.is_operator = is_operator(character) && (self.is_operator || self.before == '.');
        self.before = character;
        Some(match character {
            _ if is_angle && self.is_operator => (at, character, self.depth),
            '(' | '[' | '<' => {
                self.depth += 1;
                (at, character, self.depth - 1)
            }
            ')' | ']' | '>' if !is_arrow => {
                self.depth = self.depth.saturating_sub(1);
                (at, character, self.depth)
            }
            _ => (at, character, self.depth),
        })
    }
}

/// Whether operators have it in their names.
pub(super) fn is_operator(character: char) -> bool {
    "/=-+!*%<>&|^~?".contains(character)
}

/// Where a text stands outside of all brackets, for the first time.
pub(super) fn find_outside(text: &str, what: &str) -> Option<usize> {
    depths(text).find(|(at, _, depth)| *depth == 0 && text[*at..].starts_with(what)).map(|(at, ..)| at)
}

/// The same, for the last time.
pub(super) fn rfind_outside(text: &str, what: &str) -> Option<usize> {
    depths(text)
        .filter(|(at, _, depth)| *depth == 0 && text[*at..].starts_with(what))
        .last()
        .map(|(at, ..)| at)
}

/// Where the bracket closes with which a text begins.
pub(super) fn closing(text: &str) -> Option<usize> {
    depths(text)
        .skip(1)
        .find(|(_, character, depth)| *depth == 0 && matches!(character, ')' | ']' | '>'))
        .map(|(at, ..)| at)
}

/// The parts between commas outside of brackets, without blanks around them.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, character, depth) in depths(text) {
        if character == ',' && depth == 0 {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// The end of a list `<…>` with which a text begins, where other brackets in it may be open for ever (what is said of specialized
/// arguments).
pub(super) fn closing_angle(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        before = character;
    }
    None
}
