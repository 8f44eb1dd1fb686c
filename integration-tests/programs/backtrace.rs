// One thread captures backtraces by the standard library, which takes a lock and allocates under it; another makes boxes.
// Both ROUNDS times (argument 1), at once. A recorder that shares a lock with either would hang.
use std::backtrace::Backtrace;
use std::hint::black_box;

#[inline(never)]
fn boxes(rounds: u32) {
    for round in 0..rounds {
        drop(black_box(Box::new(round)));
    }
}

#[inline(never)]
fn captures(rounds: u32) {
    for _ in 0..rounds {
        drop(black_box(Backtrace::force_capture()));
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    std::thread::scope(|scope| {
        scope.spawn(|| captures(rounds));
        scope.spawn(|| boxes(rounds));
    });
    println!("{rounds}");
}
