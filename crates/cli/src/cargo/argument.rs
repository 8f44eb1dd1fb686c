//! Cargo's options for what is built, as `cargo bench` and its like have them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// What is built. They go to Cargo as they are.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is built")]
pub(crate) struct CargoArgs {
    /// This package only; can be given several times.
    #[arg(short, long, value_name = "SPEC")]
    package: Vec<String>,
    /// All packages of the workspace.
    #[arg(long)]
    workspace: bool,
    /// Not this package of them, Cargo's --exclude; can be given several times.
    #[arg(long, value_name = "SPEC")]
    exclude_package: Vec<String>,
    /// The library's own tests.
    #[arg(long)]
    lib: bool,
    /// This program; can be given several times.
    #[arg(long, value_name = "NAME")]
    bin: Vec<String>,
    /// All programs.
    #[arg(long)]
    bins: bool,
    /// This example; can be given several times.
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    /// All examples.
    #[arg(long)]
    examples: bool,
    /// This test; can be given several times.
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,
    /// All tests.
    #[arg(long)]
    tests: bool,
    /// This benchmark's program; can be given several times.
    #[arg(long, value_name = "NAME")]
    bench: Vec<String>,
    /// The programs of all benchmarks.
    #[arg(long)]
    benches: bool,
    /// All of these.
    #[arg(long)]
    all_targets: bool,
    /// Features, divided by commas or blanks; can be given several times.
    #[arg(short = 'F', long, value_name = "FEATURES")]
    features: Vec<String>,
    /// All features.
    #[arg(long)]
    all_features: bool,
    /// Without the feature `default`.
    #[arg(long)]
    no_default_features: bool,
    /// With this profile.
    #[arg(long, value_name = "NAME", conflicts_with = "release")]
    pub(crate) profile: Option<String>,
    /// With the profile `release`.
    #[arg(short, long)]
    pub(crate) release: bool,
    /// For this platform, whose programs this machine has to run.
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Option<String>,
    /// Where to build.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) target_dir: Option<PathBuf>,
    /// The Cargo.toml.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) manifest_path: Option<PathBuf>,
    /// How many jobs at once.
    #[arg(short, long, value_name = "N")]
    jobs: Option<String>,
    /// With Cargo.lock as it is.
    #[arg(long)]
    locked: bool,
    /// Without the network.
    #[arg(long)]
    offline: bool,
    /// Both.
    #[arg(long)]
    frozen: bool,
}

impl CargoArgs {
    /// Whether targets are named; Cargo's own choice holds otherwise.
    pub(crate) fn names_targets(&self) -> bool {
        let many = [&self.bin, &self.example, &self.test, &self.bench];
        let all = [self.lib, self.bins, self.examples, self.tests, self.benches, self.all_targets];
        many.iter().any(|names| !names.is_empty()) || all.contains(&true)
    }

    /// As words for Cargo.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        for (option, values) in [
            ("--package", &self.package),
            ("--exclude", &self.exclude_package),
            ("--bin", &self.bin),
            ("--example", &self.example),
            ("--test", &self.test),
            ("--bench", &self.bench),
            ("--features", &self.features),
        ] {
            words.extend(values.iter().flat_map(|value| [option.into(), OsString::from(value)]));
        }
        for (option, value) in
            [("--profile", &self.profile), ("--target", &self.target), ("--jobs", &self.jobs)]
        {
            words.extend(value.iter().flat_map(|value| [option.into(), OsString::from(value)]));
        }
        for (option, is_set) in [
            ("--release", self.release),
            ("--workspace", self.workspace),
            ("--lib", self.lib),
            ("--bins", self.bins),
            ("--examples", self.examples),
            ("--tests", self.tests),
            ("--benches", self.benches),
            ("--all-targets", self.all_targets),
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
        ] {
            words.extend(is_set.then(|| OsString::from(option)));
        }
        if let Some(folder) = &self.target_dir {
            words.extend(["--target-dir".into(), folder.into()]);
        }
        if let Some(file) = &self.manifest_path {
            words.extend(["--manifest-path".into(), file.into()]);
        }
        words.extend(self.lock_words());
        words
    }

    /// Those about the lock file and the network, which every command of Cargo has.
    pub(crate) fn lock_words(&self) -> Vec<OsString> {
        let options = [("--locked", self.locked), ("--offline", self.offline), ("--frozen", self.frozen)];
        options.into_iter().filter(|(_, is_set)| *is_set).map(|(option, _)| option.into()).collect()
    }
}
