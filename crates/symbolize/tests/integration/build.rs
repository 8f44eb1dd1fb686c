//! Builds programs, and asks for the names in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptally_profile::model::{FrameKind, Image, Location, Module, Profile};
use heaptally_profile::path_text::escape_path;
use heaptally_symbolize::{Options, Symbolizer};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use tempfile::TempDir;

/// A folder in which programs are built.
pub(crate) struct Workshop {
    folder: TempDir,
}

impl Workshop {
    /// An empty one; `None`, with a note, where one of the tools is missing.
    pub(crate) fn with(tools: &[&str]) -> Option<Self> {
        for tool in tools {
            let version =
                Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !version.is_ok_and(|status| status.success()) {
                println!("skipped: {tool} is missing");
                return None;
            }
        }
        Some(Self { folder: TempDir::new().unwrap() })
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name.as_ref())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a tool in the folder.
    pub(crate) fn run<I: AsRef<OsStr>>(&self, tool: &str, arguments: impl IntoIterator<Item = I>) {
        let arguments: Vec<OsString> =
            arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let output = Command::new(tool).args(&arguments).current_dir(self.path("")).output().unwrap();
        assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a tool, arguments divided by spaces.
    pub(crate) fn sh(&self, command: &str) {
        let mut words = command.split_whitespace();
        let tool = words.next().unwrap();
        self.run(tool, words);
    }
}

/// The module that the recorder would make of a file.
pub(crate) fn module_of(path: &Path) -> Module {
    let bytes = fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let build_id = elf.build_id().unwrap().unwrap_or_default();
    let mut module = Module {
        path: escape_path(path.as_os_str().as_bytes()),
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        ..Module::default()
    };
    for segment in elf.segments() {
        if segment.permissions().executable() {
            module.text_svma = segment.address();
            module.text_svma_end = segment.address() + segment.size();
            module.text_offset = segment.file_range().0;
        }
    }
    module
}

/// A profile with one module, its program, and locations in it.
pub(crate) fn profile_of(module: Module, kind: FrameKind, addresses: &[u64]) -> Profile {
    Profile {
        images: vec![Image { path: module.path.clone(), ..Image::default() }],
        modules: vec![module],
        locations: addresses
            .iter()
            .map(|&address| Location { module: Some(0), address, kind, ..Location::default() })
            .collect(),
        ..Profile::default()
    }
}

/// What the frames at a location are: `(system name, name, file, line)`.
pub(crate) type Frame = (String, String, String, u32);

/// The frames of each location.
pub(crate) fn frames_of(profile: &Profile) -> Vec<Vec<Frame>> {
    profile
        .locations
        .iter()
        .map(|location| {
            location
                .lines
                .iter()
                .map(|line| {
                    let function = &profile.functions[line.function];
                    (function.system_name.clone(), function.name.clone(), function.file.clone(), line.line)
                })
                .collect()
        })
        .collect()
}

/// Symbolises exact addresses of a file.
pub(crate) fn symbolize(path: &Path, addresses: &[u64]) -> Profile {
    symbolize_with(Options::default(), module_of(path), addresses)
}

pub(crate) fn symbolize_with(options: Options, module: Module, addresses: &[u64]) -> Profile {
    let mut profile = profile_of(module, FrameKind::Interrupted, addresses);
    Symbolizer::new(options).symbolize(&mut profile);
    profile
}

/// The names for people at one address, innermost first.
pub(crate) fn names(profile: &Profile) -> Vec<Vec<String>> {
    frames_of(profile).into_iter().map(|frames| frames.into_iter().map(|frame| frame.1).collect()).collect()
}

/// The SVMA of the first symbol whose name contains a text.
pub(crate) fn address_of(path: &Path, name: &str) -> u64 {
    symbols_of(path).into_iter().find(|symbol| symbol.1.contains(name)).map(|symbol| symbol.0).unwrap()
}

/// Address and name of each function's symbol that has a size.
pub(crate) fn symbols_of(path: &Path) -> Vec<(u64, String)> {
    sized_symbols(path).into_iter().map(|(range, name)| (range.start, name)).collect()
}

/// Range and name of each function's symbol that has a size.
pub(crate) fn sized_symbols(path: &Path) -> Vec<(Range<u64>, String)> {
    let bytes = fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    elf.symbols()
        .filter(|symbol| {
            symbol.kind() == object::SymbolKind::Text && symbol.size() > 0 && symbol.is_definition()
        })
        .map(|symbol| (symbol.address()..symbol.address() + symbol.size(), symbol.name().unwrap().to_owned()))
        .collect()
}

/// Each n-th address of `.text`.
pub(crate) fn text_addresses(path: &Path, step: u64) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let text = elf.section_by_name(".text").unwrap();
    (text.address()..text.address() + text.size()).step_by(step.try_into().unwrap()).collect()
}
