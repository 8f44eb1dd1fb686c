//! The forms in which a verdict is printed and written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heaptally_profile::check::Verdict;
use heaptally_report::Options;
use heaptally_report::check_bencher::check_bencher;
use heaptally_report::check_benchmark_action::check_benchmark_action;
use heaptally_report::check_github::check_github;
use heaptally_report::check_gitlab::check_gitlab;
use heaptally_report::check_json::check_json;
use heaptally_report::check_markdown::check_markdown;
use heaptally_report::check_sarif::check_sarif;
use heaptally_report::text::check::text;

use crate::exit::{Failure, UNREADABLE};
use crate::message::{self, quote};
use crate::output::behind_links;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One object, which crates/report/schema describes.
    Json,
    /// For a comment on a change.
    Markdown,
    /// Annotations for the log of a GitHub job, and the text.
    Github,
    /// SARIF 2.1.0.
    Sarif,
    /// GitLab's code quality report.
    Gitlab,
    /// Bencher Metric Format: what was measured.
    Bencher,
    /// github-action-benchmark's customSmallerIsBetter: what was measured.
    BenchmarkAction,
}

impl Form {
    /// A verdict in this form. `brief` is the file that holds what the text leaves out.
    pub(crate) fn of(
        self,
        verdict: &Verdict<'_>,
        options: &Options,
        is_strict: bool,
        brief: Option<&str>,
    ) -> String {
        match self {
            Self::Text => text(verdict, options, is_strict, brief),
            Self::Json => check_json(verdict, options, is_strict),
            Self::Markdown => check_markdown(verdict, options, is_strict),
            Self::Github => check_github(verdict, options, is_strict, brief),
            Self::Sarif => check_sarif(verdict, options, is_strict, env!("CARGO_PKG_VERSION")),
            Self::Gitlab => check_gitlab(verdict, options, is_strict),
            Self::Bencher => check_bencher(verdict),
            Self::BenchmarkAction => check_benchmark_action(verdict),
        }
    }
}

/// `FORM=FILE` of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) form: Form,
    pub(crate) file: PathBuf,
}

/// Reads `FORM=FILE`.
pub(crate) fn copy(text: &str) -> Result<Copy, String> {
    let forms: Vec<String> = Form::value_variants()
        .iter()
        .filter_map(|form| Some(form.to_possible_value()?.get_name().to_owned()))
        .collect();
    let usage = format!("takes FORM=FILE, such as sarif=heaptally.sarif; forms are {}", forms.join(", "));
    let (form, file) = text.split_once('=').ok_or(&usage)?;
    if file.is_empty() {
        return Err("the file is missing: FORM=FILE".to_owned());
    }
    Ok(Copy { form: Form::from_str(form, false).map_err(|_| usage)?, file: file.into() })
}

/// Writes a file whole.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    // A device or pipe is written as it is; of a file the old one stays until the new one is whole.
    let written = match fs::metadata(file) {
        Ok(found) if !found.is_file() => fs::write(file, text),
        _ => replace(file, text),
    };
    written.map_err(|error| {
        Failure::new(UNREADABLE, format!("cannot write {}: {error}\nname another file", quote(file)))
    })
}

/// Removes what an earlier run wrote: if this one comes to no verdict, nobody is to take that for its own.
pub(crate) fn remove_earlier(file: &Path) {
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return;
    }
    if let Err(error) = fs::remove_file(behind_links(file)) {
        message::print(&format!("{} is of an earlier run, and cannot be removed: {error}", quote(file)));
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // Through a link, so that the link stays.
    let target = behind_links(file);
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::with_prefix_in(".heaptally-", folder)?;
    new.write_all(text.as_bytes())?;
    let mode = match fs::metadata(&target) {
        Ok(old) => old.permissions().mode(),
        Err(_) => {
            let mask = rustix::process::umask(rustix::fs::Mode::empty());
            rustix::process::umask(mask);
            0o666 & !mask.bits()
        }
    };
    new.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    new.persist(&target).map(drop).map_err(|error| error.error)
}

/// Adds to a file that others write to, too.
pub(crate) fn append(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(text.as_bytes())
}
