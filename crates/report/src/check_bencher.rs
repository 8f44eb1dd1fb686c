//! What was measured as Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format/>): windows are
//! benchmarks, counts are measures. The bounds are the least and the greatest of several runs.
//!
//! ```text
//! {"parse":{"allocations-per-iteration":{"value":76.0},"bytes-per-iteration":{"value":4138.0}}}
//! ```

use heaptally_profile::check::{Compared, Spread, Verdict, WindowAt};
use heaptally_profile::limit::{Metric, Per};
use serde_json::{Map, Value, json};

use crate::escape::escape_json;

/// What is written of each window.
const MEASURES: [(Metric, &str); 2] =
    [(Metric::Allocs, "allocations-per-iteration"), (Metric::Bytes, "bytes-per-iteration")];

/// The measured counts, ended by a line feed.
pub fn check_bencher(verdict: &Verdict<'_>) -> String {
    let mut report = Map::new();
    for (name, _, counts) in counts(&verdict.compared) {
        let measures = counts.into_iter().zip(MEASURES).map(|(spread, (_, measure))| {
            let mut value = json!({ "value": spread.average.to_f64() });
            if spread.is_unstable() {
                value["lower_value"] = json!(spread.least.to_f64());
                value["upper_value"] = json!(spread.greatest.to_f64());
            }
            (measure.to_owned(), value)
        });
        report.insert(name, Value::Object(measures.collect()));
    }
    format!("{}\n", escape_json(&Value::Object(report).to_string()))
}

/// The windows that are looked at, by their names, each once: allocations and bytes per iteration.
pub(crate) fn counts(compared: &Compared<'_>) -> Vec<(String, WindowAt, [Spread; 2])> {
    let mut counts: Vec<(String, WindowAt, [Spread; 2])> = Vec::new();
    for at in compared.windows() {
        let Some(view) = compared.window(at).filter(|view| !view.in_background) else { continue };
        let mut name = view.window.name.clone();
        let is_known = |name: &String| counts.iter().any(|(known, ..)| known == name);
        if is_known(&name)
            && let Some(image) = view.image
        {
            name = format!("{name} of {}", image.label);
        }
        let mut number = 2;
        while is_known(&name) {
            name = format!("{} ({number})", view.window.name);
            number += 1;
        }
        let spreads = MEASURES.map(|(metric, _)| compared.measured(at, (metric, Per::Iteration)));
        counts.push((name, at, spreads));
    }
    counts
}
