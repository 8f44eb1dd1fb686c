//! Address ranges in a file.

use object::{Object, ObjectSymbol, SymbolKind};

use super::image::Elf;

/// From an address to one behind the last.
pub(crate) type Range = std::ops::Range<u64>;

/// Code that compilers' start files bring, without debug information and in part without unwind tables, in bytes.
pub(crate) const START_FILES_BYTES: u64 = 256;

/// The functions that the symbol table knows with a size, sorted and without overlap.
pub(crate) fn functions(elf: &Elf<'_>) -> Vec<Range> {
    let mut ranges: Vec<Range> = elf
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0)
        .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
        .collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    // Names of one function.
    ranges.dedup_by(|next, kept| next.start < kept.end);
    ranges
}

/// The ranges sorted, those that touch each other as one.
pub(crate) fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The lengths of the parts of `range` that do not lie in `sorted`.
pub(crate) fn gaps(range: &Range, sorted: &[Range]) -> Vec<u64> {
    let first = sorted.partition_point(|other| other.end <= range.start);
    let mut gaps = Vec::new();
    let mut at = range.start;
    for other in sorted.iter().skip(first).take_while(|other| other.start < range.end) {
        gaps.push(other.start.saturating_sub(at));
        at = other.end;
    }
    gaps.push(range.end.saturating_sub(at));
    gaps.retain(|gap| *gap > 0);
    gaps
}

/// How many bytes of `range` lie in `sorted`.
pub(crate) fn overlap(range: &Range, sorted: &[Range]) -> u64 {
    let first = sorted.partition_point(|other| other.end <= range.start);
    sorted
        .iter()
        .skip(first)
        .take_while(|other| other.start < range.end)
        .map(|other| other.end.min(range.end) - other.start.max(range.start))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_where_they_share_bytes() {
        let sorted = merged(vec![40..50, 10..20, 15..30, 30..32]);
        assert_eq!(sorted, [10..32, 40..50]);
        assert_eq!(
            [0..10, 0..11, 9..60, 32..40, 31..41].map(|range| overlap(&range, &sorted)),
            [0, 1, 32, 0, 2]
        );
    }
}
