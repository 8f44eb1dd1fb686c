//! The lists of kinds.

use crate::glob;

/// Kinds, each with its patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindRules {
    kinds: Vec<KindRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KindRule {
    words: String,
    /// What it tells more than.
    over: Vec<String>,
    patterns: Vec<String>,
}

impl KindRules {
    /// Opens a section by its title without brackets and without `kind `, as `string over array, array growth`; `None`: it names no
    /// kind.
    pub(crate) fn section(&mut self, title: &str) -> Option<usize> {
        let (words, over) = title.split_once(" over ").unwrap_or((title, ""));
        let words = words.trim();
        let is_word = |text: &str| {
            !text.is_empty()
                && text.chars().all(|next| next.is_ascii_lowercase() || next == ' ' || next == '-')
        };
        if !is_word(words) {
            return None;
        }
        let mut names = over.split(',').map(str::trim).filter(|name| !name.is_empty());
        let at = self.kinds.iter().position(|kind| kind.words == words).unwrap_or_else(|| {
            self.kinds.push(KindRule { words: words.to_owned(), ..KindRule::default() });
            self.kinds.len() - 1
        });
        let over: Vec<String> = names.by_ref().map(str::to_owned).collect();
        self.kinds.get_mut(at)?.over.extend(over);
        Some(at)
    }

    pub(crate) fn add(&mut self, kind: usize, pattern: &str) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.patterns.push(pattern.to_owned());
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        for kind in &other.kinds {
            if let Some(at) = self.section(&kind.words) {
                let own = &mut self.kinds[at];
                own.over.extend_from_slice(&kind.over);
                own.patterns.extend_from_slice(&kind.patterns);
            }
        }
    }

    pub(super) fn words(&self, kind: usize) -> &str {
        self.kinds.get(kind).map_or("", |kind| &kind.words)
    }

    pub(super) fn is_over(&self, kind: usize, inner: usize) -> bool {
        let inner = self.words(inner);
        self.kinds.get(kind).is_some_and(|kind| kind.over.iter().any(|over| over == inner))
    }

    /// The kind of a function by its names. Where several have it, one that is over the others.
    pub(super) fn of(&self, names: &[String]) -> Option<usize> {
        let fits = |kind: &KindRule| {
            kind.patterns.iter().any(|pattern| names.iter().any(|name| glob::matches(pattern, name)))
        };
        let mut found = None;
        for (at, kind) in self.kinds.iter().enumerate() {
            if found.is_none_or(|inner| self.is_over(at, inner)) && fits(kind) {
                found = Some(at);
            }
        }
        found
    }

    /// Kinds that are named behind `over` and that are none.
    #[cfg(test)]
    pub(super) fn unknown(&self) -> Vec<&str> {
        let is_known = |name: &String| self.kinds.iter().any(|kind| kind.words == *name);
        let over = self.kinds.iter().flat_map(|kind| &kind.over);
        over.filter(|name| !is_known(name)).map(String::as_str).collect()
    }
}
