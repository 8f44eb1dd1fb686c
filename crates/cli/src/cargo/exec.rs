//! A program that another command starts by way of this one: Cargo, nextest or another runner of tests.
//!
//! It prints nothing of its own but errors, and ends as the program does. A call that only lists is not recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptally_profile::pprof;

use super::record::without_hash;
use crate::exit::{Failure, NOT_EXECUTABLE, UNREADABLE};
use crate::harness::by_id::{Found, Kind, Scope, look};
use crate::large_stack::on_large_stack;
use crate::message::{self, quote};
use crate::output::{Content, Output};
use crate::process;
use crate::recording::{Recording, RecordingArgs, record};

/// The longest name of a file that is made of a window's.
const NAME_BYTES: usize = 150;

/// Runs the program and records it.
pub(crate) fn exec(
    words: &[OsString],
    recording: &RecordingArgs,
    folder: Option<&Path>,
) -> Result<u8, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::recorder("no program is named\nname one behind --"));
    };
    let program_path = Path::new(program);
    let found = look(program_path).unwrap_or_else(|_| Found::default());
    if found.harness.is_some() && arguments.iter().any(|word| word == "--list") {
        process::restore_broken_pipe();
        let error = Command::new(program).args(arguments).exec();
        return Err(Failure::new(
            NOT_EXECUTABLE,
            format!("cannot start {}: {error}\nsee whether it runs", quote(program)),
        ));
    }
    let file = program_path.file_name().unwrap_or(OsStr::new("program"));
    let label = without_hash(file);
    let id = found.harness.and_then(|harness| harness.id_of(arguments));
    let mut wanted: Recording = recording.recording(words);
    // Where it runs all, the recorder may be told each one's name.
    let is_told = |scope: &&Scope| id.is_none() && matches!(scope.kind, Kind::Bracketed(..));
    let scope = found.scopes.first().filter(|_| !recording.has_functions() && !found.opens_windows);
    let scope = scope.filter(|scope| !is_told(scope));
    if let Some(scope) = scope {
        let window = id.clone().unwrap_or_else(|| label.to_string_lossy().into_owned());
        wanted.functions = scope.definitions(&window);
    }
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => beside(program_path),
    };
    fs::create_dir_all(&folder).map_err(|error| {
        Failure::new(
            UNREADABLE,
            format!("cannot make the folder {}: {error}\nname another with -o", quote(&folder)),
        )
    })?;
    let output = Output::prepare(&folder.join(file_name(label, id.as_deref())), Content::Profile)?;
    let recorded = record(&wanted)?;
    let bytes = on_large_stack(|| pprof::write(&recorded.profile))?;
    output.write(&bytes)?;
    let code = recorded.end.code_of_runs(recorded.interrupted);
    if let Some(failure) = recorded.failure {
        message::print(&failure.message);
        return Ok(if code == 0 { failure.code } else { code });
    }
    Ok(code)
}

/// The folder in which Cargo builds, as far as the program's path tells it: that above `PROFILE/deps`.
fn beside(program: &Path) -> PathBuf {
    let deps =
        program.ancestors().skip(1).find(|folder| folder.file_name().is_some_and(|name| name == "deps"));
    let target = deps.and_then(|deps| deps.parent()?.parent());
    target.map_or_else(|| PathBuf::from("heaptally"), |target| target.join("heaptally/last/exec"))
}

/// `PROGRAM.pb.gz` or `PROGRAM.ID.pb.gz`.
fn file_name(program: &OsStr, id: Option<&str>) -> OsString {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    let plain = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().take(NAME_BYTES).map(|byte| if is_plain(*byte) { *byte } else { b'_' }).collect()
    };
    let mut name = plain(program.as_bytes());
    if let Some(id) = id {
        name.push(b'.');
        name.extend(plain(id.as_bytes()));
    }
    name.extend(b".pb.gz");
    OsString::from_vec(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_lie_beside_what_is_built() {
        assert_eq!(beside(Path::new("/w/target/debug/deps/a-0")), Path::new("/w/target/heaptally/last/exec"));
        assert_eq!(beside(Path::new("./a")), Path::new("heaptally"));
        assert_eq!(file_name("a".as_ref(), Some("b::c d")), "a.b__c_d.pb.gz");
        assert_eq!(file_name("a".as_ref(), None), "a.pb.gz");
    }
}
