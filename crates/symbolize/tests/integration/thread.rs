//! Several threads: the same result, and how far they are.

use std::fs;
use std::num::NonZeroUsize;

use heaptally_profile::model::{FrameKind, Image, Module, Profile};
use heaptally_symbolize::{Options, Symbolizer};

use crate::build::{Workshop, module_of, profile_of, text_addresses};

const RUST: &str = "use std::collections::BTreeMap;\n\
    fn main() { let mut map = BTreeMap::new(); for (at, word) in std::env::args().enumerate() { \
    map.entry(word.to_uppercase()).or_insert_with(Vec::new).push(format!(\"{at:?}\")); } println!(\"{map:?}\"); }\n";

/// Programs with and without debug information, some addresses in all of their code, and one that is gone.
fn profile(workshop: &Workshop) -> Profile {
    workshop.write("program.rs", RUST);
    workshop.sh("rustc -O -g -o program program.rs");
    fs::copy(workshop.path("program"), workshop.path("stripped")).unwrap();
    workshop.sh("strip -s stripped");
    let mut profile = Profile::default();
    for name in ["stripped", "program", "stripped", "program"] {
        let path = workshop.path(name);
        let mut part = profile_of(module_of(&path), FrameKind::Interrupted, &text_addresses(&path, 29));
        for location in &mut part.locations {
            location.module = Some(profile.modules.len());
        }
        profile.modules.append(&mut part.modules);
        profile.locations.append(&mut part.locations);
    }
    profile.modules.push(Module { path: "/no/such/file".to_owned(), ..Module::default() });
    profile.images.push(Image { path: profile.modules[1].path.clone(), ..Image::default() });
    profile
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let Some(workshop) = Workshop::with(&["rustc", "strip"]) else { return };
    let profile = profile(&workshop);
    assert!(profile.locations.len() > 20_000, "{}: large enough to be split", profile.locations.len());
    let symbolized = |threads| {
        let mut profile = profile.clone();
        let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
        Symbolizer::new(options).symbolize(&mut profile);
        profile
    };
    let alone = symbolized(1);
    assert!(alone.locations.iter().any(|location| location.lines.len() > 2), "something is inlined");
    for threads in [2, 3, 7] {
        assert!(symbolized(threads) == alone, "{threads} threads");
    }
}

#[test]
fn who_watches_sees_all_done_at_the_end() {
    let Some(workshop) = Workshop::with(&["rustc", "strip"]) else { return };
    let mut profile = profile(&workshop);
    let mut told = Vec::new();
    Symbolizer::new(Options::default()).symbolize_observed(&mut profile, &mut |progress| {
        assert_eq!(progress.modules_total, 5);
        assert!(
            progress.module.ends_with("program")
                || progress.module.ends_with("stripped")
                || progress.module.ends_with("file")
        );
        told.push((progress.modules_done, progress.addresses_done, progress.addresses_total));
    });
    assert!(told.is_sorted(), "{told:?}");
    let total = profile.locations.len();
    assert_eq!((told[0], told.last()), ((0, 0, total), Some(&(5, total, total))));
}
