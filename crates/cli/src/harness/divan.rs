//! divan 0.1, as <https://github.com/nvzqz/divan> has it.
//!
//! Before and behind each sample it calls one function that is never inlined, in which its threads wait for each other. A
//! sample is one iteration here. Several threads would enter that function by turns of their own, so there is one. The copy behind
//! CodSpeed's compatibility crate, for a build without `--cfg codspeed`, has the same functions in a crate of another name.

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
        let names: Vec<String> = names(listed, &["benchmark"]).map(str::to_owned).collect();
        if names.is_empty() { tree(listed) } else { names }
    }

    // Before 0.1.18 a list has no arguments, so all are run once, and shown as a tree.
    fn list_otherwise(&self, chosen: &[OsString]) -> Option<Call> {
        Some(Call::of(&["--bench", "--test", "--threads", "1", "--color", "never"]).with(chosen))
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
        const SYNC: &str = r"^(codspeed_divan_compat_walltime|divan)::.*::sync_impl$";
        &[
            Scope { kind: Kind::Between(SYNC, SYNC), remark: None },
            Scope {
                kind: Kind::Beneath(
                    r"^<?(codspeed_divan_compat_walltime|divan)::bench(mark)?::BenchContext>?::bench_loop(_threaded|_local)?(::<.*>)?$",
                ),
                remark: Some(
                    "all that runs beneath divan's loop, also inputs and what divan keeps of each sample",
                ),
            },
        ]
    }
}

/// The names in a tree: its leaves behind all that they are below, but for what is ignored. Between its lines benchmarks may
/// print their own.
fn tree(shown: &str) -> Vec<String> {
    /// How many characters a step to the right has.
    const STEP: usize = 3;
    let mut root = "";
    let mut is_over = true;
    let mut path: Vec<&str> = Vec::new();
    // Each branch's whole name, how deep it is, and whether it is ignored.
    let mut branches: Vec<(String, usize, bool)> = Vec::new();
    for line in shown.lines() {
        let rest = line.trim_start_matches(['│', ' ']);
        let depth = line.chars().count().saturating_sub(rest.chars().count()) / STEP + 1;
        let Some(name) = rest.strip_prefix("├─ ").or_else(|| rest.strip_prefix("╰─ ")) else {
            root = if line.trim().is_empty() { root } else { line.trim_end() };
            continue;
        };
        if depth == 1 {
            if is_over {
                path = vec![root];
            }
            is_over = rest.starts_with('╰');
        }
        let name = name.trim_end();
        let shown = name.strip_suffix("(ignored)");
        path.truncate(depth);
        path.push(shown.map_or(name, str::trim_end));
        branches.push((path.join("::"), depth, shown.is_some()));
    }
    let depths: Vec<usize> = branches.iter().skip(1).map(|(_, depth, _)| *depth).chain([0]).collect();
    let leaves = branches
        .into_iter()
        .zip(depths)
        .filter(|((_, depth, is_ignored), next)| next <= depth && !is_ignored);
    leaves.map(|((name, ..), _)| name).collect()
}
