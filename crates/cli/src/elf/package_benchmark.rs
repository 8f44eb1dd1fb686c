//! What a file's symbols tell of Swift's package-benchmark.

/// `Benchmark.BenchmarkExecutor`, as all its functions begin.
const EXECUTOR: &[u8] = b"$s9Benchmark0A8ExecutorV";
/// Its function `run(_: Benchmark) -> [BenchmarkResult]`.
const RUN: &[u8] = b"$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACF";
/// What such a closure is called by in which captured values are handed over, where that is a function of its own.
pub(crate) const FORWARDER: &str = "TA";

/// What the symbols of a file tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Symbols {
    /// It has the harness, and not the closures.
    Others,
    /// It has them.
    Edges,
}

impl Symbols {
    /// What the name of a function tells.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        if !name.starts_with(EXECUTOR) {
            return None;
        }
        let closure = name.strip_prefix(RUN).unwrap_or_default();
        let closure = closure.strip_prefix(b"ySbcfU0_").or_else(|| closure.strip_prefix(b"yycfU0_"));
        match closure.is_some_and(|rest| rest.is_empty() || rest == FORWARDER.as_bytes()) {
            true => Some(Self::Edges),
            false => Some(Self::Others),
        }
    }
}
