//! What was measured for github-action-benchmark's tool `customSmallerIsBetter`
//! (<https://github.com/benchmark-action/github-action-benchmark>).
//!
//! ```text
//! [{"name":"parse: allocations","unit":"allocs/iter","value":76.0},{"name":"parse: bytes","unit":"B/iter","value":4138.0}]
//! ```

use heaptally_profile::check::Verdict;
use serde_json::{Value, json};

use crate::check_bencher::counts;
use crate::escape::escape_json;

/// The measured counts, ended by a line feed.
pub fn check_benchmark_action(verdict: &Verdict<'_>) -> String {
    let mut values: Vec<Value> = Vec::new();
    for (name, _, spreads) in counts(&verdict.compared) {
        for (spread, (what, unit)) in
            spreads.into_iter().zip([("allocations", "allocs/iter"), ("bytes", "B/iter")])
        {
            let mut value =
                json!({ "name": format!("{name}: {what}"), "unit": unit, "value": spread.average.to_f64() });
            if spread.is_unstable() {
                value["range"] =
                    json!(format!("{} to {}", spread.least.rounded(2), spread.greatest.rounded(2)));
            }
            values.push(value);
        }
    }
    format!("{}\n", escape_json(&Value::from(values).to_string()))
}
