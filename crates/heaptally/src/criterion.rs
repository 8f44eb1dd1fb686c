//! A measurement of criterion's around which a window is open: one module for each version, since each has a trait of its
//! own. All are made by one macro.

/// Makes the module of a version.
macro_rules! versions {
    ($($module:ident of $criterion:ident if $feature:literal;)*) => {
        $(
            #[cfg(feature = $feature)]
            pub mod $module {
                //! The adapter for this version of criterion.
                //!
                //! A window is open from where criterion starts to measure to where it ends: what `iter_batched` sets up
                //! is not in it, and what a routine's output takes to drop is, or is not, as it is timed.
                //!
                //! ```
                #![doc = concat!("# use ", stringify!($criterion), " as criterion;")]
                //! use criterion::Criterion;
                #![doc = concat!("use heaptally::", stringify!($module), "::Windowed;")]
                //! use std::hint::black_box;
                //!
                //! fn parse(c: &mut Criterion<Windowed>) {
                //!     c.bench_function("parse", |b| b.iter(|| black_box("1 2").split(' ').count()));
                //! }
                //!
                //! let mut criterion = Criterion::default().with_measurement(Windowed::default());
                //! # let mut criterion = criterion.configure_from_args();
                //! parse(&mut criterion);
                //! ```
                //!
                //! With `criterion_group!` it is `config = Criterion::default().with_measurement(Windowed::default())`.
                //!
                //! criterion does not tell a measurement which benchmark it measures, nor how many iterations: the window
                //! has one name for all, and its numbers are totals of a run. `cargo heaptally bench` runs one benchmark
                //! in a process, names the window by it, and has criterion run one iteration.

                use $criterion::measurement::{Measurement, ValueFormatter, WallTime};

                use crate::{Name, WindowGuard, window};

                /// Measures as `M` does, with a window open meanwhile.
                #[derive(Clone, Debug)]
                pub struct Windowed<M = WallTime> {
                    measurement: M,
                    name: Name<'static>,
                }

                impl Windowed {
                    /// Measures time, in a window of this name.
                    pub fn new(name: impl Into<Name<'static>>) -> Self {
                        Self::around(WallTime, name)
                    }
                }

                impl<M> Windowed<M> {
                    /// Measures as `measurement` does, in a window of this name.
                    pub fn around(measurement: M, name: impl Into<Name<'static>>) -> Self {
                        Self { measurement, name: name.into() }
                    }
                }

                impl Default for Windowed {
                    /// Measures time, in the window `criterion`.
                    fn default() -> Self {
                        Self::new(c"criterion")
                    }
                }

                /// A measurement that was started, with its window.
                #[derive(Debug)]
                pub struct Started<I> {
                    window: WindowGuard<'static>,
                    measured: I,
                }

                impl<M: Measurement> Measurement for Windowed<M> {
                    type Intermediate = Started<M::Intermediate>;
                    type Value = M::Value;

                    // The window is the inner of the two, so that nothing of `M` is in it.
                    fn start(&self) -> Self::Intermediate {
                        let measured = self.measurement.start();
                        Started { window: window(self.name), measured }
                    }

                    fn end(&self, started: Self::Intermediate) -> Self::Value {
                        drop(started.window);
                        self.measurement.end(started.measured)
                    }

                    fn add(&self, one: &Self::Value, other: &Self::Value) -> Self::Value {
                        self.measurement.add(one, other)
                    }

                    fn zero(&self) -> Self::Value {
                        self.measurement.zero()
                    }

                    fn to_f64(&self, value: &Self::Value) -> f64 {
                        self.measurement.to_f64(value)
                    }

                    fn formatter(&self) -> &dyn ValueFormatter {
                        self.measurement.formatter()
                    }
                }
            }
        )*
    };
}

versions! {
    criterion_0_5 of criterion_0_5 if "criterion-0-5";
    criterion_0_6 of criterion_0_6 if "criterion-0-6";
    criterion_0_7 of criterion_0_7 if "criterion-0-7";
    criterion_0_8 of criterion_0_8 if "criterion-0-8";
}
