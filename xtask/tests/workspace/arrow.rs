//! The dependencies between the crates point one way, and the hot crates do without std.

use crate::root;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::fs;

/// Each crate, and those of ours that it may depend on: the arrows of ARCHITECTURE.md.
const ARROWS: [(&str, &[&str]); 12] = [
    ("heaptally-unwind", &[]),
    ("heaptally-segment", &[]),
    ("heaptally-tally", &["heaptally-segment"]),
    ("heaptally-runtime", &["heaptally-segment", "heaptally-tally", "heaptally-unwind"]),
    ("heaptally-preload", &["heaptally-runtime"]),
    ("heaptally", &["heaptally-runtime"]),
    ("heaptally-profile", &[]),
    ("heaptally-symbolize", &["heaptally-profile"]),
    ("heaptally-report", &["heaptally-profile"]),
    ("heaptally-cli", &["heaptally-profile", "heaptally-report", "heaptally-segment", "heaptally-symbolize"]),
    ("integration-tests", &[]),
    ("xtask", &[]),
];

/// What runs inside the recorded program's `malloc`.
const HOT: [&str; 4] = ["heaptally-unwind", "heaptally-tally", "heaptally-runtime", "heaptally-preload"];
/// What such a crate may depend on from elsewhere: without std, and without an allocator.
const HOT_FOREIGN: [&str; 2] = ["gimli", "libc"];

/// Only the command reads a command line, and only it may give up on an error's kind.
const ONLY_IN_COMMAND: [&str; 2] = ["clap", "anyhow"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata")
}

/// The names that `package` depends on to build and run; for its tests alone it may depend on any.
fn dependencies(package: &Package) -> Vec<&str> {
    let counts = |kind| matches!(kind, DependencyKind::Normal | DependencyKind::Build);
    package.dependencies.iter().filter(|one| counts(one.kind)).map(|one| one.name.as_str()).collect()
}

#[test]
fn arrows_between_crates_are_the_stated_ones() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            wrong.push(format!("{name} has no entry in ARROWS"));
            continue;
        };
        for to in dependencies(package) {
            let is_ours = ARROWS.iter().any(|(crate_name, _)| *crate_name == to);
            if is_ours && !allowed.contains(&to) {
                wrong.push(format!("{name} -> {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(metadata.packages.len(), ARROWS.len(), "a crate of ARROWS is gone");
}

#[test]
fn hot_crates_are_no_std_and_depend_on_nothing_that_allocates() {
    for package in metadata().packages.iter().filter(|package| HOT.contains(&package.name.as_str())) {
        let name = &package.name;
        for to in dependencies(package) {
            assert!(to.starts_with("heaptally-") || HOT_FOREIGN.contains(&to), "{name} -> {to}");
        }
        for dependency in package.dependencies.iter().filter(|one| HOT_FOREIGN.contains(&one.name.as_str())) {
            assert!(!dependency.uses_default_features, "{name} takes {} with std", dependency.name);
        }
        let library = package.manifest_path.with_file_name("src").join("lib.rs");
        let text = fs::read_to_string(&library).unwrap();
        let no_std = ["#![no_std]", "#![cfg_attr(not(test), no_std)]"];
        assert!(text.lines().any(|line| no_std.contains(&line.trim())), "{name} is not no_std");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for pair in lines.windows(2) {
            let names_one =
                ["extern crate std", "extern crate alloc"].iter().any(|one| pair[1].starts_with(one));
            assert!(!names_one || pair[0] == "#[cfg(test)]", "{name}: {}", pair[1]);
        }
    }
}

#[test]
fn only_the_command_uses_clap_and_anyhow() {
    let metadata = metadata();
    for package in metadata.packages.iter().filter(|package| package.name.as_str() != "heaptally-cli") {
        let found = package.dependencies.iter().find(|one| ONLY_IN_COMMAND.contains(&one.name.as_str()));
        assert!(found.is_none(), "{} depends on {}", package.name, found.unwrap().name);
    }
}

#[test]
fn versions_and_lints_stand_in_the_root_manifest_only() {
    for package in metadata().packages {
        let text = fs::read_to_string(&package.manifest_path).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}: own lints", package.manifest_path);
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            } else if section.contains("dependencies") && !line.is_empty() && !line.starts_with('#') {
                assert!(
                    line.contains("workspace = true"),
                    "{}: {line}: state the version in the root's [workspace.dependencies]",
                    package.manifest_path
                );
            }
        }
        for key in ["version", "edition", "rust-version", "license"] {
            let stated = format!("\n{key}.workspace = true");
            assert!(text.contains(&stated), "{}: {key} is its own", package.manifest_path);
        }
    }
}

#[test]
fn every_stated_version_is_used() {
    let root_manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = root_manifest.split_once("[workspace.dependencies]\n").unwrap();
    let stated = rest.lines().take_while(|line| !line.starts_with('['));
    let names: Vec<_> = stated.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let metadata = metadata();
    let used = metadata.packages.iter().flat_map(|package| &package.dependencies);
    // One that stands there in several versions has other names there.
    let used: Vec<_> =
        used.map(|dependency| dependency.rename.as_deref().unwrap_or(&dependency.name)).collect();
    let unused: Vec<_> =
        names.iter().filter(|name| !used.contains(name) && **name != "heaptally-preload").collect();
    assert!(names.len() > 10 && unused.is_empty(), "unused in [workspace.dependencies]: {unused:?}");
}
