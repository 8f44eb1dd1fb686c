//! criterion as it is. What is measured allocates 6 times, unless a name says otherwise; set-up allocates too.

use std::hint::black_box;
use std::time::Instant;

use counted::{six, two_more};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    criterion.bench_function("iter", |bencher| bencher.iter(six));
    criterion.bench_function("batched", |bencher| {
        let set_up = || (six(), six());
        let routine = |input| {
            black_box(six());
            input
        };
        bencher.iter_batched(set_up, routine, BatchSize::SmallInput);
    });
    criterion.bench_function("batched ref, 2", |bencher| {
        bencher.iter_batched_ref(six, two_more, BatchSize::PerIteration);
    });
    criterion.bench_function("custom", |bencher| {
        bencher.iter_custom(|iterations| {
            let start = Instant::now();
            (0..iterations).for_each(|_| drop(black_box(six())));
            start.elapsed()
        });
    });
    criterion.bench_function("large drop", |bencher| bencher.iter_with_large_drop(six));
    let mut group = criterion.benchmark_group("group");
    for times in [1, 2] {
        group.bench_with_input(BenchmarkId::new("times", times), &times, |bencher, times| {
            bencher.iter(|| (0..*times).for_each(|_| drop(black_box(six()))));
        });
    }
    group.finish();
}

criterion_group!(benches, all);
criterion_main!(benches);
