//! A worked case of each rule.

use super::Model;
use super::op::{Block, Call, Name, Op, Outcome, ThreadId};
use super::row::{Row, RowKey, Total};
use super::window::Kind;

/// A row of these cases: each stack is used in its own way, so the window and the stack name it.
const CALL: Call = Call { stack: 1, entry_point: 1 };
const OTHER: Call = Call { stack: 2, entry_point: 1 };

fn run(ops: &[Op]) -> Model {
    let mut model = Model::new(None);
    ops.iter().for_each(|op| model.apply(op));
    model
}

fn row(model: &Model, kind: Kind, name: Name, call: Call) -> Row {
    let window = model.find(kind, name).expect("the window exists");
    model.rows.get(&RowKey { window, call }).cloned().unwrap_or_default()
}

fn process_row(model: &Model, name: Name) -> Row {
    row(model, Kind::Process, name, CALL)
}

fn allocate(thread: ThreadId, block: Block, size: u64) -> Op {
    Op::Allocate { thread, call: CALL, block, size }
}

fn free(thread: ThreadId, block: Block) -> Op {
    Op::Free { thread, block: Some(block) }
}

fn reallocate(old: Block, block: Block, size: u64) -> Op {
    Op::Reallocate { thread: 0, call: OTHER, old: Some(old), outcome: Outcome::Block { block, size } }
}

fn begin(name: Name) -> Op {
    Op::WindowBegin { thread: 0, name }
}

fn end(name: Name) -> Op {
    Op::WindowEnd { thread: 0, name }
}

fn begin_thread(thread: ThreadId, name: Name) -> Op {
    Op::ThreadWindowBegin { thread, name }
}

fn end_thread(thread: ThreadId, name: Name) -> Op {
    Op::ThreadWindowEnd { thread, name }
}

#[test]
fn the_automatic_window_holds_until_the_first_begin_of_any_kind() {
    for first in [begin("parse"), begin_thread(3, "parse")] {
        let model =
            run(&[allocate(0, 1, 10), first, end("parse"), end_thread(3, "parse"), allocate(0, 2, 20)]);
        assert_eq!(row(&model, Kind::Automatic, "process", CALL).bytes, 10);
        assert_eq!(model.rows.len(), 1, "outside of all windows nothing is recorded");
    }
}

#[test]
fn a_window_of_the_automatic_ones_name_is_another_window() {
    let model = run(&[allocate(0, 1, 10), begin("process"), allocate(0, 2, 20)]);
    assert_eq!(row(&model, Kind::Automatic, "process", CALL).bytes, 10);
    assert_eq!(process_row(&model, "process").bytes, 20);
}

#[test]
fn if_windows_were_asked_for_no_other_exists_and_there_is_no_automatic_one() {
    let mut model = Model::new(Some(vec!["parse"]));
    for op in [allocate(0, 1, 10), begin("render"), allocate(0, 2, 20), end("render"), begin("parse")] {
        model.apply(&op);
    }
    model.apply(&allocate(0, 3, 30));
    assert_eq!(process_row(&model, "parse").bytes, 30);
    assert_eq!((model.windows.len(), model.rows.len(), model.stray_ends), (1, 1, 0));
}

#[test]
fn an_allocation_belongs_to_the_innermost_window_only() {
    let model = run(&[
        begin("parse"),
        begin("render"),
        allocate(0, 1, 1),
        begin_thread(0, "own"),
        allocate(0, 2, 20),
        allocate(1, 3, 300),
        end_thread(0, "own"),
        end("render"),
        allocate(0, 4, 4000),
    ]);
    assert_eq!(row(&model, Kind::Thread, "own", CALL).bytes, 20);
    assert_eq!(process_row(&model, "render").bytes, 301, "another thread's window is nothing to thread 1");
    assert_eq!(process_row(&model, "parse").bytes, 4000);
}

#[test]
fn a_second_begin_of_an_open_window_only_raises_its_depth() {
    let model = run(&[
        begin("parse"),
        begin("render"),
        begin("parse"),
        allocate(0, 1, 10),
        end("parse"),
        end("render"),
        allocate(0, 2, 20),
    ]);
    assert_eq!(process_row(&model, "render").bytes, 10, "it does not become the innermost");
    assert_eq!(process_row(&model, "parse").bytes, 20);
    let parse = model.find(Kind::Process, "parse").expect("it exists");
    assert_eq!((model.windows[parse].entries, model.depth(parse)), (1, 1));
}

#[test]
fn crossed_and_stray_ends_are_counted_and_change_nothing_else() {
    let model = run(&[
        begin("parse"),
        begin("render"),
        end("parse"),
        allocate(0, 1, 10),
        end("parse"),
        end("unheard"),
        end_thread(0, "render"),
    ]);
    let parse = &model.windows[model.find(Kind::Process, "parse").expect("it exists")];
    assert_eq!((parse.crossed_ends, parse.stray_ends), (1, 1));
    assert_eq!(model.stray_ends, 2, "no thread window is called render");
    assert_eq!(process_row(&model, "render").bytes, 10, "it is open still");
}

#[test]
fn a_free_is_charged_to_the_row_that_allocated() {
    let model = run(&[
        begin("parse"),
        allocate(0, 1, 10),
        allocate(0, 2, 20),
        allocate(0, 3, 30),
        end("parse"),
        free(1, 1),
        begin("render"),
        free(1, 2),
        begin("parse"),
        free(1, 3),
    ]);
    let parse = process_row(&model, "parse");
    assert_eq!(parse.freed_later_bytes, 30, "an open window of another name does not matter");
    assert_eq!(parse.freed_bytes, 30, "a later entry is the same window");
    assert_eq!((parse.live(), parse.still_live()), ((2, 30), (0, 0)));
    assert_eq!(model.frees_from_before, 0);
}

#[test]
fn a_thread_window_is_open_while_it_is_open_on_any_thread() {
    let model = run(&[
        begin_thread(0, "own"),
        allocate(0, 1, 10),
        allocate(0, 2, 20),
        begin_thread(1, "own"),
        end_thread(0, "own"),
        free(0, 1),
        Op::ThreadEnd { thread: 1 },
        free(0, 2),
    ]);
    let own = row(&model, Kind::Thread, "own", CALL);
    assert_eq!((own.freed_bytes, own.freed_later_bytes), (10, 20));
}

#[test]
fn a_free_of_what_no_row_owns_is_from_before() {
    let model = run(&[
        free(0, 9),
        begin_thread(1, "own"),
        free(0, 9),
        free(1, 9),
        Op::Free { thread: 1, block: None },
        reallocate(9, 8, 1),
    ]);
    assert_eq!(
        model.frees_from_before, 2,
        "one in the automatic window, one by the thread that has a window open"
    );
}

#[test]
fn temporary_is_freed_by_its_thread_before_the_threads_next_recorded_allocation() {
    let temporary = |ops: &[Op]| {
        let mut all = vec![begin("parse"), allocate(0, 1, 10)];
        all.extend_from_slice(ops);
        process_row(&run(&all), "parse").temporary
    };
    assert_eq!(temporary(&[free(0, 1)]), 1);
    assert_eq!(temporary(&[allocate(1, 2, 20), free(0, 1)]), 1, "another thread's allocations do not matter");
    assert_eq!(
        temporary(&[end("parse"), allocate(0, 2, 20), free(0, 1)]),
        1,
        "nor those that are not recorded"
    );
    assert_eq!(temporary(&[Op::AllocateFailed { thread: 0, call: CALL }, free(0, 1)]), 1, "nor failed ones");
    assert_eq!(temporary(&[allocate(0, 2, 20), free(0, 1)]), 0);
    assert_eq!(temporary(&[free(1, 1)]), 0, "another thread's free");
    assert_eq!(temporary(&[free(1, 1), allocate(1, 1, 10), free(0, 1)]), 0, "the address alone does not do");
    assert_eq!(temporary(&[Op::ThreadEnd { thread: 0 }, free(0, 1)]), 0, "a new thread of the old number");
    assert_eq!(temporary(&[reallocate(1, 2, 20)]), 0, "a realloc is no free in this sense");
    assert_eq!(
        temporary(&[reallocate(1, 1, 20), free(0, 1)]),
        0,
        "the old block is not; the new one is, in its row"
    );
}

#[test]
fn a_realloc_is_an_allocation_on_its_own_row_and_a_free_on_the_old_one() {
    let model = run(&[begin("parse"), allocate(0, 1, 10), reallocate(1, 1, 20), reallocate(1, 2, 30)]);
    let old = process_row(&model, "parse");
    assert_eq!((old.allocations, old.freed, old.freed_by_realloc, old.reallocs), (1, 1, 1, 0));
    let new = row(&model, Kind::Process, "parse", OTHER);
    assert_eq!((new.allocations, new.bytes, new.freed_by_realloc), (2, 50, 1));
    assert_eq!((new.reallocs, new.reallocs_in_place, new.reallocs_moved), (2, 1, 1));
    let window = &model.windows[model.find(Kind::Process, "parse").expect("it exists")];
    assert_eq!(
        (window.live_bytes, window.peak_bytes),
        (30, 30),
        "one step: old and new are not live together"
    );
}

#[test]
fn realloc_of_null_and_realloc_to_zero_are_what_they_do() {
    let zero = Op::Reallocate { thread: 0, call: OTHER, old: Some(1), outcome: Outcome::Zero };
    let from_null =
        Op::Reallocate { thread: 0, call: OTHER, old: None, outcome: Outcome::Block { block: 2, size: 5 } };
    let model = run(&[begin("parse"), allocate(0, 1, 10), zero, from_null]);
    let old = process_row(&model, "parse");
    assert_eq!((old.freed, old.freed_by_realloc, old.temporary), (1, 1, 0));
    let new = row(&model, Kind::Process, "parse", OTHER);
    assert_eq!((new.allocations, new.bytes, new.reallocs, new.reallocs_to_zero), (1, 5, 0, 1));
}

#[test]
fn a_failure_counts_as_one_and_changes_nothing_else() {
    let failed = Op::Reallocate { thread: 0, call: CALL, old: Some(1), outcome: Outcome::Failed };
    let model =
        run(&[begin("parse"), allocate(0, 1, 10), failed, Op::AllocateFailed { thread: 0, call: CALL }]);
    let row = process_row(&model, "parse");
    assert_eq!((row.allocations, row.freed, row.reallocs, row.failed), (1, 0, 0, 2));
    assert_eq!(row.still_live(), (1, 10));
}

#[test]
fn pauses_nest_and_hide_a_threads_allocations_but_not_its_frees() {
    let (pause, resume) = (Op::Pause { thread: 0 }, Op::Resume { thread: 0 });
    let model = run(&[
        begin("parse"),
        resume,
        allocate(0, 1, 1),
        pause,
        pause,
        free(0, 1),
        allocate(0, 2, 20),
        allocate(1, 3, 300),
        resume,
        allocate(0, 4, 20),
        resume,
        allocate(0, 5, 4000),
        free(0, 2),
    ]);
    let row = process_row(&model, "parse");
    assert_eq!((row.bytes, row.freed_bytes), (4301, 1), "a resume without a pause did nothing");
    assert_eq!(model.frees_from_before, 1);
}

#[test]
fn iterations_are_the_process_windows_else_the_thread_windows_else_nobodys() {
    let tell = |n| Op::Iterations { thread: 0, name: "parse", n };
    let model = run(&[
        tell(1),
        begin_thread(0, "parse"),
        tell(20),
        end_thread(0, "parse"),
        tell(30),
        begin("parse"),
        end("parse"),
        begin("parse"),
        begin("render"),
        tell(400),
    ]);
    let window = |kind, name| &model.windows[model.find(kind, name).expect("it exists")];
    assert_eq!(window(Kind::Thread, "parse").divisor(), 50);
    assert_eq!(window(Kind::Process, "parse").divisor(), 400);
    assert_eq!(window(Kind::Process, "render").divisor(), 1, "none were told: its entries");
    assert_eq!(model.stray_iterations, 1);
}

#[test]
fn a_row_knows_in_which_entries_of_its_window_it_occurred() {
    let model = run(&[
        begin("parse"),
        end("parse"),
        begin("parse"),
        allocate(0, 1, 10),
        allocate(1, 2, 10),
        end("parse"),
        begin("parse"),
        Op::AllocateFailed { thread: 0, call: CALL },
        end("parse"),
        begin("parse"),
        allocate(1, 3, 10),
        begin_thread(0, "own"),
        begin_thread(1, "own"),
        allocate(0, 4, 10),
        allocate(1, 5, 10),
    ]);
    assert_eq!(process_row(&model, "parse").entries, [2, 3, 4].into(), "a failed call is an occurrence too");
    assert_eq!(row(&model, Kind::Thread, "own", CALL).entries, [1, 2].into(), "each thread's is an entry");
}

#[test]
fn the_peak_is_of_what_was_freed_while_the_window_was_open() {
    let model = run(&[
        begin("parse"),
        allocate(0, 1, 100),
        free(0, 1),
        allocate(0, 2, 70),
        end("parse"),
        free(0, 2),
        begin("parse"),
        allocate(0, 3, 50),
    ]);
    let parse = &model.windows[model.find(Kind::Process, "parse").expect("it exists")];
    assert_eq!((parse.live_bytes, parse.peak_bytes), (120, 120), "freed later, 70 bytes stay live");
}

#[test]
fn a_begin_of_an_open_window_that_can_restart_discards_what_the_entry_holds() {
    let mut model = Model::with_restarts(Some(vec!["parse"]), &["parse"]);
    let ops = [
        begin("parse"),
        allocate(0, 1, 10),
        begin("parse"),
        allocate(0, 2, 20),
        allocate(0, 3, 30),
        free(0, 1),
        begin("parse"),
        allocate(0, 4, 40),
        free(0, 4),
        end("parse"),
        begin("parse"),
        allocate(0, 5, 50),
        end("parse"),
    ];
    ops.iter().for_each(|op| model.apply(op));
    let parse = model.find(Kind::Process, "parse").expect("it exists");
    let row = &model.kept_rows()[&RowKey { window: parse, call: CALL }];
    assert_eq!((row.allocations, row.bytes, row.discarded, row.discarded_bytes), (2, 90, 3, 60));
    assert_eq!((row.freed, row.temporary), (2, 1), "what was discarded exists, and is freed");
    assert_eq!(row.live(), (3, 100));
    assert_eq!(row.entries.iter().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(model.windows[parse].divisor(), 2);
    assert_eq!(model.windows[parse].peak_bytes, 100);
}

#[test]
fn a_threads_total_holds_what_it_allocated_and_what_it_freed() {
    let model = run(&[
        begin("parse"),
        allocate(0, 1, 10),
        allocate(0, 2, 20),
        free(1, 1),
        Op::ThreadEnd { thread: 0 },
        end("parse"),
        free(0, 2),
    ]);
    let parse = model.find(Kind::Process, "parse").expect("it exists");
    let totals: Vec<_> = (0..3).map(|life| model.totals[&(life, parse)]).collect();
    let expected = [
        Total { allocations: 2, bytes: 30, freed: 0, freed_bytes: 0 },
        Total { allocations: 0, bytes: 0, freed: 1, freed_bytes: 10 },
        Total { allocations: 0, bytes: 0, freed: 1, freed_bytes: 20 },
    ];
    assert_eq!(totals, expected, "a number that comes again is another life");
}

#[test]
fn a_block_that_comes_again_without_a_free_stays_live_in_its_row() {
    let model = run(&[
        begin("parse"),
        allocate(0, 1, 10),
        allocate(0, 1, 20),
        Op::Pause { thread: 0 },
        allocate(0, 1, 40),
        free(0, 1),
    ]);
    assert_eq!((model.unseen_frees, model.frees_from_before), (2, 1), "the third block was not recorded");
    assert_eq!(process_row(&model, "parse").still_live(), (2, 30));
}
