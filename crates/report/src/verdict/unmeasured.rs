//! What could not be measured, in words.

use heaptally_profile::check::{Lack, Unmeasured, Why};
use heaptally_profile::limit::Rate;

use super::{Level, Statement, side};
use crate::ending::code;
use crate::escape::{escape, quote};
use crate::number::{counted, share};
use crate::text::diff::words;

/// As a statement, with the option that accepts it where there is one.
pub(super) fn unmeasured(unmeasured: &Unmeasured) -> Statement {
    let (rule, message) = rule_and_reason(unmeasured);
    let accepted = match &unmeasured.why {
        Why::Failed { .. } => ": --accept-failed checks it",
        Why::Incomplete { .. } | Why::Children { .. } => ": --accept-incomplete checks the rest",
        _ => "",
    };
    Statement {
        level: Level::Error,
        rule,
        window: unmeasured.window.clone(),
        message: message + accepted,
        origin: match &unmeasured.why {
            Why::NoLifetimes { origin, .. } => Some(origin.clone()),
            _ => None,
        },
        sites: Vec::new(),
        count: None,
    }
}

/// Why something was not measured, in words.
pub fn reason(unmeasured: &Unmeasured) -> String {
    rule_and_reason(unmeasured).1
}

fn rule_and_reason(unmeasured: &Unmeasured) -> (&'static str, String) {
    let of = side(unmeasured.side);
    let window =
        unmeasured.window.as_deref().map(|name| format!(" in window {}", quote(name))).unwrap_or_default();
    let percent = |accepted: Rate| {
        let decimals = (0..=9).find(|decimals| accepted.has_decimals(*decimals)).unwrap_or(9);
        format!("{} % accepted", accepted.rounded(decimals))
    };
    match &unmeasured.why {
        Why::NoWindow => ("no-window", format!("{of} has no window, so nothing was recorded")),
        Why::Failed { exit_code } => (
            "failed-run",
            format!("the program of {of} ended with {}, so it may not have done its work", code(*exit_code)),
        ),
        Why::NotInPath { program } => (
            "not-in-path",
            format!("the recorder was not in the way of the allocations of {} ({of})", quote(program)),
        ),
        Why::Incomplete { warning } => ("incomplete", format!("{of}: {}", escape(warning))),
        Why::Children { count } => (
            "incomplete",
            format!(
                "{} of {of} not recorded, though children were to be",
                counted(*count, "program was", "programs were")
            ),
        ),
        Why::Lost { lost, of: all, accepted } => (
            "lost",
            format!(
                "{of}{window}: {} lost, {} of all; {}",
                counted(*lost, "allocation was", "allocations were"),
                share(*lost, *all),
                percent(*accepted)
            ),
        ),
        Why::Cut { cut, of: all, accepted } => (
            "cut",
            format!(
                "{of}{window}: {} a cut stack, {} of all; {}",
                counted(*cut, "allocation has", "allocations have"),
                share(*cut, *all),
                percent(*accepted)
            ),
        ),
        Why::Missing { count } => (
            "missing",
            format!(
                "{of} lacks {}",
                counted(*count, "window, program or part", "windows, programs or parts")
            ),
        ),
        Why::Sums => ("sums", format!("the stacks of {of} do not add up to what its threads counted")),
        Why::NoLifetimes { metric, .. } => {
            let key = metric.key();
            (
                "no-lifetimes",
                format!("{of}{window}: `{key}` is not known: it was recorded with --no-lifetimes"),
            )
        }
        Why::Environment(condition) => ("other-conditions", words(condition)),
        Why::NothingFits { patterns, .. } => {
            let patterns: Vec<String> =
                patterns.iter().map(|(kind, pattern)| quote(&format!("--{kind} {pattern}"))).collect();
            ("nothing-fits", format!("no stack fits {}", patterns.join(", ")))
        }
        Why::NothingJudged(lack) => {
            let lacks = match lack {
                Lack::Limit => "there is none: `heaptally limits update` writes them",
                Lack::Base => "they compare with a base, and there is none: give one with --baseline",
                Lack::Window => "no window that was recorded has a limit, or is in the base",
            };
            ("nothing-judged", format!("no limit was judged: {lacks}"))
        }
    }
}
