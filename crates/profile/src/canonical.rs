//! The normal form: equal recordings become equal profiles, and so equal files.
//!
//! **Merged:** modules, functions, locations and stacks that are equal in all their fields, then rows of one window and
//! one stack. Their counts are added, the first entry is the least and the last entry the greatest. In how many entries
//! a merged row occurred is known when the two ranges of entries do not meet (the sum) or when one row alone fills the
//! merged range (its length); else it becomes unknown. In a profile of several runs only the first of the two holds,
//! since entries are sums over the runs. The values of each run are added run by run.
//!
//! **Dropped:** rows that count nothing, and stacks, locations, functions and modules that nothing refers to. Windows,
//! images and threads stay: that nothing was allocated in a window is a result.
//!
//! **Order:** images and windows keep theirs (they attached and were opened in it). Modules: those that are an image's
//! program first, in the images' order (pprof takes the first mapping for the main program), then by path and the
//! fields that follow. Functions by name and the fields that follow; locations by module, address, kind and lines;
//! stacks by their locations from the leaf, capture and reason; rows by window, then stack. Threads by image, first
//! name, last name, start, lives and totals, and only then by their id, which differs from run to run.
//!
//! Two runs of one deterministic program with one thread then differ in process and thread ids only, and those are not
//! written to files ([`pprof`](crate::pprof)). Code outside of modules (made at run time) keeps its AVMA, which may
//! differ.

use std::collections::BTreeMap;

use crate::Error;
use crate::model::{Executor, LocationId, Profile, Row, StackId, WindowId};

impl Profile {
    /// Brings the profile into its normal form. See the [module](self).
    ///
    /// # Errors
    /// [`Error::Index`] when an index leads nowhere; the profile is as it was then.
    pub fn normalize(&mut self) -> Result<(), Error> {
        self.validate()?;
        self.rows.retain(|row| !row.counts.is_zero());
        let used = Used::of(self);

        let programs: BTreeMap<&str, usize> =
            self.images.iter().enumerate().rev().map(|(at, image)| (image.path.as_str(), at)).collect();
        let rank = |path: &str| programs.get(path).copied().unwrap_or(usize::MAX);
        let modules = renumber(&mut self.modules, &used.modules, |module| rank(&module.path));
        let functions = renumber(&mut self.functions, &used.functions, |_| 0);

        for location in &mut self.locations {
            location.module = location.module.and_then(|module| modules[module]);
            for line in &mut location.lines {
                line.function = functions[line.function].unwrap_or_default();
            }
        }
        let locations = renumber(&mut self.locations, &used.locations, |_| 0);

        for stack in &mut self.stacks {
            for location in &mut stack.locations {
                *location = locations[*location].unwrap_or_default();
            }
        }
        let stacks = renumber(&mut self.stacks, &used.stacks, |_| 0);

        let mut executors: BTreeMap<(StackId, Vec<LocationId>), u64> = BTreeMap::new();
        for executor in self.executors.drain(..) {
            let Some(stack) = stacks[executor.stack] else { continue };
            let frames = executor.locations.iter().map(|at| locations[*at].unwrap_or_default()).collect();
            let sum = executors.entry((stack, frames)).or_default();
            *sum = sum.saturating_add(executor.allocations);
        }
        let executor = |((stack, locations), allocations): ((StackId, Vec<LocationId>), u64)| Executor {
            stack,
            locations,
            allocations,
        };
        self.executors = executors.into_iter().map(executor).collect();

        let mut rows: BTreeMap<(WindowId, StackId), Row> = BTreeMap::new();
        for mut row in self.rows.drain(..) {
            row.stack = stacks[row.stack].unwrap_or_default();
            rows.entry((row.window, row.stack)).and_modify(|into| merge(into, &row)).or_insert(row);
        }
        self.rows = rows.into_values().collect();

        for thread in &mut self.threads {
            thread.start = thread.start.and_then(|start| locations[start]);
        }
        self.threads.sort_by(|a, b| {
            (a.image, &a.name, &a.last_name, a.start, a.lives, &a.totals, a.tid).cmp(&(
                b.image,
                &b.name,
                &b.last_name,
                b.start,
                b.lives,
                &b.totals,
                b.tid,
            ))
        });
        self.environment.repeats = self.environment.runs();
        self.environment.compilers.sort();
        self.environment.compilers.dedup();
        Ok(())
    }
}

/// What is referred to, by index of each table.
struct Used {
    modules: Vec<bool>,
    functions: Vec<bool>,
    locations: Vec<bool>,
    stacks: Vec<bool>,
}

impl Used {
    fn of(profile: &Profile) -> Self {
        let mut used = Self {
            modules: vec![false; profile.modules.len()],
            functions: vec![false; profile.functions.len()],
            locations: vec![false; profile.locations.len()],
            stacks: vec![false; profile.stacks.len()],
        };
        for row in &profile.rows {
            used.stacks[row.stack] = true;
        }
        for thread in &profile.threads {
            if let Some(start) = thread.start {
                used.locations[start] = true;
            }
        }
        let is_used = |executor: &&Executor| used.stacks[executor.stack];
        for &location in profile.executors.iter().filter(is_used).flat_map(|executor| &executor.locations) {
            used.locations[location] = true;
        }
        for (stack, _) in profile.stacks.iter().zip(&used.stacks).filter(|(_, used)| **used) {
            for &location in &stack.locations {
                used.locations[location] = true;
            }
        }
        for (location, _) in profile.locations.iter().zip(&used.locations).filter(|(_, used)| **used) {
            if let Some(module) = location.module {
                used.modules[module] = true;
            }
            for line in &location.lines {
                used.functions[line.function] = true;
            }
        }
        used
    }
}

/// Drops what is not used, sorts by `rank` and then by value, merges what is equal; returns the new index of each old
/// one.
fn renumber<T: Ord>(table: &mut Vec<T>, used: &[bool], rank: impl Fn(&T) -> usize) -> Vec<Option<usize>> {
    let mut new_index = vec![None; table.len()];
    let mut kept: Vec<(usize, T, usize)> = table
        .drain(..)
        .enumerate()
        .filter(|(old, _)| used[*old])
        .map(|(old, item)| (rank(&item), item, old))
        .collect();
    kept.sort();
    for (_, item, old) in kept {
        if table.last() != Some(&item) {
            table.push(item);
        }
        new_index[old] = Some(table.len() - 1);
    }
    new_index
}

/// Adds `from` to `into`, a row of the same window and stack, out of the same runs.
pub(crate) fn merge(into: &mut Row, from: &Row) {
    into.entries = merged_entries(into, from);
    into.add_repeats(from);
    into.counts.add(&from.counts);
    into.first_entry = option_by(into.first_entry, from.first_entry, u64::min);
    into.last_entry = option_by(into.last_entry, from.last_entry, u64::max);
}

/// Both by `choose`, or the one that is known.
pub(crate) fn option_by(a: Option<u64>, b: Option<u64>, choose: fn(u64, u64) -> u64) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    }
}

/// In how many entries either of two rows occurred, where that follows from what is known.
fn merged_entries(a: &Row, b: &Row) -> Option<u64> {
    let (a_entries, b_entries) = (a.entries?, b.entries?);
    let (a_first, a_last) = (a.first_entry?, a.last_entry?);
    let (b_first, b_last) = (b.first_entry?, b.last_entry?);
    if a_last < b_first || b_last < a_first {
        return a_entries.checked_add(b_entries);
    }
    // The entries of several runs are added up, so that they may be more than the range has.
    if a.repeats.len().max(b.repeats.len()) > 1 {
        return None;
    }
    let range = a_last.max(b_last).checked_sub(a_first.min(b_first))?.checked_add(1)?;
    (a_entries.max(b_entries) == range).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Counts, Function, Image, Line, Location, Module, RepeatValue, Stack, ThreadLife, Window,
    };

    fn row(stack: StackId, allocations: u64, entries: [u64; 3]) -> Row {
        Row {
            stack,
            counts: Counts { allocations, bytes: allocations * 8, ..Counts::default() },
            entries: Some(entries[0]),
            first_entry: Some(entries[1]),
            last_entry: Some(entries[2]),
            ..Row::default()
        }
    }

    /// Two modules (the program last), an equal location twice, and things that nothing refers to.
    fn untidy() -> Profile {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let location = |module, address, function| Location {
            module: Some(module),
            address,
            lines: vec![Line { function, line: 1 }],
            ..Location::default()
        };
        Profile {
            images: vec![Image { path: "/z/bench".into(), ..Image::default() }],
            modules: vec![
                Module { path: "/a/unused.so".into(), ..Module::default() },
                Module { path: "/lib/libc.so.6".into(), ..Module::default() },
                Module { path: "/z/bench".into(), ..Module::default() },
            ],
            functions: vec![function("unused"), function("main"), function("alpha"), function("alpha")],
            locations: vec![location(2, 9, 1), location(1, 5, 2), location(1, 5, 3), location(0, 1, 0)],
            stacks: vec![
                Stack { locations: vec![1, 0], ..Stack::default() },
                Stack { locations: vec![3], ..Stack::default() },
                Stack { locations: vec![2, 0], ..Stack::default() },
            ],
            windows: vec![Window::default()],
            rows: vec![row(2, 3, [2, 1, 2]), row(0, 4, [1, 5, 5]), row(1, 0, [1, 1, 1])],
            threads: vec![
                ThreadLife { name: "b".into(), tid: 1, start: Some(0), ..ThreadLife::default() },
                ThreadLife { name: "a".into(), tid: 2, ..ThreadLife::default() },
            ],
            ..Profile::default()
        }
    }

    #[test]
    fn what_is_equal_is_merged_and_what_is_unused_is_dropped() {
        let mut profile = untidy();
        profile.rows[2].counts = Counts::default();
        profile.normalize().unwrap();
        assert_eq!(
            profile.modules.iter().map(|m| m.path.as_str()).collect::<Vec<_>>(),
            ["/z/bench", "/lib/libc.so.6"]
        );
        assert_eq!(profile.functions.len(), 2);
        assert_eq!(profile.locations.len(), 2);
        assert_eq!(profile.stacks.len(), 1);
        assert_eq!(profile.rows, [Row { stack: 0, ..row(0, 7, [3, 1, 5]) }]);
        assert_eq!(profile.threads[0].name, "a");
        assert_eq!(profile.threads[1].start, Some(0));
        profile.validate().unwrap();
    }

    #[test]
    fn it_is_its_own_normal_form() {
        let mut once = untidy();
        once.normalize().unwrap();
        let mut twice = once.clone();
        twice.normalize().unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn entries_of_rows_that_overlap_are_known_only_when_one_fills_the_range() {
        assert_eq!(merged_entries(&row(0, 1, [5, 1, 5]), &row(0, 1, [2, 2, 4])), Some(5));
        assert_eq!(merged_entries(&row(0, 1, [2, 1, 5]), &row(0, 1, [2, 2, 4])), None);
        assert_eq!(merged_entries(&row(0, 1, [2, 1, 5]), &Row::default()), None);
        assert_eq!(merged_entries(&row(0, 1, [1, 0, u64::MAX]), &row(0, 1, [1, 1, 1])), None);
    }

    #[test]
    fn rows_of_several_runs_are_added_run_by_run() {
        let value = |allocations| RepeatValue { allocations, bytes: allocations * 8 };
        let with = |row: Row, runs: [u64; 2]| Row { repeats: runs.map(value).into(), ..row };
        let mut profile = untidy();
        profile.environment.repeats = 2;
        profile.windows[0].iterations_per_repeat = vec![1, 1];
        profile.rows = vec![with(row(2, 3, [5, 1, 5]), [3, 0]), with(row(0, 4, [2, 2, 4]), [1, 3])];
        profile.normalize().unwrap();
        let merged = Row { stack: 0, entries: None, ..with(row(0, 7, [0, 1, 5]), [4, 3]) };
        assert_eq!(profile.rows, [merged], "5 of 1 to 5 need not be all entries of both runs");
    }

    #[test]
    fn no_number_of_runs_is_one_run() {
        let mut profile = untidy();
        profile.normalize().unwrap();
        assert_eq!(profile.environment.repeats, 1);
    }

    #[test]
    fn an_index_that_leads_nowhere_is_an_error() {
        let mut profile = untidy();
        profile.rows[0].stack = 77;
        assert!(matches!(profile.normalize(), Err(Error::Index { table: "row", index: 77, .. })));
    }
}
