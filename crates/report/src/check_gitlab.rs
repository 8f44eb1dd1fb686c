//! A verdict as GitLab's code quality report
//! (<https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>): a list of problems, each at a line.
//! Notes are left out.

use heaptally_profile::check::Verdict;
use heaptally_profile::limit::Origin;
use serde_json::{Value, json};

use crate::Options;
use crate::escape::escape_json;
use crate::fingerprint::Fingerprints;
use crate::verdict::{Level, Site, Statement, statements};

/// Where a problem is that has no place: it must have one.
const NOWHERE: &str = "heaptally";

/// The verdict, ended by a line feed.
pub fn check_gitlab(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> String {
    let statements = statements(verdict, options, is_strict);
    let grave = statements.iter().filter(|statement| statement.level != Level::Note);
    let mut prints = Fingerprints::default();
    let problems: Vec<Value> = grave.flat_map(|statement| problems(statement, &mut prints)).collect();
    format!("{}\n", escape_json(&Value::from(problems).to_string()))
}

fn problems(statement: &Statement, prints: &mut Fingerprints) -> Vec<Value> {
    match statement.sites.is_empty() {
        true => vec![problem(statement, None, prints)],
        false => statement.sites.iter().map(|site| problem(statement, Some(site), prints)).collect(),
    }
}

fn problem(statement: &Statement, site: Option<&Site>, prints: &mut Fingerprints) -> Value {
    let limit = match &statement.origin {
        Some(Origin::File { path, line }) => Some((path.to_string(), *line)),
        _ => None,
    };
    let (path, line) =
        site.and_then(|site| site.own.clone()).or(limit).unwrap_or_else(|| (NOWHERE.to_owned(), 1));
    let description = match site {
        Some(site) => format!("{}: {} ({})", site.amount, site.text(), statement.text()),
        None => statement.text(),
    };
    json!({
        "description": description,
        "check_name": format!("heaptally-{}", statement.rule),
        "fingerprint": prints.next(statement, site),
        "severity": if statement.level == Level::Error { "major" } else { "minor" },
        "location": { "path": path, "lines": { "begin": line.max(1) } },
    })
}
