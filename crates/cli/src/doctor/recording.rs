//! The proof: the library is unpacked, and a small program recorded from end to end.

use std::path::Path;

use heaptally_profile::model::{Losses, Profile};
use rustix::process::geteuid;

use super::finding::{Finding, count};
use crate::exit::Failure;
use crate::library;
use crate::message::quote;
use crate::process::End;
use crate::recording::{Recorded, Recording, record};

/// The windows that the demonstration opens.
const WINDOWS: [&str; 2] = ["parse", "look up"];

/// Unpacks and records.
pub(crate) fn examine() -> Vec<Finding> {
    match library::library() {
        Err(failure) => vec![Finding::of_failure("cache_folder", &failure)],
        Ok(library) => vec![cache_folder(&library), demonstration()],
    }
}

fn cache_folder(library: &Path) -> Finding {
    if std::env::var_os("HEAPTALLY_PRELOAD").is_some_and(|path| !path.is_empty()) {
        return Finding::note(
            "cache_folder",
            format!("not used: HEAPTALLY_PRELOAD names the library {}", quote(library)),
        )
        .advise("unset HEAPTALLY_PRELOAD to use the library that this command carries");
    }
    let folder = library.parent().unwrap_or(library);
    let user = geteuid().as_raw();
    Finding::ok(
        "cache_folder",
        format!("{}: user {user}'s own, writable, programs can be run from it", quote(folder)),
    )
}

fn demonstration() -> Finding {
    const CHECK: &str = "recording";
    let in_memory = record_demonstration(None);
    let failure = match in_memory {
        Ok(words) => return Finding::ok(CHECK, words),
        Err(failure) => failure,
    };
    let folder = tempfile::tempdir();
    match folder.as_ref().map(|folder| record_demonstration(Some(folder.path()))) {
        Ok(Ok(words)) => Finding::warning(
            CHECK,
            format!("only with the segment in a folder: {words}"),
            "record with `heaptally run --segment-dir DIR`, DIR a folder that the program can write to",
        ),
        _ => Finding::of_failure(CHECK, &failure),
    }
}

/// Records the demonstration and checks what was recorded.
fn record_demonstration(segment_dir: Option<&Path>) -> Result<String, Failure> {
    let recording = Recording {
        program: vec![library::demo()?.into_os_string()],
        segment_dir: segment_dir.map(Path::to_owned),
        ..Recording::default()
    };
    let Recorded { end, profile, failure, .. } = record(&recording)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    check(&profile, end).map_err(|fault| {
        Failure::recorder(format!(
            "a small program was recorded wrongly: {fault}\nreport this output as a fault of heaptally's"
        ))
    })
}

fn check(profile: &Profile, end: End) -> Result<String, String> {
    if end.code() != 0 {
        return Err(format!("it ended with {}", end.code()));
    }
    if profile.losses != Losses::default() || profile.windows.iter().any(|window| window.lost > 0) {
        return Err("events were lost".to_owned());
    }
    if !profile.check_sums().is_empty() {
        return Err("rows and totals differ".to_owned());
    }
    let counts = profile.window_counts();
    let captures = profile.window_captures();
    let mut allocations = 0;
    for name in WINDOWS {
        let at = profile.windows.iter().position(|window| window.name == name);
        let (Some(at), true) = (at, counts.len() == captures.len()) else {
            return Err(format!("its window {name:?} is missing"));
        };
        let (Some(window), Some(counts), Some(captures)) =
            (profile.windows.get(at), counts.get(at), captures.get(at))
        else {
            return Err(format!("its window {name:?} has no counts"));
        };
        // Each iteration does the same.
        let per_iteration = counts.allocations.checked_rem(window.iterations);
        if counts.allocations == 0 || per_iteration != Some(0) {
            return Err(format!(
                "{} allocations in {} iterations of {name:?}",
                counts.allocations, window.iterations
            ));
        }
        if captures.complete != captures.total() {
            return Err("stacks are not complete".to_owned());
        }
        allocations += counts.allocations;
    }
    Ok(format!(
        "a small program was recorded: {}, all stacks complete",
        count(allocations, "allocation", "allocations")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_the_windows_proves_nothing() {
        let end = |exit_code| End { exit_code: Some(exit_code), signal: None };
        let fault = check(&Profile::default(), end(0)).unwrap_err();
        assert!(fault.contains("\"parse\" is missing"), "{fault}");
        let fault = check(&Profile::default(), end(3)).unwrap_err();
        assert!(fault.contains("ended with 3"), "{fault}");
        let losses = Losses { table_full: 1, ..Losses::default() };
        let fault = check(&Profile { losses, ..Profile::default() }, end(0)).unwrap_err();
        assert!(fault.contains("lost"), "{fault}");
    }
}
