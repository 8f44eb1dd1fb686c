//! How long a walk takes: `cargo run --release -p heaptally-unwind --example walk_speed`.
//!
//! PERF: on a two-core virtual machine, ns per frame, 13 to 70 frames: 0.8–1.0 remembered (an unchanged stack),
//! 5.2–5.8 by rule (nothing remembered, all rules known), 70–130 without the cache.
//! These are the quiet runs'; with both cores busy it was up to twice as much.

#![expect(unsafe_code, reason = "a walk reads the stack")]

#[path = "../tests/integration/harness.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod harness;
#[path = "../tests/integration/modules.rs"]
mod modules;

use std::ffi::c_void;
use std::hint::black_box;
use std::time::Instant;

use harness::{new_cache, new_memory, unwinder, with_state};
use heaptally_unwind::{FRAMES_MAX, FrameState, RuleCache, WalkMemory};

const ROUNDS: u32 = 20_000;
const REPEATS: u32 = 15;

struct Bench {
    cache: &'static RuleCache,
    memory: &'static mut WalkMemory,
    out: Vec<u64>,
}

/// The best time of one `walk` in ns.
fn best(mut walk: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..REPEATS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            walk();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    best
}

extern "C" fn measure(state: &FrameState, data: *mut c_void) {
    // SAFETY: `main` passes its bench through.
    let bench = unsafe { &mut *data.cast::<Bench>() };
    let unwinder = unwinder(bench.cache);
    let (state, memory, out) = (*state, &mut *bench.memory, &mut bench.out);
    // SAFETY: `state` is that of a frame of this thread, which waits for us.
    let (frames, end) = unsafe { unwinder.walk_full(memory, state, out) };
    let remembered = best(|| {
        // SAFETY: as above.
        black_box(unsafe { unwinder.walk(memory, black_box(state)) });
    });
    let by_rule = best(|| {
        memory.forget();
        // SAFETY: as above.
        black_box(unsafe { unwinder.walk(memory, black_box(state)) });
    });
    let uncached = {
        let start = Instant::now();
        for _ in 0..ROUNDS / 20 {
            // SAFETY: as above.
            black_box(unsafe { unwinder.walk_uncached(memory, black_box(state), out) });
        }
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS / 20)
    };
    let per_frame = |ns: f64| ns / frames as f64;
    println!(
        "{frames:6} frames ({end:?}): {:6.2} ns/frame remembered, {:6.2} by rule, {:7.1} without the cache",
        per_frame(remembered),
        per_frame(by_rule),
        per_frame(uncached)
    );
}

#[inline(never)]
fn deep_a(depth: u32, bench: &mut Bench) -> u64 {
    let room = black_box([u64::from(depth); 5]);
    room[0] + if depth == 0 { leaf(bench) } else { deep_b(depth - 1, bench) }
}

#[inline(never)]
fn deep_b(depth: u32, bench: &mut Bench) -> u64 {
    let room = black_box([u64::from(depth); 11]);
    room[1] + if depth == 0 { leaf(bench) } else { deep_a(depth - 1, bench) }
}

#[inline(never)]
fn leaf(bench: &mut Bench) -> u64 {
    // SAFETY: `measure` takes this pointer.
    unsafe { with_state(measure, (&raw mut *bench).cast()) };
    black_box(1)
}

fn main() {
    let mut bench = Bench { cache: new_cache(), memory: new_memory(), out: vec![0; FRAMES_MAX] };
    for depth in [3, 20, 60, 500] {
        black_box(deep_a(depth, &mut bench));
    }
}
