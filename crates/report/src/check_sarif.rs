//! A verdict as SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/>), for what shows the results of analyses.
//!
//! A result is a guilty stack at the line of the user's own code; where the limit stands is a related location. Results
//! without a place stand too. Fingerprints hold no line, so that a result is the same one after lines moved.

use heaptally_profile::check::{Outcome, Verdict};
use heaptally_profile::limit::Origin;
use serde_json::{Value, json};

use crate::Options;
use crate::escape::escape_json;
use crate::fingerprint::Fingerprints;
use crate::verdict::{Level, Site, Statement, statements};

/// The rules, with what they are about.
const RULES: [(&str, &str); 30] = [
    ("too-many", "A window counts more than its limit allows."),
    ("too-few", "A window counts less than its limit expects."),
    ("grew", "A window counts more than its baseline, beyond what is allowed."),
    ("shrank", "A window counts less than its baseline, beyond what is allowed."),
    ("new-stack", "A call stack allocates that the baseline does not have."),
    ("renamed-stack", "A call stack is taken for one of the baseline whose function was renamed."),
    ("stack-grew", "A call stack allocates more than in the baseline."),
    ("no-window", "A profile holds nothing."),
    ("failed-run", "The program that was recorded failed."),
    ("incomplete", "Some allocations did not reach the recorder."),
    ("not-in-path", "Allocations did not reach the recorder."),
    ("lost", "Allocations were lost."),
    ("cut", "Call stacks are cut."),
    ("missing", "Parts of a recording are missing."),
    ("sums", "Parts of a recording contradict each other."),
    ("no-lifetimes", "A limit is of what was not recorded."),
    ("other-conditions", "Two recordings were made under conditions that differ."),
    ("nothing-fits", "No stack fits the patterns that were asked for."),
    ("nothing-judged", "No limit was judged."),
    ("improvement", "A count is better than its limit."),
    ("unused-limit", "A limit is for no window."),
    ("no-limit", "A window has no limit."),
    ("not-in-base", "A window is new."),
    ("not-in-change", "A window is gone."),
    ("needs-base", "Limits need a baseline that is not there."),
    ("unstable", "Runs differ, and only some keep to a limit."),
    ("unstable-stacks", "Runs differ, and stacks were not judged."),
    ("ignored", "Stacks do not count for a time."),
    ("unused-ignore", "Stacks that are to be ignored are not there."),
    ("expired-ignore", "Stacks are not ignored any more."),
];
/// What recorders know of their own coverage comes behind the table's.
const COVERAGE: (&str, &str) = ("coverage", "A recording may not hold all allocations.");

/// The verdict, ended by a line feed.
pub fn check_sarif(verdict: &Verdict<'_>, options: &Options, is_strict: bool, version: &str) -> String {
    let statements = statements(verdict, options, is_strict);
    let rules: Vec<Value> = RULES
        .iter()
        .chain([&COVERAGE])
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    let mut prints = Fingerprints::default();
    let results: Vec<Value> =
        statements.iter().flat_map(|statement| results(statement, &mut prints)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "heaptally", "version": version, "rules": rules } },
            "invocations": [{ "executionSuccessful": verdict.outcome(is_strict) != Outcome::Unmeasured }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{}\n", escape_json(&log.to_string()))
}

fn results(statement: &Statement, prints: &mut Fingerprints) -> Vec<Value> {
    match statement.sites.is_empty() {
        true => vec![result(statement, None, prints)],
        false => statement.sites.iter().map(|site| result(statement, Some(site), prints)).collect(),
    }
}

fn result(statement: &Statement, site: Option<&Site>, prints: &mut Fingerprints) -> Value {
    let message = match site {
        Some(site) => format!("{}: {}. {}", site.amount, site.text(), statement.text()),
        None => statement.text(),
    };
    let level = match statement.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let rule = RULES.iter().position(|(id, _)| *id == statement.rule).unwrap_or(RULES.len());
    let mut result = json!({
        "ruleId": statement.rule,
        "ruleIndex": rule,
        "level": level,
        "message": { "text": message },
        "partialFingerprints": { "heaptally/v1": prints.next(statement, site) },
    });
    let limit = match &statement.origin {
        Some(Origin::File { path, line }) => Some(physical(path, *line)),
        _ => None,
    };
    let own = site.and_then(|site| site.own.as_ref()).map(|(file, line)| physical(file, *line));
    let logical = site.map(|site| json!([{ "fullyQualifiedName": site.function, "kind": "function" }]));
    let mut location = serde_json::Map::new();
    // Without a line of the user's own the limit is what there is to look at.
    if let Some(place) = own.clone().or_else(|| limit.clone()) {
        location.insert("physicalLocation".into(), place);
    }
    if let Some(logical) = logical {
        location.insert("logicalLocations".into(), logical);
    }
    if !location.is_empty() {
        result["locations"] = json!([location]);
    }
    if let (Some(limit), true) = (limit, own.is_some()) {
        result["relatedLocations"] =
            json!([{ "id": 1, "physicalLocation": limit, "message": { "text": "the limit" } }]);
    }
    result
}

fn physical(file: &str, line: u32) -> Value {
    let mut artifact = json!({ "uri": uri(file) });
    if !file.starts_with('/') {
        artifact["uriBaseId"] = json!("%SRCROOT%");
    }
    json!({ "artifactLocation": artifact, "region": { "startLine": line.max(1) } })
}

/// A path as a URI: what has a meaning there is written as its bytes.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len() + 8);
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'+' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("src/a b#1.rs"), "src/a%20b%231.rs");
        assert_eq!(uri("/usr/x:y"), "file:///usr/x%3Ay");
        assert_eq!(uri("ü"), "%C3%BC");
    }
}
