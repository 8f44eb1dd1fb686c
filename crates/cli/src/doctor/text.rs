//! The findings for people.

use std::fmt::Write as _;

use super::finding::{Finding, Level, count};
use super::{Diagnosis, ProgramDiagnosis};
use crate::message::quote;

/// The width of the widest level's word and a blank.
const LEVEL_COLUMN: usize = 9;
/// The width of the widest check's name and a blank.
const CHECK_COLUMN: usize = 25;

/// The verdict as the first line, and all findings.
pub(crate) fn text(diagnosis: &Diagnosis, color: bool) -> String {
    let (level, words) = summary(diagnosis);
    let mut text = format!("can be recorded: {}\n\nthis machine\n", paint(level, &words, color));
    list(&mut text, &diagnosis.machine, color);
    if let Some(ProgramDiagnosis { name, findings, .. }) = &diagnosis.program {
        // Writing to a String does not fail.
        let _ = writeln!(text, "the program {}", quote(name));
        list(&mut text, findings, color);
    }
    // Nothing follows the last list.
    text.truncate(text.trim_end().len() + 1);
    text
}

fn list(text: &mut String, findings: &[Finding], color: bool) {
    for finding in findings {
        let Finding { check, level, found, advice } = finding;
        let word = paint(*level, &format!("{:<LEVEL_COLUMN$}", level.word()), color);
        let _ = writeln!(text, "  {word}{:<CHECK_COLUMN$}{found}", check.replace('_', " "));
        if let Some(advice) = advice {
            let _ = writeln!(text, "  {:<LEVEL_COLUMN$}{:<CHECK_COLUMN$}→ {advice}", "", "");
        }
    }
    text.push('\n');
}

/// The verdict in a line.
fn summary(diagnosis: &Diagnosis) -> (Level, String) {
    let findings = || diagnosis.findings();
    if let Some(problem) = findings().find(|finding| finding.level == Level::Problem) {
        let others = findings().filter(|finding| finding.level == Level::Problem).count() - 1;
        let others = if others > 0 {
            format!(" (and {})", count(others as u64, "other problem", "other problems"))
        } else {
            String::new()
        };
        return (Level::Problem, format!("no: {}{others}", problem.found));
    }
    match findings().filter(|finding| finding.level == Level::Warning).count() {
        0 => (Level::Ok, "yes".to_owned()),
        warnings => (Level::Warning, format!("yes, with {}", count(warnings as u64, "warning", "warnings"))),
    }
}

fn paint(level: Level, words: &str, color: bool) -> String {
    let code = match level {
        Level::Ok => "32",
        Level::Note => "36",
        Level::Warning => "33",
        Level::Problem => "31",
    };
    if color { format!("\u{1b}[{code}m{words}\u{1b}[0m") } else { words.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(machine: Vec<Finding>) -> Diagnosis {
        Diagnosis { machine, program: None }
    }

    #[test]
    fn the_summary_weighs_the_findings() {
        let warning = || Finding::warning("b", "bad", "mend it");
        let problem = || Finding::problem("c", "worse", "mend it");
        let of = |findings| summary(&diagnosis(findings)).1;
        assert_eq!(of(vec![Finding::ok("a", "x"), Finding::note("a", "y")]), "yes");
        assert_eq!(of(vec![warning()]), "yes, with 1 warning");
        assert_eq!(of(vec![warning(), warning()]), "yes, with 2 warnings");
        assert_eq!(of(vec![warning(), problem()]), "no: worse");
        assert_eq!(of(vec![problem(), problem()]), "no: worse (and 1 other problem)");
    }

    #[test]
    fn colour_is_only_what_was_asked_for() {
        let diagnosis = diagnosis(vec![Finding::problem("check_name", "worse", "mend it")]);
        let plain = text(&diagnosis, false);
        assert_eq!(
            plain,
            "can be recorded: no: worse\n\nthis machine\n  problem  check name               worse\n                                    → mend it\n"
        );
        let colored = text(&diagnosis, true);
        assert!(colored.contains("\u{1b}[31mproblem"), "{colored:?}");
        let stripped = colored.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        assert_eq!(stripped, plain);
    }
}
