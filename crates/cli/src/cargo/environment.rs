//! The folder and the environment that Cargo gives a program that it starts, as its book says under "Environment
//! variables Cargo sets for crates" and "Dynamic library paths".

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use cargo_metadata::{BuildScript, Package};
use cargo_platform::{Cfg, CfgExpr};

use crate::exit::{Failure, UNREADABLE};

/// What the compiler says of itself.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) host: String,
    sysroot: PathBuf,
    settings: Vec<Cfg>,
}

impl Compiler {
    /// Asks the compiler that Cargo uses.
    pub(crate) fn ask() -> Result<Self, Failure> {
        let rustc = env::var_os("RUSTC").filter(|name| !name.is_empty()).unwrap_or_else(|| "rustc".into());
        let ask = |words: &[&str]| -> Result<String, Failure> {
            let output = Command::new(&rustc).args(words).output().map_err(|error| {
                Failure::new(
                    UNREADABLE,
                    format!("cannot run rustc: {error}\nput it into PATH, or name it by the variable RUSTC"),
                )
            })?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let about = ask(&["-vV"])?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        let printed = ask(&["--print", "sysroot", "--print", "cfg"])?;
        let mut lines = printed.lines();
        let sysroot = PathBuf::from(lines.next().unwrap_or_default());
        Ok(Self { host, sysroot, settings: lines.filter_map(|line| Cfg::from_str(line).ok()).collect() })
    }

    /// Whether an expression as in `cfg(…)` holds.
    pub(crate) fn is_set(&self, expression: &str) -> bool {
        CfgExpr::from_str(expression).is_ok_and(|expression| expression.matches(&self.settings))
    }
}

/// Where and with what a program runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The working folder; `None`: this command's.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The program that starts it, with arguments.
    pub(crate) runner: Vec<String>,
}

impl Place {
    /// That of a package's program.
    pub(crate) fn of(
        package: &Package,
        script: Option<&BuildScript>,
        program: &Path,
        compiler: &Compiler,
        runner: &[String],
    ) -> Self {
        let folder = package.manifest_path.parent().map(|folder| folder.as_std_path().to_owned());
        let mut place = Self { folder, variables: Vec::new(), runner: runner.to_vec() };
        place.describe(package);
        if let Some(script) = script {
            place.set("OUT_DIR", script.out_dir.as_std_path());
            for (name, value) in &script.env {
                place.set(name, value);
            }
        }
        place.find_libraries(script, program, compiler);
        place
    }

    fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.variables.push((name.into(), value.as_ref().to_owned()));
    }

    /// Sets a variable that Cargo does not, where this command's environment has none.
    pub(crate) fn set_unless_given(&mut self, name: &str, value: impl AsRef<OsStr>) {
        if env::var_os(name).is_none() {
            self.set(name, value);
        }
    }

    fn describe(&mut self, package: &Package) {
        if let Some(cargo) = env::var_os("CARGO") {
            self.set("CARGO", cargo);
        }
        if let Some(folder) = self.folder.clone() {
            self.set("CARGO_MANIFEST_DIR", folder);
        }
        self.set("CARGO_MANIFEST_PATH", package.manifest_path.as_std_path());
        let version = &package.version;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let path = |path: Option<&cargo_metadata::camino::Utf8PathBuf>| {
            path.map(ToString::to_string).unwrap_or_default()
        };
        for (name, value) in [
            ("NAME", package.name.to_string()),
            ("VERSION", version.to_string()),
            ("VERSION_MAJOR", version.major.to_string()),
            ("VERSION_MINOR", version.minor.to_string()),
            ("VERSION_PATCH", version.patch.to_string()),
            ("VERSION_PRE", version.pre.to_string()),
            ("AUTHORS", package.authors.join(":")),
            ("DESCRIPTION", text(&package.description)),
            ("HOMEPAGE", text(&package.homepage)),
            ("REPOSITORY", text(&package.repository)),
            ("LICENSE", text(&package.license)),
            ("LICENSE_FILE", path(package.license_file.as_ref())),
            ("README", path(package.readme.as_ref())),
            ("RUST_VERSION", package.rust_version.as_ref().map(ToString::to_string).unwrap_or_default()),
        ] {
            self.set(&format!("CARGO_PKG_{name}"), value);
        }
    }

    /// Libraries of the build, and those of the compiler, which programs with `-C prefer-dynamic` need.
    fn find_libraries(&mut self, script: Option<&BuildScript>, program: &Path, compiler: &Compiler) {
        const PATHS: &str = "LD_LIBRARY_PATH";
        let mut folders: Vec<PathBuf> = Vec::new();
        for path in script.iter().flat_map(|script| &script.linked_paths) {
            let path = path.as_str();
            folders.push(path.split_once('=').map_or(path, |(_, path)| path).into());
        }
        // The folder `deps` and the one that holds it.
        let own = program.parent().into_iter();
        let own = own.flat_map(|folder| match folder.file_name().is_some_and(|name| name == "deps") {
            true => vec![Some(folder), folder.parent()],
            false => vec![None, Some(folder)],
        });
        folders.extend(own.flatten().map(Path::to_owned));
        folders.push(compiler.sysroot.join("lib"));
        let inherited = env::var_os(PATHS).unwrap_or_default();
        folders.extend(env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty()));
        if let Ok(paths) = env::join_paths(folders) {
            self.set(PATHS, paths);
        }
    }
}
