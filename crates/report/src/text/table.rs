//! Numbers in columns, and what stands behind them.

use heaptally_profile::model::{Counts, Environment, Metric, Window};
use heaptally_profile::view::Sort;

use crate::number::{bytes_per_iteration, count, per_iteration, share};
use crate::width::width;

/// Lines of cells, aligned to the right, before a last column that is aligned to the left.
pub(super) struct Table {
    lines: Vec<Vec<String>>,
    last_title: &'static str,
}

impl Table {
    pub(super) fn new(titles: Vec<String>, last_title: &'static str) -> Self {
        Self { lines: vec![titles], last_title }
    }

    pub(super) fn push(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.lines.first().map_or(0, Vec::len);
        let cells = |column: usize| self.lines.iter().filter_map(move |line| line.get(column));
        (0..columns).map(|column| cells(column).map(|cell| width(cell)).max().unwrap_or(0)).collect()
    }

    /// Where the last column begins.
    pub(super) fn indent(&self) -> usize {
        2 + self.widths().iter().map(|width| width + 2).sum::<usize>()
    }

    /// The titles, then each line up to its last column.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let widths = self.widths();
        let text = |line: &Vec<String>| {
            let mut text = "  ".to_owned();
            for (cell, &columns) in line.iter().zip(&widths) {
                text.push_str(&" ".repeat(columns.saturating_sub(width(cell))));
                text.push_str(cell);
                text.push_str("  ");
            }
            text
        };
        let mut lines: Vec<String> = self.lines.iter().map(text).collect();
        if let Some(titles) = lines.first_mut() {
            titles.push_str(self.last_title);
        }
        lines.into_iter()
    }
}

/// Where what stands behind the cells has its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// In which column it begins.
    pub(super) indent: usize,
    /// How many columns it may take; `None`: as many as it needs.
    pub(super) room: Option<usize>,
    /// Whether it begins on a line of its own, since little is left of a narrow terminal.
    pub(super) is_below: bool,
}

impl Place {
    /// Less than this is too little beside the cells.
    const LEAST_COLUMNS: usize = 32;
    const INDENT_BELOW: usize = 4;

    pub(super) fn of(table: &Table, width: Option<usize>) -> Self {
        let indent = table.indent();
        let beside = width.map(|width| width.saturating_sub(indent));
        match width {
            Some(width) if beside < Some(Self::LEAST_COLUMNS) => Self {
                indent: Self::INDENT_BELOW,
                room: Some(width.saturating_sub(Self::INDENT_BELOW)),
                is_below: true,
            },
            _ => Self { indent, room: beside, is_below: false },
        }
    }
}

/// The numbers of a window's lines: per iteration where there are several, and the share of what is sorted by.
pub(super) struct Columns {
    iterations: u64,
    sort: Sort,
    all: Counts,
    /// Whether bytes were measured; else they have no column.
    has_bytes: bool,
}

impl Columns {
    /// `all`: what the shares are of.
    pub(super) fn of(window: &Window, sort: Sort, all: Counts) -> Self {
        Self { iterations: window.iterations, sort, all, has_bytes: true }
    }

    /// Without a column for what the recording does not know.
    pub(super) fn known_to(self, environment: &Environment) -> Self {
        Self { has_bytes: environment.knows(Metric::Bytes), ..self }
    }

    pub(super) fn has_bytes(&self) -> bool {
        self.has_bytes
    }

    /// The same without division.
    pub(super) fn totals(&self) -> Self {
        Self { iterations: 1, ..*self }
    }

    pub(super) fn is_divided(&self) -> bool {
        self.iterations > 1
    }

    pub(super) fn titles(&self) -> Vec<String> {
        let mut titles = vec!["allocs".to_owned()];
        if self.has_bytes {
            titles.push("B".to_owned());
        }
        match self.sort {
            Sort::Count | Sort::Bytes => {}
            Sort::Live => titles.push("live".to_owned()),
            Sort::Temporary => titles.push("temporary".to_owned()),
        }
        if self.is_divided() {
            for title in &mut titles {
                title.push_str("/iter");
            }
        }
        titles.push(if self.sort == Sort::Count { "share".to_owned() } else { self.share_title() });
        titles
    }

    fn share_title(&self) -> String {
        match self.sort {
            Sort::Count => "of allocs",
            Sort::Bytes => "of B",
            Sort::Live => "of live",
            Sort::Temporary => "of temporary",
        }
        .to_owned()
    }

    pub(super) fn cells(&self, counts: &Counts) -> Vec<String> {
        let mut cells = vec![self.number(counts.allocations)];
        if self.has_bytes {
            cells.push(self.bytes(counts.bytes));
        }
        if matches!(self.sort, Sort::Live | Sort::Temporary) {
            cells.push(self.number(self.sort.value(counts)));
        }
        cells.push(share(self.sort.value(counts), self.sort.value(&self.all)));
        cells
    }

    /// Which of the [`cells`](Self::cells) is sorted by.
    pub(super) fn sorted_by(&self) -> usize {
        match self.sort {
            Sort::Count => 0,
            Sort::Bytes => 1,
            Sort::Live | Sort::Temporary => 1 + usize::from(self.has_bytes),
        }
    }

    /// A count, divided if the columns are.
    pub(super) fn number(&self, value: u64) -> String {
        if self.is_divided() { per_iteration(Some(self.divide(value))) } else { count(value) }
    }

    /// As [`number`](Self::number), of bytes: whole where they are.
    pub(super) fn bytes(&self, value: u64) -> String {
        if self.is_divided() { bytes_per_iteration(Some(self.divide(value))) } else { count(value) }
    }

    fn divide(&self, value: u64) -> f64 {
        value as f64 / self.iterations.max(1) as f64
    }

    /// Whether there are as many allocations per iteration.
    pub(super) fn reaches(&self, counts: &Counts, min: f64) -> bool {
        self.divide(counts.allocations) >= min
    }
}

/// The sum of counts.
pub(super) fn sum<'c>(counts: impl Iterator<Item = &'c Counts>) -> Counts {
    counts.fold(Counts::default(), |mut sum, counts| {
        sum.add(counts);
        sum
    })
}
