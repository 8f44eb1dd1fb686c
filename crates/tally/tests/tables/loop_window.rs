//! Windows of benchmark loops.

use heaptally_segment::layout::{WINDOW_PROCESS, WINDOW_THREAD};
use heaptally_tally::{LoopScope, Tally, ThreadTally};

use super::Tables;
use crate::PLENTY;

fn tables() -> (Tables, ThreadTally) {
    let tables = Tables::new(None, 4, PLENTY);
    let thread = tables.tally.begin_thread().expect("a place for a thread");
    (tables, thread)
}

fn is_recorded(tally: &Tally, thread: &ThreadTally) -> bool {
    tally.current(thread).window != 0
}

const SCOPES: [(LoopScope, u32); 2] =
    [(LoopScope::Process, WINDOW_PROCESS), (LoopScope::Thread, WINDOW_THREAD)];

/// What a harness does on its way in and out is no pause, and no fault.
#[test]
fn pauses_do_not_nest_and_end_with_the_loop() {
    for (scope, kind) in SCOPES {
        let (tables, mut thread) = tables();
        let tally = &tables.tally;
        for _ in 0..2 {
            tally.loop_begin(&mut thread, scope, b"loop");
            tally.loop_pause(&mut thread, scope, b"loop", false);
            assert!(is_recorded(tally, &thread));
            tally.loop_pause(&mut thread, scope, b"loop", true);
            tally.loop_pause(&mut thread, scope, b"loop", true);
            assert!(!is_recorded(tally, &thread));
            tally.loop_pause(&mut thread, scope, b"loop", false);
            assert!(is_recorded(tally, &thread));
            tally.loop_pause(&mut thread, scope, b"loop", true);
            assert!(tally.loop_end(&mut thread, scope, b"loop", Some(5)));
            assert!(!thread.is_paused());
            tally.loop_pause(&mut thread, scope, b"loop", true);
            assert!(!thread.is_paused());
            assert!(!tally.loop_end(&mut thread, scope, b"loop", Some(7)), "it is not open");
        }
        let facts = tables.read().windows[&(kind, "loop".to_owned())].clone();
        assert_eq!((facts.entries, facts.iterations, facts.iteration_calls, facts.stray_ends), (2, 10, 2, 0));
    }
}

/// The program's own pause stays when a loop's ends.
#[test]
fn a_loop_takes_back_its_own_pause_only() {
    let (tables, mut thread) = tables();
    let tally = &tables.tally;
    tally.loop_begin(&mut thread, LoopScope::Thread, b"loop");
    tally.pause(&mut thread);
    tally.loop_pause(&mut thread, LoopScope::Thread, b"loop", true);
    assert!(tally.loop_end(&mut thread, LoopScope::Thread, b"loop", None));
    assert!(thread.is_paused());
    tally.resume(&mut thread);
    assert!(!thread.is_paused());
    let facts = tables.read().windows[&(WINDOW_THREAD, "loop".to_owned())].clone();
    assert_eq!((facts.iterations, facts.iteration_calls), (0, 0), "nobody knows how many");
}

#[test]
fn a_loop_that_is_paused_leaves_inner_windows_alone() {
    let (tables, mut thread) = tables();
    let tally = &tables.tally;
    tally.loop_begin(&mut thread, LoopScope::Process, b"loop");
    tally.loop_pause(&mut thread, LoopScope::Process, b"loop", true);
    tally.window_begin(b"own");
    assert!(is_recorded(tally, &thread));
    tally.window_end(b"own");
    assert!(!is_recorded(tally, &thread));
}
