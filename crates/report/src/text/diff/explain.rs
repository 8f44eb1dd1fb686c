//! How stacks were paired, frame by frame.
//!
//! ```text
//!   12.00 → 12.00 allocs/iter   paired although one side lacks frames (inlining, a tail call, less recursion)
//!     = push_value  src/header.rs:88  |  src/header.rs:90
//!     - parse_line (inlined)  src/header.rs:10
//!     ~ parse  src/parse.rs:7  |  parse_all  src/parse.rs:7
//! ```

use heaptally_profile::diff::{Explained, How, Pair, Relation, Side, WindowDiff};
use heaptally_profile::frame::Frame;

use super::{Numbers, Sides};
use crate::frame::{mark, name, source};
use crate::number::counted;
use crate::text::limited;
use crate::text::page::Page;

/// The pairs of a window: those first that are farthest from being equal.
pub(super) fn pairs(page: &mut Page, sides: &Sides<'_, '_>, window: &WindowDiff<'_>) {
    let mut pairs: Vec<&Pair> = window.pairs.iter().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.how));
    let shown = limited(pairs.len(), sides.options.limit);
    let numbers = Numbers::of(window);
    for pair in pairs.iter().take(shown) {
        let [base, change] = [Side::Base, Side::Change]
            .map(|side| numbers.value(window, side, pair.counts[side.index()].allocations, false));
        page.line(&format!("  {base} → {}   {}", numbers.allocations(&change), words(pair)));
        for line in sides.diff.explain(window, pair) {
            page.line(&format!("    {}", explained(&line)));
        }
    }
    if shown < pairs.len() {
        let more = counted((pairs.len() - shown) as u64, "more pair", "more pairs");
        page.line(&format!("  {more}; --limit 0 shows all, --stack REGEX some"));
    }
    page.line("");
}

/// Why a pair is one.
fn words(pair: &Pair) -> String {
    let mut words = match pair.how {
        How::Equal => "equal frames",
        How::Library => "paired although library frames differ",
        How::Inlining => "paired although one side lacks frames (inlining, a tail call, less recursion)",
        How::Renamed => "paired although a caller has another name or file",
        How::OtherSite => "paired although the call site has another name or file",
        How::Alone if pair.rows[0].is_empty() => "in the change only: nothing of the base is like it",
        How::Alone => "in the base only: nothing of the change is like it",
    }
    .to_owned();
    let [base, change] = pair.rows.each_ref().map(Vec::len);
    if base > 1 || change > 1 {
        words.push_str(&format!("; {base} of the base, {change} of the change, of which the first:"));
    }
    words
}

fn explained(line: &Explained<'_>) -> String {
    let place = |frame: &Frame<'_>| {
        let mark = mark(frame).map(|mark| format!(" {mark}")).unwrap_or_default();
        format!("{mark}{}", source(frame).map(|source| format!("  {source}")).unwrap_or_default())
    };
    let whole = |frame: &Frame<'_>| format!("{}{}", name(frame), place(frame));
    // What differs in nothing that is printed is the same for who reads it.
    let relation = match &line.frames {
        [Some(base), Some(change)] if whole(base) == whole(change) => Relation::Same,
        _ => line.relation,
    };
    let sign = match relation {
        Relation::Same => "=",
        Relation::Renamed => "~",
        Relation::BaseOnly => "-",
        Relation::ChangeOnly => "+",
    };
    match &line.frames {
        [Some(base), Some(change)] if relation == Relation::Same && place(base) == place(change) => {
            format!("{sign} {}", whole(change))
        }
        [Some(base), Some(change)] if relation == Relation::Same => {
            format!("{sign} {}  |{}", whole(base), place(change))
        }
        [Some(base), Some(change)] => format!("{sign} {}  |  {}", whole(base), whole(change)),
        [Some(frame), None] | [None, Some(frame)] => format!("{sign} {}", whole(frame)),
        [None, None] => sign.to_owned(),
    }
}
