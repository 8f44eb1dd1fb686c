//! libtest, the harness of `#[test]`.
//!
//! One function of it that is never inlined calls each test's function, on the test's thread.

use std::ffi::OsString;

use super::by_id::{Call, Harness, Kind, Scope, names};

/// The harness.
pub(super) struct Libtest;

impl Harness for Libtest {
    fn name(&self) -> &'static str {
        "libtest"
    }

    fn how(&self) -> &'static str {
        ""
    }

    fn marks(&self) -> &'static [&'static str] {
        &["4test16test_main_static", "RUST_TEST_THREADS"]
    }

    fn list(&self, chosen: &[OsString]) -> Call {
        Call::of(&["--list", "--format", "terse"]).with(chosen)
    }

    fn ids(&self, listed: &str, is_bench: bool) -> Vec<String> {
        names(listed, if is_bench { &["benchmark", "bench"] } else { &["test"] }).map(str::to_owned).collect()
    }

    fn one(&self, id: &str, chosen: &[OsString]) -> Call {
        let mut words = vec!["--exact", id, "--nocapture", "--test-threads=1"];
        let ignored = ["--ignored", "--include-ignored"];
        words.extend(ignored.into_iter().filter(|option| chosen.iter().any(|word| word == option)));
        Call::of(&words)
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope { kind: Kind::Beneath(r"^test::__rust_begin_short_backtrace(::<.*>)?$"), remark: None }]
    }
}
