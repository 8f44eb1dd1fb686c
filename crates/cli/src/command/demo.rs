//! `heaptally demo`: records a small program that comes with the command, before and after a change, and prints the
//! report, what the change added, and the check that stops it.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::Args;
use heaptally_profile::check::{CheckOptions, Outcome, Subject, check, default_gates};
use heaptally_profile::diff::{DiffOptions, diff};
use heaptally_profile::limit::{Amount, Limits, Origin, Rate, Severity};
use heaptally_profile::model::Profile;
use heaptally_report::text::diff::Show;
use heaptally_report::{Options, text};

use crate::check::record::unmeasured;
use crate::exit::{Failure, INTERNAL, REGRESSION};
use crate::library;
use crate::recording::{Recording, record};
use crate::terminal::{color, print, width};

/// What stands between the report and the diff.
const TITLE: &str = "and after a change, which `heaptally diff` compares with it:";
/// … and between the diff and the check.
const CHECK_TITLE: &str =
    "in CI `heaptally check` does not let that pass. It fails, and the first line says why:";

/// Records a small program that comes with the command, prints the report, and shows what a change to it added, and how a
/// check fails of it. This command itself then ends with 0.
#[derive(Args, Debug)]
pub(crate) struct Demo {}

impl Demo {
    /// Records and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let program = library::demo().map_err(unmeasured)?;
        let program = program.into_os_string();
        let recording = |words: Vec<OsString>| Recording { program: words, ..Recording::default() };
        let base = record(&recording(vec![program.clone()])).map_err(unmeasured)?;
        let change = record(&recording(vec![program, "change".into()])).map_err(unmeasured)?;
        let code = match base.end.code() {
            0 => change.end.code(),
            code => code,
        };
        let options = Options {
            color: io::stdout().is_terminal() && color(),
            width: width(io::stdout()),
            ..Options::default()
        };
        let diff = diff(&base.profile, &change.profile, &DiffOptions::default());
        let (report, changes) =
            (text::text(&base.profile, &options), text::diff::text(&diff, &options, Show::Entries));
        drop(diff);
        let checked = checked(base.profile, change.profile, &options)?;
        print(&format!("{report}\n{TITLE}\n\n{changes}\n{CHECK_TITLE}\n\n{checked}"))?;
        Ok(code)
    }
}

/// What `heaptally check` says of the change.
fn checked(base: Profile, change: Profile, options: &Options) -> Result<String, Failure> {
    let limits = Limits::default();
    let rules = CheckOptions {
        defaults: default_gates(
            (Amount::Exact(Rate::ZERO), Origin::Default),
            (Severity::Hard, Origin::Default),
        ),
        has_files: false,
        ..CheckOptions::default()
    };
    let subject = Subject::new(change, Some(base), &limits, &rules);
    let verdict = check(&subject, &limits, &rules);
    let told = text::check::text(&verdict, options, false, None);
    match verdict.outcome(false) {
        Outcome::Regression => Ok(format!("{told}exit code: {REGRESSION}\n")),
        _ => Err(Failure::new(
            INTERNAL,
            format!("the check of the change does not fail as it should:\n{told}\nplease report it"),
        )),
    }
}
