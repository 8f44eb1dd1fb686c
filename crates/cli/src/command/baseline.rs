//! `heaptally baseline`: the profiles that are saved under names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Args, Subcommand};
use heaptally_profile::model::Profile;
use heaptally_report::escape::escape;
use serde_json::{Value, json};

use crate::baseline::{State, folder, forget, in_use, list, path_of, resolve, state};
use crate::command::report::read;
use crate::config::settings;
use crate::exit::{Failure, UNREADABLE};
use crate::message::{self, quote};
use crate::terminal::print;

/// Lists, shows, keeps and deletes the profiles that `run --save-baseline NAME` saved.
///
/// They are kept beside what is built: in `target/heaptally` of Cargo's workspace, `.build/heaptally` of a Swift package,
/// else in `.heaptally` of the repository; `baseline-folder` in the configuration names another folder.
#[derive(Args, Debug)]
pub(crate) struct Baseline {
    #[command(subcommand)]
    command: Inner,
}

#[derive(Debug, Subcommand)]
enum Inner {
    /// Lists the baselines, and says which are stale: the run that was to replace them failed.
    List {
        /// Print one JSON object, which crates/cli/schema describes.
        #[arg(long)]
        json: bool,
    },
    /// Shows what a baseline was recorded of, and with what.
    Show {
        /// The baseline.
        name: String,
        /// Print one JSON object, which crates/cli/schema describes.
        #[arg(long)]
        json: bool,
    },
    /// Has a stale baseline count again.
    Keep {
        /// The baselines.
        #[arg(required = true)]
        name: Vec<String>,
    },
    /// Deletes baselines.
    Delete {
        /// The baselines.
        #[arg(required = true)]
        name: Vec<String>,
    },
}

impl Baseline {
    /// Does it.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self.command {
            Inner::List { json } => list_all(json),
            Inner::Show { name, json } => show(&name, json),
            Inner::Keep { name } => {
                for name in &name {
                    let path = existing(name)?;
                    refuse_in_use(&path)?;
                    forget(&path).map_err(|error| cannot("keep", name, &error))?;
                    message::print(&format!("the baseline {} counts", quote(name)));
                }
                Ok(0)
            }
            Inner::Delete { name } => {
                // All or none, as far as names go.
                let paths = name.iter().map(|name| existing(name)).collect::<Result<Vec<_>, _>>()?;
                for (name, path) in name.iter().zip(paths) {
                    refuse_in_use(&path)?;
                    fs::remove_file(&path)
                        .and_then(|()| forget(&path))
                        .map_err(|error| cannot("delete", name, &error))?;
                    message::print(&format!("the baseline {} is deleted", quote(name)));
                }
                Ok(0)
            }
        }
    }
}

fn cannot(action: &str, name: &str, error: &io::Error) -> Failure {
    Failure::new(
        UNREADABLE,
        format!(
            "cannot {action} the baseline {}: {error}\nsee who may write to {}",
            quote(name),
            quote(folder(settings()))
        ),
    )
}

/// The file of a baseline, stale or not.
fn existing(name: &str) -> anyhow::Result<PathBuf> {
    let path = path_of(name, settings())?;
    // The message of one that is not there.
    if path.is_file() { Ok(path) } else { resolve(name, settings()) }
}

fn refuse_in_use(path: &Path) -> Result<(), Failure> {
    match state(path) {
        State::InUse => Err(in_use(path)),
        State::Fresh | State::Stale(_) => Ok(()),
    }
}

/// A baseline in words, and for programs.
fn words(state: &State) -> (String, Value) {
    match state {
        State::Fresh => (String::new(), json!({"kind": "fresh"})),
        State::InUse => ("  a run is about to replace it".to_owned(), json!({"kind": "in_use"})),
        State::Stale(why) => (format!("  stale: {why}"), json!({"kind": "stale", "reason": why})),
    }
}

fn list_all(is_json: bool) -> anyhow::Result<u8> {
    let folder = folder(settings());
    let names = list(settings()).map_err(|error| {
        Failure::new(
            UNREADABLE,
            format!("cannot list the baselines in {}: {error}\nsee who may read it", quote(&folder)),
        )
    })?;
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let (mut text, mut values) = (format!("{} in {}\n", count(names.len()), quote(&folder)), Vec::new());
    for name in &names {
        let path = path_of(name, settings())?;
        // One that went away meanwhile has neither.
        let about = fs::metadata(&path).ok();
        let size = about.as_ref().map_or(0, fs::Metadata::len);
        let saved = about.and_then(|about| about.modified().ok()).map(date).unwrap_or_default();
        let (words, state) = words(&state(&path));
        text.push_str(&format!("  {name:width$}  {saved}  {size} B{words}\n"));
        values.push(json!({"name": name, "saved": saved, "size_bytes": size, "state": state}));
    }
    let object = json!({
        "schema": "heaptally-baselines", "version": 1,
        "folder": folder.to_string_lossy(), "baselines": values,
    });
    print(&if is_json { format!("{object}\n") } else { text })?;
    Ok(0)
}

fn count(number: usize) -> String {
    if number == 1 { "1 baseline".to_owned() } else { format!("{number} baselines") }
}

fn show(name: &str, is_json: bool) -> anyhow::Result<u8> {
    let path = existing(name)?;
    let saved =
        fs::metadata(&path).ok().and_then(|about| about.modified().ok()).map(date).unwrap_or_default();
    let profile = read(&path)?;
    let (words, state) = words(&state(&path));
    let windows: Vec<(String, u64, u64)> = profile
        .windows
        .iter()
        .zip(profile.window_counts())
        .map(|(window, counts)| (window.name.clone(), window.iterations, counts.allocations))
        .collect();
    if is_json {
        let windows: Vec<Value> = windows
            .iter()
            .map(|(name, iterations, allocations)| {
                json!({"name": name, "iterations": iterations, "allocations": allocations})
            })
            .collect();
        let object = json!({
            "schema": "heaptally-baseline", "version": 1,
            "name": name, "file": path.to_string_lossy(), "saved": saved, "state": state,
            "environment": profile.environment, "allocators": allocators(&profile), "windows": windows,
        });
        print(&format!("{object}\n"))?;
        return Ok(0);
    }
    let environment = &profile.environment;
    let mut text = format!("baseline {name}{words}\n");
    let mut line = |what: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {what:<14}{}\n", escape(value)));
        }
    };
    line("file", &path.to_string_lossy());
    line("saved", &saved);
    line("command", &environment.command.join(" "));
    line("heaptally", &environment.recorder);
    line("architecture", &environment.architecture);
    line("machine", &environment.machine);
    line("C library", &environment.libc);
    line("allocators", &allocators(&profile).join(", "));
    line("compilers", &environment.compilers.join(", "));
    for (name, iterations, allocations) in windows {
        line("window", &format!("{name:?}: {allocations} allocations in {iterations} iterations"));
    }
    print(&text)?;
    Ok(0)
}

/// The allocators that were recorded, sorted.
fn allocators(profile: &Profile) -> Vec<&str> {
    let images = profile.images.iter().filter(|image| image.in_path);
    let mut names: Vec<&str> =
        images.map(|image| image.allocator.as_str()).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// `2026-12-02T14:05:09Z`; empty: before 1970.
fn date(time: SystemTime) -> String {
    const SECONDS_A_DAY: u64 = 86_400;
    let Ok(since) = time.duration_since(SystemTime::UNIX_EPOCH) else { return String::new() };
    let (days, seconds) = (since.as_secs() / SECONDS_A_DAY, since.as_secs() % SECONDS_A_DAY);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_as_date_says() {
        // By `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_796_219_109, "2026-12-02T13:45:09Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
