//! The licences of what is linked into the command, in one text.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{TARGET, succeed};

/// How files begin that hold licences and notices.
const BEGINNINGS: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
const COMMAND: &str = "heaptally-cli";

/// Names each crate that is linked in with its licence, and shows each text once.
pub(super) fn third_party(root: &Path) -> Result<String, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["metadata", "--format-version=1", "--locked", "--features"]);
    cargo.args([&format!("{COMMAND}/swift"), "--filter-platform", TARGET]);
    let metadata: Value = serde_json::from_slice(&succeed(&mut cargo)?)
        .map_err(|error| format!("cargo's metadata cannot be read: {error}"))?;
    let ids = linked(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut names = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages.filter(|package| package["id"].as_str().is_some_and(|id| ids.contains(id))) {
        let of = |key: &str| package[key].as_str().unwrap_or_default();
        // Ours have no source.
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", of("name"), of("version"));
        names.push_str(&format!("{name}: {} ({})\n", of("license"), of("repository")));
        let folder = Path::new(of("manifest_path")).parent().unwrap_or(root);
        let entries =
            fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let file = entry.file_name().to_string_lossy().to_lowercase();
            if BEGINNINGS.iter().any(|beginning| file.starts_with(beginning))
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                texts.entry(text.trim().to_owned()).or_default().push(name.clone());
            }
        }
    }
    if texts.is_empty() {
        return Err("no licence was found of what is linked in".to_owned());
    }
    let mut all = format!(
        "The program heaptally holds these works of others, beside Rust's standard library (MIT or Apache-2.0), LLVM's\n\
         libunwind, libc++ and compiler-rt (Apache-2.0 with LLVM exception), and start-up code of glibc.\n\n{names}"
    );
    for (text, mut names) in texts {
        names.dedup();
        all.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")));
    }
    Ok(all)
}

/// The packages that end up in the command: not those that only build it or test it.
fn linked(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let is_macro = |package: &Value| {
        let targets = package["targets"].as_array().into_iter().flatten();
        let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
        kinds.any(|kind| kind == "proc-macro")
    };
    let (mut macros, mut queue) = (BTreeSet::new(), Vec::new());
    for package in packages {
        let Some(id) = package["id"].as_str() else { continue };
        if is_macro(package) {
            macros.insert(id);
        }
        if package["name"] == COMMAND {
            queue.push(id);
        }
    }
    if queue.is_empty() {
        return Err(format!("cargo's metadata has no package {COMMAND}"));
    }
    let mut found = BTreeSet::new();
    while let Some(id) = queue.pop() {
        if macros.contains(id) || !found.insert(id.to_owned()) {
            continue;
        }
        for inner in nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten() {
            let mut kinds = inner["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null())
                && let Some(id) = inner["pkg"].as_str()
            {
                queue.push(id);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_in_is_named() {
        let text = third_party(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        for name in ["clap 4.", "gimli 0.", "serde_json 1."] {
            assert!(text.contains(&format!("\n{name}")), "{name}");
        }
        for name in ["\nproptest ", "\ncc ", "\nserde_derive ", "\ninsta "] {
            assert!(!text.contains(name), "{name} only builds or tests");
        }
        assert!(text.contains("Permission is hereby granted"));
    }
}
