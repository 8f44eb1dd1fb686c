//! A metric of tango-bench, 0.9, around whose code a window is open.
//!
//! ```
//! use heaptally::tango::Windowed;
//! use tango_bench::{IntoBenchmarks, benchmark_fn};
//!
//! fn benchmarks() -> impl IntoBenchmarks {
//!     [benchmark_fn("parse", |b| b.metric::<Windowed>().iter(|| "1 2".split(' ').count()))]
//! }
//! # let _ = benchmarks();
//! ```
//!
//! The window is named `tango`. tango tells a metric neither the benchmark nor its iterations, so the numbers are totals, an
//! entry for each sample.

use std::marker::PhantomData;

use tango_bench::{Metric, metrics::WallClock};

use crate::window;

/// Measures as `M` does, with a window open meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windowed<M = WallClock>(PhantomData<M>);

impl<M: Metric> Metric for Windowed<M> {
    fn measure_fn(mut code: impl FnMut()) -> u64 {
        // The window is the inner of the two, so that nothing of `M` is in it.
        M::measure_fn(|| {
            let _window = window(c"tango");
            code();
        })
    }
}
