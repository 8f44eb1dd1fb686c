//! The tables against the rules: the same random programs through the model and through the real tables.
//!
//! `PROPTEST_CASES=100000` makes it a long run.

mod model;
mod tables;

use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use model::Model;
use model::generate::{Case, NAMES, case, case_with_restarts, config, independent_programs};
use model::op::Op;
use tables::reading::{Reading, WindowKey};
use tables::{Tables, Workers};

/// More openings of pages than any case needs.
const PLENTY: u32 = u32::MAX;

fn run_model(case: &Case) -> Model {
    let mut model = Model::new(case.asked_for.clone());
    case.ops.iter().for_each(|op| model.apply(op));
    model
}

/// Live bytes and their peak, after all threads have ended.
fn check_bytes(model: &Model, tables: &Tables) -> TestCaseResult {
    let bytes = tables.bytes();
    let keys: Vec<WindowKey> = Reading::of_model(model).windows.into_keys().collect();
    prop_assert_eq!(bytes.keys().cloned().collect::<Vec<_>>(), keys);
    for (window, key) in model.windows.iter().map(|window| (window, Reading::key_of(window))) {
        let bytes = bytes[&key];
        prop_assert_eq!(bytes.live, window.live_bytes as i64, "live bytes of {:?}", key);
        let off = (bytes.peak - window.peak_bytes as i64).abs();
        prop_assert!(off <= bytes.bound, "peak of {:?}: {} for {}", key, bytes.peak, window.peak_bytes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_tables_count_as_the_model_does(case in case(200), spacing in 3..=4u32) {
        let model = run_model(&case);
        let tables = Tables::new(case.asked_for.as_deref(), spacing, PLENTY);
        let mut workers = Workers::default();
        case.ops.iter().for_each(|op| workers.apply(&tables, op));
        prop_assert_eq!(tables.read(), Reading::of_model(&model));
        workers.end(&tables);
        check_bytes(&model, &tables)?;
    }

    #[test]
    fn restarts_discard_as_in_the_model((case, restartable) in case_with_restarts(200)) {
        let mut model = Model::with_restarts(case.asked_for.clone(), &NAMES[..restartable]);
        case.ops.iter().for_each(|op| model.apply(op));
        let tables = Tables::with_restarts((case.asked_for.as_deref(), restartable as u32), 4, PLENTY);
        let mut workers = Workers::default();
        case.ops.iter().for_each(|op| workers.apply(&tables, op));
        prop_assert_eq!(tables.read(), Reading::of_model(&model));
        workers.end(&tables);
        check_bytes(&model, &tables)?;
    }

    /// Whatever has no place is counted as lost, and the rest stays right.
    #[test]
    fn where_there_is_no_place_the_loss_is_counted(case in case(200), openings in 3..24u32) {
        let expected = Reading::of_model(&run_model(&case));
        let tables = Tables::new(case.asked_for.as_deref(), 4, openings);
        let mut workers = Workers::default();
        case.ops.iter().for_each(|op| workers.apply(&tables, op));
        let found = tables.read();
        // A window that is lost leaves its allocations to the one outside of it.
        if found.lost_windows == 0 {
            prop_assert_eq!(&found.windows, &expected.windows);
            for window in found.windows.keys() {
                prop_assert_eq!(found.calls(window), expected.calls(window));
            }
        }
        for row in found.rows.values().map(|row| &row.counts) {
            prop_assert!(row.freed + row.freed_later <= row.allocations);
            prop_assert!(row.freed_bytes + row.freed_later_bytes <= row.bytes);
        }
    }
}

proptest! {
    // What fails once among threads may not fail again, so it is not made smaller.
    #![proptest_config(ProptestConfig { cases: config().cases.div_ceil(8), max_shrink_iters: 0, ..config() })]

    /// Threads that do not touch the same blocks count as if one ran after the other.
    #[test]
    fn threads_at_once_count_as_one_after_the_other(programs in independent_programs(80)) {
        const ROUNDS: usize = 10;
        let mut model = Model::new(None);
        let tables = Tables::new(None, 4, PLENTY);
        let first = Op::WindowBegin { thread: 0, name: "parse" };
        let mut threads: Vec<Workers> = Vec::new();
        for (thread, _) in (0..).zip(&programs) {
            let mut workers = Workers::default();
            model.apply(&first.by(thread));
            workers.apply(&tables, &first.by(thread));
            threads.push(workers);
        }
        for ops in &programs {
            (0..ROUNDS).flat_map(|_| ops).for_each(|op| model.apply(op));
        }
        let (barrier, shared) = (&Barrier::new(threads.len()), &tables);
        thread::scope(|scope| {
            for (workers, ops) in threads.iter_mut().zip(&programs) {
                scope.spawn(move || {
                    barrier.wait();
                    (0..ROUNDS).flat_map(|_| ops).for_each(|op| workers.apply(shared, op));
                });
            }
        });
        let (mut found, expected) = (tables.read(), Reading::of_model(&model));
        for (key, expected) in &expected.rows {
            let found = found.rows.get_mut(key).filter(|row| row.entries != expected.entries);
            if let Some(row) = found && row.entries.0 <= expected.entries.0 && expected.entries.1 <= row.entries.1 {
                row.entries = expected.entries;
            }
        }
        prop_assert_eq!(found, expected);
        threads.into_iter().for_each(|workers| workers.end(&tables));
        let bytes = tables.bytes();
        for window in &model.windows {
            prop_assert_eq!(bytes[&Reading::key_of(window)].live, window.live_bytes as i64);
        }
    }
}
