//! Has Cargo build, and finds the programs in what it says.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Artifact, BuildScript, Message, Metadata, MetadataCommand, Package, PackageId};
use toml_edit::{Document, Item};

use super::argument::CargoArgs;
use super::debug_setting::{DebugSetting, debug_setting};
use super::environment::{Compiler, Place};
use super::setting::Settings;
use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::harness::codspeed;
use crate::message;

/// What is to be built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Bench,
    Test,
    Run,
}

/// A program that Cargo built.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its name: that of Cargo's target, with more where that is not the only one of it.
    pub(crate) name: String,
    package: String,
    /// What it is: `bench`, `test`, `lib`, `bin` …
    kind: String,
    pub(crate) path: PathBuf,
    /// Where and with what it runs.
    pub(crate) place: Place,
}

/// All that Cargo built.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    /// What is said of how they were built.
    pub(crate) remarks: Vec<String>,
}

/// The name of Cargo's program.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Asks Cargo for the workspace.
pub(crate) fn metadata(arguments: &CargoArgs) -> Result<Metadata, Failure> {
    let mut command = MetadataCommand::new();
    command.cargo_path(PathBuf::from(cargo())).no_deps();
    let words = arguments.lock_words();
    command.other_options(words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>());
    if let Some(manifest) = &arguments.manifest_path {
        command.manifest_path(manifest);
    }
    command.exec().map_err(|error| {
        let words = match error {
            cargo_metadata::Error::CargoMetadata { stderr } => stderr.trim().to_owned(),
            error => error.to_string(),
        };
        Failure::new(
            UNREADABLE,
            format!(
                "cargo does not say what the workspace is: {words}\nsee whether `cargo metadata` works here"
            ),
        )
    })
}

/// The folder in which Cargo builds.
pub(crate) fn target_folder(arguments: &CargoArgs, metadata: &Metadata) -> PathBuf {
    match &arguments.target_dir {
        Some(folder) => env::current_dir().unwrap_or_default().join(folder),
        None => metadata.target_directory.clone().into(),
    }
}

/// Builds. The arguments name what; `metadata` is that of their workspace.
pub(crate) fn build(task: Task, arguments: &CargoArgs, metadata: &Metadata) -> Result<Built, Failure> {
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let settings = Settings::load(&here);
    let root = metadata.workspace_root.as_std_path();
    let profile = profile(task, arguments);
    let debug = debug_setting(&profile, &manifest(root), &settings);
    let (artifacts, scripts) = call(task, arguments, &debug)?;
    let compiler = Compiler::ask()?;
    let triple = arguments.target.as_deref().unwrap_or(&compiler.host);
    let runner = settings.runner(triple, |cfg| compiler.is_set(cfg));
    let packages: HashMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let mut built = Built { programs: Vec::new(), remarks: remarks(&profile, &debug, &artifacts) };
    for artifact in artifacts {
        let (Some(path), Some(package)) = (&artifact.executable, packages.get(&artifact.package_id)) else {
            continue;
        };
        let is_wanted = match task {
            Task::Bench | Task::Test => artifact.profile.test,
            Task::Run => true,
        };
        if !is_wanted {
            continue;
        }
        let script = scripts.get(&artifact.package_id);
        let mut place = Place::of(package, script, path.as_std_path(), &compiler, &runner);
        if task == Task::Bench {
            place.set_unless_given(codspeed::WORKSPACE, root);
        }
        if task == Task::Run {
            // As `cargo run` does: the folder is the user's.
            place.folder = None;
        }
        let kind = artifact.target.kind.first().map(ToString::to_string).unwrap_or_default();
        let name = artifact.target.name.clone();
        built.programs.push(Program {
            name,
            package: package.name.to_string(),
            kind,
            path: path.clone().into(),
            place,
        });
    }
    if task == Task::Run {
        choose_one(&mut built, arguments, metadata)?;
    }
    tell_apart(&mut built.programs);
    Ok(built)
}

/// The profile that Cargo uses.
fn profile(task: Task, arguments: &CargoArgs) -> String {
    match (&arguments.profile, arguments.release, task) {
        (Some(profile), ..) if profile == "debug" => "dev".to_owned(),
        (Some(profile), ..) => profile.clone(),
        (None, true, _) => "release".to_owned(),
        (None, false, Task::Bench) => "bench".to_owned(),
        (None, false, Task::Test) => "test".to_owned(),
        (None, false, Task::Run) => "dev".to_owned(),
    }
}

/// The root manifest; what cannot be read is Cargo's to complain of.
fn manifest(root: &Path) -> Item {
    let text = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    text.parse::<Document<String>>().map_or(Item::None, |document| document.as_item().clone())
}

type Messages = (Vec<Artifact>, HashMap<PackageId, BuildScript>);

/// Calls Cargo, which shows its progress and its errors itself.
fn call(task: Task, arguments: &CargoArgs, debug: &DebugSetting) -> Result<Messages, Failure> {
    let mut words: Vec<&str> = match task {
        Task::Bench => vec!["bench", "--no-run"],
        Task::Test => vec!["test", "--no-run"],
        Task::Run => vec!["build"],
    };
    if task == Task::Run && !arguments.names_targets() {
        words.push("--bins");
    }
    words.push("--message-format=json-render-diagnostics");
    let mut command = Command::new(cargo());
    command.args(&words).args(arguments.words()).stdin(Stdio::null()).stdout(Stdio::piped());
    if task == Task::Bench && arguments.release {
        return Err(Failure::new(
            USAGE,
            "`cargo bench` has no --release: it is optimised by itself\nleave it out",
        ));
    }
    command.envs(debug.variable.iter().map(|name| (name, "1")));
    let cannot = |error: std::io::Error| {
        Failure::new(
            UNREADABLE,
            format!("cannot run cargo: {error}\ninstall it, or name it by the variable CARGO"),
        )
    };
    let mut child = command.spawn().map_err(cannot)?;
    let mut artifacts = Vec::new();
    let mut scripts = HashMap::new();
    if let Some(output) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(output)) {
            match message.map_err(cannot)? {
                Message::CompilerArtifact(artifact) => artifacts.push(artifact),
                Message::BuildScriptExecuted(script) => {
                    scripts.insert(script.package_id.clone(), script);
                }
                _ => {}
            }
        }
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() {
        return Ok((artifacts, scripts));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(UNREADABLE);
    Err(Failure::new(
        code,
        format!("cargo {} failed, so nothing was recorded\nsee its messages above", words[0]),
    ))
}

/// Programs of one name get their package's before it, and then what they are behind it.
fn tell_apart(programs: &mut [Program]) {
    let longer: [fn(&Program) -> String; 2] = [
        |program| format!("{}/{}", program.package, program.name),
        |program| format!("{} ({})", program.name, program.kind),
    ];
    for longer in longer {
        let mut known: HashMap<String, usize> = HashMap::new();
        programs.iter().for_each(|program| *known.entry(program.name.clone()).or_default() += 1);
        for program in
            programs.iter_mut().filter(|program| known.get(&program.name).is_some_and(|count| *count > 1))
        {
            program.name = longer(program);
        }
    }
}

/// What is missing from reports because of how the programs were built.
fn remarks(profile: &str, debug: &DebugSetting, artifacts: &[Artifact]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(strips) = &debug.strips {
        remarks.push(format!(
            "the profile `{strips}` strips symbols, so functions have no names\n\
             leave its `strip` out, or build with another profile by --profile"
        ));
    }
    let has_none = |artifact: &&Artifact| {
        artifact.executable.is_some()
            && matches!(artifact.profile.debuginfo, cargo_metadata::ArtifactDebuginfo::None)
    };
    if artifacts.iter().any(|artifact| has_none(&artifact)) {
        remarks.push(format!(
            "the profile `{profile}` is set to have no debug information, so there are no files, lines and inlined functions\n\
             give it `debug = 1`"
        ));
    }
    remarks
}

/// Leaves the program that `cargo run` would run.
fn choose_one(built: &mut Built, arguments: &CargoArgs, metadata: &Metadata) -> Result<(), Failure> {
    built.programs.retain(|program| matches!(program.kind.as_str(), "bin" | "example"));
    if built.programs.len() > 1 && !arguments.names_targets() {
        let default: Vec<&String> =
            metadata.packages.iter().filter_map(|package| package.default_run.as_ref()).collect();
        if let [name] = default.as_slice() {
            built.programs.retain(|program| program.name == **name);
        }
    }
    match built.programs.len() {
        1 => Ok(()),
        0 => Err(Failure::new(
            USAGE,
            "there is no program to run\nname one by --bin or --example, or a package by -p",
        )),
        _ => {
            let names: Vec<String> =
                built.programs.iter().map(|program| message::quote(&program.name)).collect();
            Err(Failure::new(
                USAGE,
                format!("there are several programs: {}\nname one by --bin", names.join(", ")),
            ))
        }
    }
}
