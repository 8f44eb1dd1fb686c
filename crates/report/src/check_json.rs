//! A verdict for programs: one JSON object, `schema/check.v1.schema.json` describes it.
//!
//! ```text
//! {"schema":"heaptally-check","version":1,"outcome":"regression","strict":false,
//!  "windows":[{"name":"parse","limits":3,"iterations":1000,"allocs":{"least":76.0,…},"bytes":{…}}],
//!  "findings":[{"severity":"hard","rule":"too-many","window":"parse","metric":"allocs","per":"iteration",
//!               "limit":{"file":"limits.toml","line":4},"measured":{…},"base":{…},"judged":76.0,"allowed":75.0,
//!               "message":"…","guilty":[{"function":"Parser::name","file":"src/parser.rs","line":118,…}]}],
//!  "unmeasured":[…],"notes":[…]}
//! ```
//!
//! Numbers are per iteration, or of a run, as `per` says; they are for people and charts, since the limits were judged by
//! exact fractions. Fields may be added within a version; a change of what is there raises it.

use heaptally_profile::check::{Finding, Spread, Verdict};
use heaptally_profile::limit::{Metric, Origin, Per, Severity};
use serde_json::{Value, json};

use crate::Options;
use crate::escape::escape_json;
use crate::verdict::{Level, Site, Statement, outcome, parts};

/// The verdict's `schema`.
const SCHEMA: &str = "heaptally-check";
/// The version that is written.
pub const VERSION: u32 = 1;

/// The verdict, ended by a line feed.
pub fn check_json(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> String {
    let statements = parts(verdict, options, is_strict);
    let compared = &verdict.compared;
    let checked = verdict.checked.iter().filter_map(|checked| {
        let view = compared.window(checked.window)?;
        let count = |metric| spread(compared.measured(checked.window, (metric, Per::Iteration)));
        Some(json!({
            "name": view.window.name,
            "image_label": view.image.map_or("", |image| image.label.as_str()),
            "limits": checked.limits,
            "iterations": view.window.iterations,
            "in_base": compared.pair(checked.window).is_some(),
            "allocs": count(Metric::Allocs),
            "bytes": count(Metric::Bytes),
        }))
    });
    let of_findings = verdict.findings.iter().zip(&statements.findings);
    let report = json!({
        "schema": SCHEMA,
        "version": VERSION,
        "outcome": outcome(verdict.outcome(is_strict)),
        "strict": is_strict,
        "windows": checked.collect::<Vec<Value>>(),
        "findings": of_findings.map(|(finding, statement)| of_finding(finding, statement)).collect::<Vec<Value>>(),
        "unmeasured": statements.unmeasured.iter().map(of_statement).collect::<Vec<Value>>(),
        "notes": statements.notes.iter().map(of_statement).collect::<Vec<Value>>(),
    });
    format!("{}\n", escape_json(&report.to_string()))
}

fn spread(spread: Spread) -> Value {
    json!({
        "least": spread.least.to_f64(),
        "greatest": spread.greatest.to_f64(),
        "average": spread.average.to_f64(),
    })
}

fn of_finding(finding: &Finding, statement: &Statement) -> Value {
    json!({
        "severity": if finding.severity == Severity::Hard { "hard" } else { "soft" },
        "rule": statement.rule,
        "window": statement.window,
        "metric": finding.metric.key(),
        "per": match finding.per { Per::Iteration => "iteration", Per::Run => "run" },
        "limit": origin(statement.origin.as_ref()),
        "measured": spread(finding.measured),
        "base": finding.base.map(spread),
        "judged": finding.judged.to_f64(),
        "allowed": finding.allowed.to_f64(),
        "message": statement.message,
        "guilty": statement.sites.iter().map(site).collect::<Vec<Value>>(),
    })
}

fn of_statement(statement: &Statement) -> Value {
    json!({
        "level": match statement.level { Level::Error => "error", Level::Warning => "warning", Level::Note => "note" },
        "rule": statement.rule,
        "window": statement.window,
        "limit": origin(statement.origin.as_ref()),
        "message": statement.message,
    })
}

fn origin(origin: Option<&Origin>) -> Value {
    match origin {
        None => Value::Null,
        Some(Origin::File { path, line }) => json!({ "file": &**path, "line": line, "option": null }),
        Some(Origin::Option(option)) => json!({ "file": null, "line": null, "option": option }),
        Some(Origin::Default) => json!({ "file": null, "line": null, "option": null }),
    }
}

fn site(site: &Site) -> Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "function": site.function,
        "file": known(&site.file),
        "line": (site.line > 0).then_some(site.line),
        "own_file": site.own.as_ref().map(|(file, _)| file),
        "own_line": site.own.as_ref().map(|(_, line)| line),
        "amount": site.amount,
    })
}
