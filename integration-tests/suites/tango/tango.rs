//! tango-bench with the metric of the crate heaptally.

use counted::six;
use heaptally::tango::Windowed;
use tango_bench::{IntoBenchmarks, benchmark_fn, tango_benchmarks};

fn benchmarks() -> impl IntoBenchmarks {
    [benchmark_fn("six", |bencher| bencher.metric::<Windowed>().iter(six))]
}

tango_benchmarks!(benchmarks());
