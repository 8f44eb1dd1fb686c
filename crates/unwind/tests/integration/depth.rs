//! Very deep stacks.

use heaptally_unwind::{ADDRESS_MASK, ELIDED_ENTRY, End, FRAMES_MAX, LEAF_KEPT, ROOT_KEPT};

use crate::harness::{Recorder, libgcc_frames, with_state};

#[inline(never)]
fn recurse(depth: u32, at_end: &mut dyn FnMut()) -> u64 {
    let room = std::hint::black_box([u64::from(depth); 3]);
    if depth == 0 {
        at_end();
        return 1;
    }
    recurse(depth - 1, at_end) + room[0]
}

fn on_large_stack(run: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(run);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn a_depth_of_3000_is_complete() {
    on_large_stack(|| {
        let mut recorder = Recorder::new();
        for depth in [3000, 2999, 3000, 2000, 3500] {
            recurse(depth, &mut || recorder.event());
            recurse(depth, &mut || {
                recorder.event();
                recorder.event();
            });
            assert!(recorder.stack.len() > depth as usize);
            assert!(recorder.walk.unwrap().kept > depth as usize, "{:?}", recorder.walk);
        }
    });
}

#[test]
fn deeper_stacks_keep_both_ends() {
    on_large_stack(|| {
        for depth in [20_000, 100_000] {
            let mut recorder = Recorder::new();
            recorder.asks_libgcc = false;
            let mut libgcc = Vec::new();
            recurse(depth, &mut || {
                recorder.event();
                let first = recorder.stack.clone();
                recorder.event();
                assert_eq!(recorder.walk.unwrap().kept, 0, "nothing is remembered of a stack that was cut");
                assert_eq!(first[LEAF_KEPT..], recorder.stack[LEAF_KEPT..]);
                extern "C" fn ask(state: &heaptally_unwind::FrameState, data: *mut std::ffi::c_void) {
                    // SAFETY: the vector below.
                    *unsafe { &mut *data.cast::<Vec<u64>>() } = libgcc_frames(*state);
                }
                // SAFETY: `ask` takes this vector.
                unsafe { with_state(ask, (&raw mut libgcc).cast()) };
            });
            assert_eq!(recorder.walk.unwrap().end, End::CutDepth);
            let ours: Vec<u64> = recorder.stack.iter().map(|address| address & ADDRESS_MASK).collect();
            assert_eq!(ours.len(), FRAMES_MAX);
            assert_eq!(recorder.stack[LEAF_KEPT], ELIDED_ENTRY);
            // The leaf is this closure's, at another line; `event` is inlined into nothing.
            let same_leaf = LEAF_KEPT - 2;
            let leaf = libgcc.len() - depth as usize;
            let ours_leaf = ours.iter().position(|address| *address == libgcc[leaf]).unwrap();
            assert_eq!(ours[ours_leaf..same_leaf], libgcc[leaf..leaf + same_leaf - ours_leaf]);
            assert_eq!(ours[LEAF_KEPT + 1..], libgcc[libgcc.len() - ROOT_KEPT..]);
        }
    });
}

#[test]
fn a_stack_that_becomes_too_deep_and_shrinks_again() {
    on_large_stack(|| {
        let mut recorder = Recorder::new();
        recorder.asks_libgcc = false;
        let limit = (LEAF_KEPT + ROOT_KEPT) as u32;
        let mut ends = Vec::new();
        recurse(50, &mut || {
            recorder.event();
            let used = recorder.stack.len() as u32;
            for depth in [
                100,
                limit - used - 40,
                limit - used - 3,
                limit - used + 40,
                limit - used - 40,
                2 * limit,
                10,
            ] {
                recurse(depth, &mut || recorder.event());
                ends.push(recorder.walk.unwrap().end);
            }
        });
        use End::{Complete, CutDepth};
        assert_eq!(ends[..2], [Complete, Complete]);
        assert_eq!(ends[3..], [CutDepth, Complete, CutDepth, Complete]);
    });
}
