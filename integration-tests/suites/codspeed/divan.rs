//! divan by CodSpeed's crate. What is measured allocates 6 times, unless a name says otherwise; inputs and set-up allocate too.

use counted::six;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench]
fn plain() -> Vec<Box<[u8; 24]>> {
    six()
}

#[divan::bench(args = [1, 2])]
fn times(times: usize) {
    (0..times).for_each(|_| drop(black_box(six())));
}

#[divan::bench]
fn inputs(bencher: Bencher) {
    bencher.with_inputs(|| (six(), six())).bench_values(|input| {
        black_box(six());
        input
    });
}

#[divan::bench]
fn set_up(bencher: Bencher) {
    let kept = six();
    bencher.bench(|| {
        black_box(&kept);
        six()
    });
}

#[divan::bench(types = [u32, u64])]
fn one_box<T: Default>() -> Box<T> {
    Box::default()
}

#[divan::bench(ignore)]
fn ignored() {
    black_box(six());
}
