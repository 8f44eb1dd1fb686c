//! criterion with the adapter of the crate heaptally.

use std::hint::black_box;

use counted::six;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use suite::Windowed;

fn all(criterion: &mut Criterion<Windowed>) {
    criterion.bench_function("iter", |bencher| bencher.iter(six));
    criterion.bench_function("batched", |bencher| {
        let routine = |input| {
            black_box(six());
            input
        };
        bencher.iter_batched(|| (six(), six()), routine, BatchSize::SmallInput);
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(Windowed::default());
    targets = all
}
criterion_main!(benches);
