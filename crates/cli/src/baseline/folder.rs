//! Where baselines are kept.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::exit::Failure;
use crate::message::quote;

/// The folder where nothing else is known.
const OF_ITS_OWN: &str = ".heaptally";

/// Where baselines are kept: where the configuration says, else beside what is built of the project that holds the
/// working folder: `target/heaptally` of Cargo, `.build/heaptally` of Swift's package manager, else `.heaptally` in the
/// repository, or here.
pub(crate) fn folder(settings: &Settings) -> PathBuf {
    if let Some(folder) = &settings.baseline_folder {
        return folder.clone();
    }
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let target = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    beside_build(&here, target.as_deref())
}

fn beside_build(here: &Path, target: Option<&Path>) -> PathBuf {
    let of_cargo = |root: &Path| match target {
        Some(target) => here.join(target).join("heaptally"),
        None => root.join("target/heaptally"),
    };
    let mut package = None;
    let mut repository = None;
    for folder in here.ancestors() {
        // Beside its lock file a workspace has its build folder.
        if folder.join("Cargo.lock").is_file() {
            return of_cargo(folder);
        }
        if folder.join("Package.swift").is_file() {
            return folder.join(".build/heaptally");
        }
        if package.is_none() && folder.join("Cargo.toml").is_file() {
            package = Some(folder);
        }
        if folder.join(".git").exists() {
            repository = Some(folder);
            break;
        }
    }
    package.map_or_else(|| repository.unwrap_or(here).join(OF_ITS_OWN), of_cargo)
}

/// Makes the folder. One of our own is no part of a repository.
pub(super) fn make(folder: &Path) -> Result<(), Failure> {
    let made = || -> io::Result<()> {
        let is_new = !folder.exists();
        fs::create_dir_all(folder)?;
        if is_new && folder.file_name().is_some_and(|name| name == OF_ITS_OWN) {
            fs::write(folder.join(".gitignore"), "*\n")?;
        }
        Ok(())
    };
    made().map_err(|error| {
        Failure::recorder(format!(
            "cannot make the folder of baselines {}: {error}\nname another as `baseline-folder` in the configuration",
            quote(folder)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_beside_what_is_built() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let file = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        for name in [
            "rust/.git/x",
            "rust/Cargo.lock",
            "rust/Cargo.toml",
            "rust/member/Cargo.toml",
            "rust/member/src/x",
        ] {
            file(name);
        }
        for name in
            ["swift/Package.swift", "swift/Sources/x", "c/.git/x", "c/src/x", "new/Cargo.toml", "bare/x"]
        {
            file(name);
        }
        for (here, folder) in [
            ("rust/member/src", "rust/target/heaptally"),
            ("swift/Sources", "swift/.build/heaptally"),
            ("c/src", "c/.heaptally"),
            ("new", "new/target/heaptally"),
        ] {
            assert_eq!(beside_build(&root.join(here), None), root.join(folder), "{here}");
        }
        let here = root.join("rust/member");
        assert_eq!(beside_build(&here, Some(Path::new("/t"))), Path::new("/t/heaptally"));
        assert_eq!(beside_build(&here, Some(Path::new("out"))), here.join("out/heaptally"));
        assert_eq!(beside_build(&root.join("c/src"), Some(Path::new("/t"))), root.join("c/.heaptally"));
    }

    #[test]
    fn our_own_folder_is_no_part_of_a_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/.heaptally");
        make(&folder).unwrap();
        assert_eq!(fs::read(folder.join(".gitignore")).unwrap(), b"*\n");
        make(&scratch.path().join("b/baselines")).unwrap();
        assert!(!scratch.path().join("b/baselines/.gitignore").exists());
    }
}
