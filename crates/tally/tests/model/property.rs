//! What holds for every program. These tests know the rules' consequences, not how the model follows them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Model;
use super::generate::{Case, NAMES, THREADS, case, config};
use super::op::{Block, Op, Outcome, ThreadId};
use super::row::Row;
use super::window::{Kind, WindowId};

fn run(case: &Case) -> Model {
    let mut model = Model::new(case.asked_for.clone());
    case.ops.iter().for_each(|op| model.apply(op));
    model
}

/// The sum of a count over all rows, or over those of one window.
fn sum(model: &Model, window: Option<WindowId>, count: impl Fn(&Row) -> u64) -> u64 {
    let rows = model.rows.iter().filter(|(key, _)| window.is_none_or(|window| key.window == window));
    rows.map(|(_, row)| count(row)).sum()
}

/// Every number of the model that must only grow, in a fixed order.
fn numbers(model: &Model) -> BTreeMap<String, u64> {
    let mut numbers = BTreeMap::new();
    for (key, row) in &model.rows {
        for (name, count) in counts(row) {
            numbers.insert(format!("{key:?} {name}"), count);
        }
    }
    for (key, total) in &model.totals {
        numbers.insert(format!("{key:?} allocations"), total.allocations);
        numbers.insert(format!("{key:?} freed"), total.freed);
    }
    for (id, window) in model.windows.iter().enumerate() {
        numbers.insert(format!("{id} entries"), window.entries);
        numbers.insert(format!("{id} crossed"), window.crossed_ends);
        numbers.insert(format!("{id} stray"), window.stray_ends);
        numbers.insert(format!("{id} peak"), window.peak_bytes);
        numbers.insert(format!("{id} iterations"), window.iterations);
    }
    numbers.insert("from before".into(), model.frees_from_before);
    numbers.insert("unseen".into(), model.unseen_frees);
    numbers
}

fn counts(row: &Row) -> [(&'static str, u64); 15] {
    [
        ("allocations", row.allocations),
        ("bytes", row.bytes),
        ("freed", row.freed),
        ("freed_bytes", row.freed_bytes),
        ("freed_later", row.freed_later),
        ("freed_later_bytes", row.freed_later_bytes),
        ("temporary", row.temporary),
        ("temporary_bytes", row.temporary_bytes),
        ("freed_by_realloc", row.freed_by_realloc),
        ("reallocs", row.reallocs),
        ("reallocs_in_place", row.reallocs_in_place),
        ("reallocs_moved", row.reallocs_moved),
        ("failed", row.failed),
        ("reallocs_to_zero", row.reallocs_to_zero),
        ("entries", row.entries.len() as u64),
    ]
}

/// Ends every window on every thread, as deep as it may be.
fn close_all(model: &mut Model, depth: usize) {
    for _ in 0..depth {
        for name in NAMES {
            model.apply(&Op::WindowEnd { thread: 0, name });
        }
    }
    for thread in 0..THREADS {
        model.apply(&Op::ThreadEnd { thread });
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_row_gives_back_more_than_it_took(case in case(80)) {
        let model = run(&case);
        for (key, row) in &model.rows {
            let freed = row.freed + row.freed_later;
            let freed_bytes = row.freed_bytes + row.freed_later_bytes;
            prop_assert!(freed <= row.allocations && freed_bytes <= row.bytes);
            prop_assert!(row.temporary + row.freed_by_realloc <= freed && row.temporary_bytes <= freed_bytes);
            prop_assert!(row.reallocs <= row.allocations);
            prop_assert_eq!(row.reallocs, row.reallocs_in_place + row.reallocs_moved);
            let calls = row.allocations + row.failed + row.reallocs_to_zero;
            prop_assert!((1..=calls).contains(&(row.entries.len() as u64)), "a row without a reason");
            prop_assert!(row.entries.iter().all(|entry| (1..=model.windows[key.window].entries).contains(entry)));
        }
    }

    #[test]
    fn rows_and_thread_totals_are_two_sums_of_the_same(case in case(80)) {
        let model = run(&case);
        for window in 0..model.windows.len() {
            let totals: Vec<_> =
                model.totals.iter().filter(|((_, of), _)| *of == window).map(|(_, total)| *total).collect();
            let sum = |count: fn(&Row) -> u64| sum(&model, Some(window), count);
            prop_assert_eq!(sum(|row| row.allocations), totals.iter().map(|total| total.allocations).sum::<u64>());
            prop_assert_eq!(sum(|row| row.bytes), totals.iter().map(|total| total.bytes).sum::<u64>());
            prop_assert_eq!(sum(|row| row.freed + row.freed_later), totals.iter().map(|total| total.freed).sum::<u64>());
            prop_assert_eq!(
                sum(|row| row.freed_bytes + row.freed_later_bytes),
                totals.iter().map(|total| total.freed_bytes).sum::<u64>()
            );
        }
    }

    #[test]
    fn live_bytes_are_the_rows_and_never_above_their_peak(case in case(80)) {
        let model = run(&case);
        for (id, window) in model.windows.iter().enumerate() {
            prop_assert_eq!(window.live_bytes, sum(&model, Some(id), |row| row.live().1));
            prop_assert!(window.live_bytes <= window.peak_bytes);
            prop_assert!(window.peak_bytes <= sum(&model, Some(id), |row| row.bytes));
        }
    }

    #[test]
    fn numbers_only_grow(case in case(60)) {
        let mut model = Model::new(case.asked_for);
        let mut before = numbers(&model);
        for op in &case.ops {
            model.apply(op);
            let after = numbers(&model);
            for (name, number) in &before {
                prop_assert!(after.get(name).is_some_and(|after| after >= number), "{} fell at {:?}", name, op);
            }
            before = after;
        }
    }

    /// A step is at most one allocation, in one window; and one that is recorded is remembered until its free.
    #[test]
    fn what_was_recorded_is_freed_once_or_still_live(case in case(80)) {
        let mut model = Model::new(case.asked_for);
        let mut owned: BTreeMap<Block, u64> = BTreeMap::new();
        let (mut freed, mut unseen) = (0, 0);
        for op in &case.ops {
            let before = sum(&model, None, |row| row.allocations);
            model.apply(op);
            let recorded = sum(&model, None, |row| row.allocations) - before;
            let (gone, new) = match *op {
                Op::Allocate { block, size, .. } => (None, Some((block, size))),
                Op::Free { block, .. } => (block, None),
                Op::Reallocate { old, outcome: Outcome::Block { block, size }, .. } => (old, Some((block, size))),
                Op::Reallocate { old, outcome: Outcome::Zero, .. } => (old, None),
                _ => (None, None),
            };
            freed += u64::from(gone.is_some_and(|block| owned.remove(&block).is_some()));
            prop_assert!(recorded <= u64::from(new.is_some()));
            if let Some((block, size)) = new {
                unseen += u64::from(owned.remove(&block).is_some());
                if recorded == 1 {
                    owned.insert(block, size);
                }
            }
        }
        prop_assert_eq!(sum(&model, None, |row| row.freed + row.freed_later), freed);
        prop_assert_eq!(model.unseen_frees, unseen);
        prop_assert_eq!(sum(&model, None, |row| row.still_live().0), owned.len() as u64 + unseen);
        prop_assert!(sum(&model, None, |row| row.still_live().1) >= owned.values().sum());
    }

    /// Told from the outside: the thread's latest recorded allocation is the block that it frees.
    #[test]
    fn temporary_is_what_a_look_back_finds(case in case(80)) {
        let mut model = Model::new(case.asked_for);
        // The thread that allocated each recorded block; each thread's latest one.
        let mut owners: BTreeMap<Block, ThreadId> = BTreeMap::new();
        let mut latest: BTreeMap<ThreadId, Block> = BTreeMap::new();
        for op in &case.ops {
            let thread = op.thread();
            let before = (sum(&model, None, |row| row.allocations), sum(&model, None, |row| row.temporary));
            model.apply(op);
            let recorded = sum(&model, None, |row| row.allocations) > before.0;
            let temporary = sum(&model, None, |row| row.temporary) > before.1;
            let mut expected = false;
            match *op {
                Op::Free { block: Some(block), .. } => {
                    let own = owners.remove(&block) == Some(thread);
                    expected = own && latest.get(&thread) == Some(&block);
                    latest.retain(|_, of| *of != block);
                }
                Op::Reallocate { old: Some(old), outcome: Outcome::Block { .. } | Outcome::Zero, .. } => {
                    owners.remove(&old);
                    latest.retain(|_, of| *of != old);
                }
                Op::ThreadEnd { .. } => {
                    latest.remove(&thread);
                    owners.retain(|_, of| *of != thread);
                }
                _ => {}
            }
            if let Op::Allocate { block, .. } | Op::Reallocate { outcome: Outcome::Block { block, .. }, .. } = *op {
                // Whoever had it before has it no more.
                owners.remove(&block);
                latest.retain(|_, of| *of != block);
                if recorded {
                    owners.insert(block, thread);
                    latest.insert(thread, block);
                }
            }
            prop_assert_eq!(temporary, expected, "{:?}", op);
        }
    }

    #[test]
    fn calls_for_windows_that_were_not_asked_for_do_nothing(case in case(80)) {
        let Some(names) = case.asked_for.clone() else { return Ok(()) };
        let all = run(&case);
        let asked = |op: &Op| op.window_name().is_none_or(|name| names.contains(&name));
        let ops: Vec<_> = case.ops.iter().filter(|op| asked(op)).copied().collect();
        let fewer = run(&Case { asked_for: case.asked_for, ops });
        prop_assert!(all.windows.iter().all(|window| names.contains(&window.name)));
        prop_assert_eq!((all.windows, all.stray_ends), (fewer.windows, fewer.stray_ends));
        prop_assert_eq!((all.rows, all.frees_from_before), (fewer.rows, fewer.frees_from_before));
    }

    #[test]
    fn failures_change_nothing_but_their_own_count(case in case(80)) {
        let fails = |op: &Op| {
            matches!(op, Op::AllocateFailed { .. } | Op::Reallocate { outcome: Outcome::Failed, .. })
        };
        let with = run(&case);
        let ops = case.ops.iter().filter(|op| !fails(op)).copied().collect();
        let without = run(&Case { asked_for: case.asked_for, ops });
        let mut rows = with.rows;
        for (key, row) in &mut rows {
            row.failed = 0;
            // It may have occurred in more entries, by failing there.
            let occurred = without.rows.get(key).map(|row| row.entries.clone()).unwrap_or_default();
            prop_assert!(row.entries.is_superset(&occurred));
            row.entries = occurred;
        }
        rows.retain(|_, row| *row != Row::default());
        prop_assert_eq!(rows, without.rows);
        prop_assert_eq!(with.windows, without.windows);
    }

    #[test]
    fn after_the_last_end_nothing_is_recorded_and_frees_are_later(case in case(80)) {
        let mut model = run(&case);
        // A begin, so that the automatic window is over too.
        let name = case.asked_for.as_ref().map_or("parse", |names| names[0]);
        model.apply(&Op::WindowBegin { thread: 0, name });
        close_all(&mut model, case.ops.len() + 1);
        prop_assert!((0..model.windows.len()).all(|window| model.depth(window) == 0));

        let freed = sum(&model, None, |row| row.freed);
        let allocations = sum(&model, None, |row| row.allocations);
        let from_before = model.frees_from_before;
        for op in &case.ops {
            if op.window_name().is_none() {
                model.apply(op);
            }
        }
        prop_assert_eq!(sum(&model, None, |row| row.freed), freed);
        prop_assert_eq!(sum(&model, None, |row| row.allocations), allocations);
        prop_assert_eq!(model.frees_from_before, from_before);
    }

    /// A row's counts do not depend on how often its window was closed and opened again in between.
    #[test]
    fn an_end_and_a_begin_in_a_row_only_make_another_entry(case in case(80), at in any::<prop::sample::Index>()) {
        let at = at.index(case.ops.len() + 1);
        let mut once = Model::new(case.asked_for.clone());
        case.ops[..at].iter().for_each(|op| once.apply(op));
        // Only the innermost window keeps its place in the order.
        let innermost = once.process.innermost().map(|open| open.window);
        let Some(window) = innermost.filter(|window| once.depth(*window) == 1) else { return Ok(()) };
        let name = once.windows[window].name;
        let mut twice = once.clone();
        twice.apply(&Op::WindowEnd { thread: 0, name });
        twice.apply(&Op::WindowBegin { thread: 0, name });
        for op in &case.ops[at..] {
            once.apply(op);
            twice.apply(op);
        }
        prop_assert_eq!(twice.windows[window].entries, once.windows[window].entries + 1);
        for rows in [&mut once.rows, &mut twice.rows] {
            rows.values_mut().for_each(|row| row.entries.clear());
        }
        prop_assert_eq!(once.rows, twice.rows);
        prop_assert_eq!(once.windows[window].peak_bytes, twice.windows[window].peak_bytes);
    }

    /// Threads are alike: which of them does what changes nothing but whose total it is.
    #[test]
    fn the_threads_numbers_do_not_matter(case in case(80), turn in 1..THREADS) {
        let turned = case.ops.iter().map(|op| op.by((op.thread() + turn) % THREADS)).collect();
        let (model, turned) = (run(&case), run(&Case { asked_for: case.asked_for, ops: turned }));
        prop_assert_eq!(model.rows, turned.rows);
        prop_assert_eq!(model.windows, turned.windows);
        prop_assert_eq!(model.totals, turned.totals, "lives are numbered by their first step");
    }

    /// Without thread windows, pauses and temporary blocks, one thread counts as four do.
    #[test]
    fn process_windows_count_all_threads(case in case(80)) {
        let plain = |op: &&Op| {
            !matches!(op, Op::ThreadWindowBegin { .. } | Op::ThreadWindowEnd { .. } | Op::Pause { .. })
        };
        let many: Vec<_> = case.ops.iter().filter(plain).copied().collect();
        let one = many.iter().map(|op| op.by(0)).filter(|op| !matches!(op, Op::ThreadEnd { .. }));
        let one = Case { asked_for: case.asked_for.clone(), ops: one.collect() };
        let (mut many, mut one) = (run(&Case { asked_for: case.asked_for, ops: many }), run(&one));
        for rows in [&mut many.rows, &mut one.rows] {
            rows.values_mut().for_each(|row| (row.temporary, row.temporary_bytes) = (0, 0));
        }
        prop_assert!(many.windows.iter().all(|window| window.kind != Kind::Thread));
        prop_assert_eq!(many.rows, one.rows);
        prop_assert_eq!(many.windows, one.windows);
    }
}
