//! Criterion.rs: 0.4 and later, as <https://github.com/criterion-rs/criterion.rs> has it.
//!
//! `--test` runs one iteration of a benchmark. Around it the harness calls `Measurement::start` and `end`, which are
//! functions of another crate than the benchmark's and so stay calls, unless the program is optimised when it is linked.
//! `Bencher`'s methods are never inlined. The copy behind CodSpeed's compatibility crate, for a build without `--cfg codspeed`, has
//! the same functions in a crate of another name.

use std::ffi::OsString;

use super::by_id::{Call, Harness, Kind, Scope, names};

/// The harness.
pub(super) struct Criterion;

impl Harness for Criterion {
    fn name(&self) -> &'static str {
        "criterion"
    }

    fn how(&self) -> &'static str {
        "one iteration each, the first: what is done once only is in it"
    }

    fn marks(&self) -> &'static [&'static str] {
        &["9criterion7bencher7Bencher", "This executable is a Criterion.rs benchmark."]
    }

    fn list(&self, chosen: &[OsString]) -> Call {
        Call::of(&["--bench", "--list"]).with(chosen)
    }

    fn ids(&self, listed: &str, _is_bench: bool) -> Vec<String> {
        // The second up to 0.4.
        names(listed, &["benchmark", "bench"]).map(str::to_owned).collect()
    }

    fn one(&self, id: &str, _chosen: &[OsString]) -> Call {
        // Before 0.5 there is no --exact.
        Call::of(&["--bench", "--test", "--", &format!("^{}$", regex::escape(id))])
    }

    fn scopes(&self) -> &'static [Scope] {
        &[
            Scope {
                kind: Kind::Between(
                    r"^<.+ as (codspeed_criterion_compat_walltime|criterion)::measurement::Measurement>::start$",
                    r"^<.+ as (codspeed_criterion_compat_walltime|criterion)::measurement::Measurement>::end$",
                ),
                remark: None,
            },
            Scope {
                kind: Kind::Beneath(concat!(
                    r"^<?(criterion::bencher::(Async)?Bencher<.*>::iter",
                    r"|codspeed_criterion_compat_walltime::bencher::(Async)?Bencher<.*>::__codspeed_root_frame__iter)",
                    r"(_custom|_batched(_ref)?)?(::<.*>)?$"
                )),
                remark: Some(
                    "all that runs beneath criterion's Bencher::iter and its like, also the set-up of iter_batched",
                ),
            },
        ]
    }
}
