//! Chains of calls as the cases write them, and their comparison with recorded stacks.
//!
//! ```text
//! main -> a -> ...malloc        root first; "..." before a name: any frames between
//! main -> helper... -> malloc   "..." after it: any name that begins so, then any frames
//! main -> ...tls_get... -> f    both: any name that holds it
//! main -> <signal> -> handler   a signal's trampoline
//! ```

use crate::name::Name;
use crate::report::Frame;

/// A chain of calls, root first.
#[derive(Clone, Debug)]
pub struct Chain {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Gap,
    Signal,
    Frame(Pattern),
}

#[derive(Clone, Debug)]
enum Pattern {
    Same(Name),
    Ends(Name),
    Starts(Name),
    Contains(Name),
}

impl Pattern {
    fn matches(&self, name: &Name) -> bool {
        match self {
            Self::Same(pattern) => name.same(pattern),
            Self::Ends(pattern) => name.ends_with(pattern),
            Self::Starts(pattern) => name.starts_with(pattern),
            Self::Contains(pattern) => name.contains(pattern),
        }
    }
}

impl Chain {
    /// Reads `main -> a -> ...malloc`.
    ///
    /// # Panics
    /// When a step is empty.
    pub fn new(text: &str) -> Self {
        let mut steps = Vec::new();
        for token in text.split(" -> ").map(str::trim) {
            assert!(!token.is_empty() && token != "...", "empty step in the chain {text:?}");
            if token == "<signal>" {
                steps.push(Step::Signal);
                continue;
            }
            let (gap_before, token) = token.strip_prefix("...").map_or((false, token), |rest| (true, rest));
            let (gap_after, token) = token.strip_suffix("...").map_or((false, token), |rest| (true, rest));
            let name = Name::new(token);
            if gap_before {
                steps.push(Step::Gap);
            }
            steps.push(Step::Frame(match (gap_before, gap_after) {
                (false, false) => Pattern::Same(name),
                (true, false) => Pattern::Ends(name),
                (false, true) => Pattern::Starts(name),
                (true, true) => Pattern::Contains(name),
            }));
            if gap_after {
                steps.push(Step::Gap);
            }
        }
        Self { text: text.to_owned(), steps }
    }

    /// The chain as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many frames the chain names: of two chains that match, the longer one says more.
    pub fn length(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step, Step::Gap)).count()
    }

    /// Whether the stack `frames` (leaf first, as reports have them) is this chain.
    ///
    /// What lies below the outermost frame that the chain's first name matches (the program's start-up code) is left
    /// out. Inlined frames may be named by the chain, or left out by it.
    pub fn matches(&self, frames: &[Frame]) -> bool {
        let names: Vec<Name> = frames.iter().rev().map(|frame| Name::new(&frame.function)).collect();
        let frames: Vec<&Frame> = frames.iter().rev().collect();
        let start = match self.steps.first() {
            Some(Step::Frame(pattern)) => match names.iter().position(|name| pattern.matches(name)) {
                Some(start) => start,
                None => return false,
            },
            _ => 0,
        };
        // `reached[i]`: the frames so far can be matched by the first i steps.
        let mut reached = vec![false; self.steps.len() + 1];
        reached[0] = true;
        self.skip_gaps(&mut reached);
        for (frame, name) in frames.iter().zip(&names).skip(start) {
            let mut next = vec![false; self.steps.len() + 1];
            for (at, _) in reached.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
                next[at] |= frame.inlined;
                match self.steps.get(at) {
                    Some(Step::Gap) => next[at] = true,
                    Some(Step::Signal) => next[at + 1] |= frame.is_signal(),
                    Some(Step::Frame(pattern)) => next[at + 1] |= pattern.matches(name),
                    None => {}
                }
            }
            self.skip_gaps(&mut next);
            reached = next;
        }
        reached[self.steps.len()]
    }

    fn skip_gaps(&self, reached: &mut [bool]) {
        for (at, step) in self.steps.iter().enumerate() {
            if reached[at] && matches!(step, Step::Gap) {
                reached[at + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames from text, root first: `+name` is inlined.
    fn stack(text: &str) -> Vec<Frame> {
        let mut frames: Vec<Frame> = text
            .split(" -> ")
            .map(|token| match token.strip_prefix('+') {
                Some(name) => Frame::test(name, true),
                None => Frame::test(token, false),
            })
            .collect();
        frames.reverse();
        frames
    }

    fn matches(chain: &str, frames: &str) -> bool {
        Chain::new(chain).matches(&stack(frames))
    }

    #[test]
    fn a_plain_chain_is_cut_at_main_and_else_exact() {
        assert!(matches("main -> a -> malloc", "_start -> __libc_start_main -> main -> a -> malloc"));
        assert!(!matches("main -> a -> malloc", "_start -> main -> a -> b -> malloc"));
        assert!(!matches("main -> a -> b -> malloc", "_start -> main -> a -> malloc"));
        assert!(!matches("main -> a -> malloc", "_start -> a -> malloc"));
        assert!(!matches("main -> a -> malloc", "_start -> main -> a"));
    }

    #[test]
    fn gaps_stand_for_any_frames() {
        assert!(matches("main -> a -> ...malloc", "main -> a -> malloc"));
        assert!(matches("main -> a -> ...malloc", "main -> a -> x -> y -> malloc"));
        assert!(!matches("main -> a -> ...malloc", "main -> a -> x -> calloc"));
        assert!(matches(
            "main -> root_a -> ...down -> down -> malloc",
            "main -> root_a -> down -> down -> malloc"
        ));
        assert!(!matches("main -> root_a -> ...down -> down -> malloc", "main -> root_a -> down -> malloc"));
        assert!(matches(
            "thr -> ...tls_get_addr... -> malloc",
            "clone3 -> thr -> touch -> __tls_get_addr -> tail -> malloc"
        ));
    }

    #[test]
    fn inlined_frames_may_be_named_or_left_out() {
        assert!(matches("main -> outer -> mid -> inl -> malloc", "main -> outer -> +mid -> +inl -> malloc"));
        assert!(matches("main -> outer -> malloc", "main -> outer -> +mid -> +inl -> malloc"));
        assert!(!matches("main -> outer -> inl -> malloc", "main -> outer -> mid -> +inl -> malloc"));
    }

    #[test]
    fn signals_and_clone_suffixes() {
        assert!(matches(
            "main -> poke -> raise... -> <signal> -> handler -> malloc",
            "main -> poke -> gsignal -> __pthread_kill_implementation -> <signal> -> handler -> malloc"
        ));
        assert!(matches(
            "main -> drive -> helper... -> malloc",
            "main -> drive -> helper.constprop.0 -> malloc"
        ));
    }
}
