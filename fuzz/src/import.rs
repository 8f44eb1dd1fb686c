//! Files of other tools: their importers, and files to begin with.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use heaptally_profile::import::{Imported, Importer, importers};
use heaptally_profile::merge::{make_comparable, sum};

use crate::profile;

/// The importer of this name.
///
/// # Panics
/// When there is none.
pub fn importer(name: &str) -> Importer {
    let found = importers().iter().find(|importer| importer.name == name);
    *found.unwrap_or_else(|| panic!("no importer is called {name:?}"))
}

/// Reads unpacked content and checks what comes of it.
pub fn run(importer: &Importer, content: &[u8]) {
    let _told = (importer.sniff)(content);
    if let Ok(imported) = (importer.read)(content) {
        check(imported, content.len());
    }
}

/// Checks a profile that was read.
///
/// # Panics
/// When something does not hold.
pub fn check(imported: Imported, choice: usize) {
    let mut profile = imported.profile;
    profile::check(&profile);
    profile::report(&profile, &profile::options(choice as u64));
    sum(vec![profile.clone(), profile.clone()]).expect("a profile can be added to itself");
    let mut other = profile.clone();
    make_comparable(&mut profile, &mut other).expect("a profile can be compared with itself");
}

/// The files of the tests that fit, unpacked, so that what is changed in them is seen.
pub fn seeds(importer: &Importer) -> Vec<Vec<u8>> {
    files().into_iter().map(|file| unpacked(&file)).filter(|content| (importer.sniff)(content)).collect()
}

/// The files of the tests, as they are.
pub fn files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/profile/tests/fixture");
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| fs::read(path).ok()).collect()
}

fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    match GzDecoder::new(file).read_to_end(&mut content) {
        Ok(_) => content,
        Err(_) => file.to_vec(),
    }
}
