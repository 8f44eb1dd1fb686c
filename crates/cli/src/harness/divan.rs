//! divan 0.1, as <https://github.com/nvzqz/divan> has it.
//!
//! Before and behind each sample it calls one function that is never inlined, in which its threads wait for each other. A
//! sample is one iteration here. Several threads would enter that function by turns of their own, so there is one.

use std::ffi::OsString;

use super::by_id::{Call, Harness, Kind, Scope, names};

/// How many iterations of a benchmark are recorded.
const ITERATIONS: &str = "10";

/// The harness.
pub(super) struct Divan;

impl Harness for Divan {
    fn name(&self) -> &'static str {
        "divan"
    }

    fn how(&self) -> &'static str {
        "ten iterations each, on one thread"
    }

    fn marks(&self) -> &'static [&'static str] {
        &["5divan9benchmark", "DIVAN_SAMPLE_COUNT"]
    }

    fn list(&self, chosen: &[OsString]) -> Call {
        // Only nextest is given a list whose lines hold whole names.
        let call = Call::of(&["--bench", "--list", "--format", "terse"]).with(chosen);
        Call { variables: vec![("NEXTEST", "1")], ..call }
    }

    fn ids(&self, listed: &str, _is_bench: bool) -> Vec<String> {
        names(listed, &["benchmark"]).map(str::to_owned).collect()
    }

    fn one(&self, id: &str, chosen: &[OsString]) -> Call {
        let samples = ["--sample-count", ITERATIONS, "--sample-size", "1", "--min-time", "0"];
        let mut words = vec!["--bench", "--threads", "1"];
        words.extend(samples);
        // Those that are ignored run only where that was said.
        let ignored = ["--ignored", "--include-ignored"];
        words.extend(ignored.into_iter().filter(|option| chosen.iter().any(|word| word == option)));
        words.extend(["--exact", "--", id]);
        Call::of(&words)
    }

    fn scopes(&self) -> &'static [Scope] {
        const SYNC: &str = r"^divan::.*::sync_impl$";
        &[
            Scope { kind: Kind::Between(SYNC, SYNC), remark: None },
            Scope {
                kind: Kind::Beneath(
                    r"^<?divan::benchmark::BenchContext>?::bench_loop(_threaded|_local)?(::<.*>)?$",
                ),
                remark: Some(
                    "all that runs beneath divan's loop, also inputs and what divan keeps of each sample",
                ),
            },
        ]
    }
}
