//! `heaptally doctor`: whether this machine and a program can be recorded, and how well.
//!
//! What can be tried is tried, down to the recording of a small program from end to end; what cannot is read from the
//! program's file, which is never started. One file per thing that is looked at; each gives [`Finding`]s.

mod allocator;
mod debug_information;
mod dwarf;
pub(crate) mod finding;
mod glibc;
pub(crate) mod image;
mod json;
pub(crate) mod kernel;
mod loader_cache;
mod machine;
mod needed;
mod program;
mod range;
mod recording;
pub(crate) mod rust_allocator;
mod text;
mod unwind_table;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use finding::{Finding, Level};
pub(crate) use json::json;
pub(crate) use text::text;

/// The libraries that the program or library at a path needs, as far as they are found.
pub(crate) fn needed_libraries(path: &Path) -> Vec<PathBuf> {
    let Ok(image) = image::Image::open(path) else { return Vec::new() };
    let needed = needed::Needed::of(&image, &needed::library_path());
    needed.libraries.into_iter().map(|library| library.path).collect()
}

/// All that was found.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    machine: Vec<Finding>,
    program: Option<ProgramDiagnosis>,
}

/// What was found about a program.
#[derive(Debug)]
struct ProgramDiagnosis {
    /// As the user named it.
    name: OsString,
    path: Option<PathBuf>,
    image: Option<PathBuf>,
    findings: Vec<Finding>,
}

impl Diagnosis {
    /// Looks at the machine, and at a program if one is named.
    pub(crate) fn of(name: Option<&OsStr>) -> Self {
        let machine = machine::examine();
        let program = name.map(|name| {
            let program::Examined { path, image, findings } = program::examine(name);
            ProgramDiagnosis { name: name.to_owned(), path, image, findings }
        });
        Self { machine, program }
    }

    /// Whether nothing stands against a recording.
    pub(crate) fn is_recordable(&self) -> bool {
        self.findings().all(|finding| finding.level != Level::Problem)
    }

    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.machine.iter().chain(self.program.iter().flat_map(|program| &program.findings))
    }
}
