//! What is planted: crates of crates.io and C++ libraries of Debian 12 that consist of headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::build::write;
use super::source::Language;
use crate::process::{cargo, succeed};

/// A program that nobody here wrote.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Of the crate, or the package; with a file of that name in `xtask/planted`.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) language: Language,
    /// How a manifest asks for it, behind its path; of C++, options of the compiler.
    pub(crate) features: &'static str,
    /// The folder with its sources, below its own.
    pub(crate) sources: &'static str,
    /// Whether it was looked at while stacks' pairing was worked on: then it proves nothing, and is run by its name only.
    pub(crate) is_known: bool,
}

const fn krate(name: &'static str, version: &'static str, features: &'static str) -> Subject {
    Subject { name, version, language: Language::Rust, features, sources: "src", is_known: false }
}

const fn package(
    name: &'static str,
    version: &'static str,
    features: &'static str,
    sources: &'static str,
) -> Subject {
    Subject { name, version, language: Language::Cpp, features, sources, is_known: false }
}

/// The same, looked at while stacks' pairing was worked on.
const fn known(subject: Subject) -> Subject {
    Subject { is_known: true, ..subject }
}

/// Parsers, a text engine, maps, trees and graphs, an async executor; in C++ a formatter, a parser of a language and one of
/// command lines. Then those that are known.
pub(crate) const SUBJECTS: [Subject; 15] = [
    krate("pulldown-cmark", "0.13.6", ", default-features = false, features = [\"html\"]"),
    krate("async-executor", "1.14.1", ""),
    package("libfmt-dev", "9.1.0+ds1-2", "-DFMT_HEADER_ONLY=1 -DFMT_CONSTEVAL=", "fmt"),
    krate("roxmltree", "0.21.2", ""),
    krate("radix_trie", "0.3.0", ""),
    krate("petgraph", "0.8.3", ""),
    package("libtomlplusplus-dev", "3.3.0+ds-1", "-DTOML_HEADER_ONLY=1", "toml++"),
    package("libcli11-dev", "2.1.2+ds-1", "", "CLI"),
    known(krate("regex-lite", "0.1.9", "")),
    known(krate("json", "0.12.4", "")),
    known(krate("fst", "0.4.7", "")),
    known(package("nlohmann-json3-dev", "3.11.2-2", "", "nlohmann")),
    known(package("rapidjson-dev", "1.1.0+dfsg2-7.1", "-DRAPIDJSON_HAS_STDSTRING=1", "rapidjson")),
    known(krate("serde_json", "1.0.154", "")),
    known(krate("indexmap", "2.14.2", "")),
];

impl Subject {
    /// The driver's file in `xtask/planted`.
    pub(crate) fn driver_file(&self) -> String {
        match self.language {
            Language::Rust => format!("{}.rs", self.name),
            Language::Cpp => format!("{}.cpp", self.name),
        }
    }

    /// The source as it was published; downloaded where it is not there yet.
    pub(crate) fn fetch(&self, folder: &Path) -> Result<PathBuf, String> {
        match self.language {
            Language::Rust => self.fetch_crate(&folder.join("fetch")),
            Language::Cpp => self.fetch_package(&folder.join("fetch")),
        }
    }

    fn fetch_crate(&self, folder: &Path) -> Result<PathBuf, String> {
        let manifest = folder.join("Cargo.toml");
        let text = format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             {} = {{ version = \"={}\"{} }}\n",
            self.name, self.version, self.features
        );
        write(&manifest, &text)?;
        write(&folder.join("src/lib.rs"), "")?;
        let words = ["metadata", "--format-version", "1", "--manifest-path"];
        let text = succeed(Command::new(cargo()).args(words).arg(&manifest))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
        let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
        let found = packages.iter().find(|package| package["name"] == self.name);
        let path = found.and_then(|package| package["manifest_path"].as_str()).map(Path::new);
        path.and_then(Path::parent)
            .map(Path::to_owned)
            .ok_or_else(|| format!("cargo has no package {}", self.name))
    }

    fn fetch_package(&self, folder: &Path) -> Result<PathBuf, String> {
        let include = folder.join("unpacked/usr/include");
        if !include.join(self.sources).exists() {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let what = format!("{}={}", self.name, self.version);
            succeed(Command::new("apt-get").current_dir(folder).args(["download", "-q", &what]))?;
            let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let archive = files
                .flatten()
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|end| end == "deb"));
            let archive = archive.ok_or_else(|| format!("apt-get downloaded no {what}"))?;
            succeed(Command::new("dpkg-deb").arg("-x").arg(archive).arg(folder.join("unpacked")))?;
        }
        Ok(include)
    }
}
