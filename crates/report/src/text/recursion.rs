//! What repeats, shown once.

/// The longest sequence that is looked for.
const LONGEST_CYCLE: usize = 8;

/// Some items that follow each other, and how often.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run<'a, T> {
    pub(super) items: &'a [T],
    pub(super) times: usize,
}

/// Splits a sequence where items repeat: one that follows itself, or up to eight that take turns at least three times.
pub(super) fn runs<T: PartialEq>(items: &[T]) -> Vec<Run<'_, T>> {
    let mut runs = Vec::with_capacity(items.len());
    let mut rest = items;
    while !rest.is_empty() {
        let cycle = (1..=LONGEST_CYCLE.min(rest.len() / 2)).find_map(|len| {
            let (cycle, behind) = rest.split_at(len);
            let times = 1 + behind.chunks_exact(len).take_while(|chunk| *chunk == cycle).count();
            let least = if len == 1 { 2 } else { 3 };
            (times >= least).then_some((len, times))
        });
        let (len, times) = cycle.unwrap_or((1, 1));
        let (items, _) = rest.split_at(len);
        runs.push(Run { items, times });
        rest = rest.get(len * times..).unwrap_or_default();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs;

    fn fold(items: &str) -> String {
        let items: Vec<&str> = items.split_whitespace().collect();
        let text = runs(&items).into_iter().map(|run| match run.times {
            1 => run.items.join(" "),
            times => format!("({})×{times}", run.items.join(" ")),
        });
        text.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_follows_itself_is_one() {
        assert_eq!(fold("a b b b c"), "a (b)×3 c");
        assert_eq!(fold("a b c"), "a b c");
        assert_eq!(fold(""), "");
        assert_eq!(fold(&"x ".repeat(3000)), "(x)×3000");
    }

    #[test]
    fn what_takes_turns_is_one() {
        assert_eq!(fold("m a b a b a b z"), "m (a b)×3 z");
        assert_eq!(fold("a b a b"), "a b a b");
        assert_eq!(fold("a b b a b b a b b"), "(a b b)×3");
    }
}
