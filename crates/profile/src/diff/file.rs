//! Source files of two profiles: which path of one is which path of the other.
//!
//! A checkout lies elsewhere, a version or a hash in a path is another one. So two paths can be one file when their ends
//! are equal, the file's name at least; what stands before says which folder of the base is which of the change:
//!
//! ```text
//! /home/a/p/src/lib.rs    /tmp/b/src/lib.rs     /home/a/p is /tmp/b
//! /home/a/p/a/init.c      /tmp/b/b/init.c       /home/a/p/a would be /tmp/b/b: that contradicts, these are two files
//! ```
//!
//! The folders that most files speak for are taken first, and of equal ones the outer ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::Profile;

/// A file of both profiles. Its order is that of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u32);

impl FileId {
    /// No file.
    pub(super) const UNKNOWN: Self = Self(0);
}

/// The files of two profiles.
#[derive(Debug)]
pub(super) struct Files {
    /// By side and path.
    ids: [BTreeMap<String, FileId>; 2],
}

/// A folder of either side.
type Folders = [String; 2];

/// A file of either side that can be one: the folders, how many parts of the paths are equal, the paths.
struct Candidate<'a> {
    folders: Folders,
    equal_parts: usize,
    paths: [&'a str; 2],
}

impl Files {
    pub(super) fn new(profiles: [&Profile; 2]) -> Self {
        // By side: the paths as they stand in the profile, and as they are compared.
        let paths = profiles.map(|profile| -> BTreeMap<&str, String> {
            let files = profile.functions.iter().map(|function| function.file.as_str());
            files.filter(|path| !path.is_empty()).map(|path| (path, comparable(path))).collect()
        });
        let compared =
            paths.each_ref().map(|paths| paths.values().map(String::as_str).collect::<BTreeSet<_>>());
        let mut ids: [BTreeMap<&str, FileId>; 2] = [BTreeMap::new(), BTreeMap::new()];
        for (pair, id) in pairs(&compared).into_iter().zip(1..) {
            for (ids, path) in ids.iter_mut().zip(pair) {
                if let Some(path) = path {
                    ids.insert(path, FileId(id));
                }
            }
        }
        let by_path = [0, 1].map(|side: usize| {
            let id = |path: &String| ids[side].get(path.as_str()).copied().unwrap_or_default();
            paths[side].iter().map(|(path, compared)| ((*path).to_owned(), id(compared))).collect()
        });
        Self { ids: by_path }
    }

    pub(super) fn id(&self, side: usize, path: &str) -> FileId {
        self.ids[side].get(path).copied().unwrap_or_default()
    }
}

/// Each file once: of both sides, or of one. In the order of the paths, whichever side they are of.
fn pairs<'a>(sides: &[BTreeSet<&'a str>; 2]) -> Vec<[Option<&'a str>; 2]> {
    let mut candidates = candidates(sides);
    let folders = agreed(&candidates);
    candidates.retain(|candidate| folders.contains(&candidate.folders));
    candidates.sort_by(|a, b| (b.equal_parts, a.paths).cmp(&(a.equal_parts, b.paths)));
    let mut open = sides.clone();
    let mut pairs: Vec<[Option<&str>; 2]> = Vec::new();
    for Candidate { paths: [base, change], .. } in candidates {
        if open[0].contains(base) && open[1].contains(change) {
            open[0].remove(base);
            open[1].remove(change);
            pairs.push([Some(base), Some(change)]);
        }
    }
    let [base, change] = open;
    pairs.extend(base.into_iter().map(|path| [Some(path), None]));
    pairs.extend(change.into_iter().map(|path| [None, Some(path)]));
    let text = |pair: &[Option<&'a str>; 2]| pair.iter().flatten().min().copied();
    pairs.sort_by(|a, b| text(a).cmp(&text(b)));
    pairs
}

/// Files of one name, those whose paths have most in common.
fn candidates<'a>(sides: &[BTreeSet<&'a str>; 2]) -> Vec<Candidate<'a>> {
    let name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let mut by_name: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
    for (side, paths) in sides.iter().enumerate() {
        for path in paths {
            by_name.entry(name(path)).or_default()[side].push(path);
        }
    }
    let mut candidates = Vec::new();
    for [bases, changes] in by_name.into_values() {
        let equal = |a: &str, b: &str| a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count();
        let most_of_base = |base: &str| changes.iter().map(|change| equal(base, change)).max().unwrap_or(0);
        let most_of_change = |change: &str| bases.iter().map(|base| equal(base, change)).max().unwrap_or(0);
        let of_changes: Vec<usize> = changes.iter().map(|change| most_of_change(change)).collect();
        for base in &bases {
            let most = most_of_base(base);
            for (change, most_of_change) in changes.iter().zip(&of_changes) {
                let equal_parts = equal(base, change);
                if equal_parts == most || equal_parts == *most_of_change {
                    candidates.push(Candidate {
                        folders: [before(base, equal_parts), before(change, equal_parts)],
                        equal_parts,
                        paths: [base, change],
                    });
                }
            }
        }
    }
    candidates
}

/// A path without so many parts at its end. Where nothing is left, the two are equal: then its folder.
fn before(path: &str, parts: usize) -> String {
    let all = path.split('/').count();
    let kept = if parts < all { all - parts } else { all - 1 };
    path.split('/').take(kept).collect::<Vec<_>>().join("/")
}

/// The folders that are one, without contradiction.
fn agreed(candidates: &[Candidate<'_>]) -> BTreeSet<Folders> {
    let mut votes: BTreeMap<&Folders, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for candidate in candidates {
        let votes = votes.entry(&candidate.folders).or_default();
        for (votes, path) in votes.iter_mut().zip(candidate.paths) {
            votes.insert(path);
        }
    }
    let mut proposals: Vec<(&Folders, usize)> =
        votes.into_iter().map(|(folders, [a, b])| (folders, a.len() + b.len())).collect();
    proposals.sort_by_key(|(folders, votes)| {
        let [a, b] = folders.each_ref().map(String::as_str);
        (Reverse(*votes), a.len() + b.len(), a.min(b), a.max(b), a)
    });
    let mut agreed: Vec<&Folders> = Vec::new();
    for (folders, _) in proposals {
        if agreed.iter().all(|other| is_consistent(folders, other)) {
            agreed.push(folders);
        }
    }
    agreed.into_iter().cloned().collect()
}

/// Whether two statements of what is what can both be true: below a folder of the one, the other side's is the same way
/// below.
fn is_consistent(a: &Folders, b: &Folders) -> bool {
    let inside = |folder: &str, outer: &str| -> Option<String> {
        let rest = folder.strip_prefix(outer)?;
        (rest.is_empty() || rest.starts_with('/') || outer.is_empty()).then(|| rest.to_owned())
    };
    let way = |inner: &Folders, outer: &Folders| {
        let ways = [inside(&inner[0], &outer[0]), inside(&inner[1], &outer[1])];
        match ways {
            [None, None] => true,
            [Some(base), Some(change)] => base == change,
            // Below it on one side only: a contradiction, unless the other folder is the root of relative paths.
            _ => outer.iter().any(String::is_empty),
        }
    };
    way(a, b) && way(b, a)
}

/// A path without what other machines have otherwise.
fn comparable(path: &str) -> String {
    let inner = library(path).unwrap_or(path);
    inner.split('/').map(without_version).collect::<Vec<_>>().join("/")
}

/// Of a source that is not the user's own, the part of the path that is the same on other machines.
fn library(path: &str) -> Option<&str> {
    let behind = |mark: &str| path.split_once(mark).map(|(_, inner)| inner);
    let without_first = |inner: &'_ str| inner.split_once('/').map(|(first, _)| first.len() + 1);
    if let Some(inner) = path.strip_prefix("/rustc/") {
        return without_first(inner).and_then(|at| inner.get(at..));
    }
    if let Some(inner) = behind("/.cargo/registry/src/") {
        return without_first(inner).and_then(|at| inner.get(at..));
    }
    behind("/lib/rustlib/src/rust/").or_else(|| behind("/.cargo/git/checkouts/"))
}

/// A folder's name without version and hash: `serde-1.0.219`, `bindings-0123456789abcdef`.
fn without_version(part: &str) -> &str {
    let Some((name, version)) = part.rsplit_once('-') else { return part };
    let is_version = version.starts_with(|first: char| first.is_ascii_digit()) && version.contains('.');
    let is_hash = version.len() == 16 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !name.is_empty() && (is_version || is_hash) && !part.ends_with(".rs") { name } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Function;

    fn files(sides: [&[&str]; 2]) -> Files {
        let profile = |paths: &[&str]| Profile {
            functions: paths
                .iter()
                .map(|path| Function { file: (*path).to_owned(), ..Function::default() })
                .collect(),
            ..Profile::default()
        };
        Files::new([&profile(sides[0]), &profile(sides[1])])
    }

    #[track_caller]
    fn same(sides: [&[&str]; 2], base: &str, change: &str, expected: bool) {
        let files = files(sides);
        assert_eq!(files.id(0, base) == files.id(1, change), expected, "{base} {change}");
        assert_ne!(files.id(0, base), FileId::UNKNOWN);
    }

    #[test]
    fn a_checkout_lies_elsewhere() {
        let base: &[&str] = &["/home/a/p/src/lib.rs", "/home/a/p/dep/src/lib.rs", "/home/a/p/src/x.rs"];
        let change: &[&str] = &["/tmp/b/src/lib.rs", "/tmp/b/dep/src/lib.rs", "/tmp/b/src/x.rs"];
        for (base_path, change_path) in base.iter().zip(change) {
            same([base, change], base_path, change_path, true);
        }
        same([base, change], base[0], change[1], false);
        same([base, &["/tmp/b/src/x.rs"]], base[2], "/tmp/b/src/x.rs", true);
    }

    #[test]
    fn one_name_in_two_folders_is_two_files() {
        let base: &[&str] = &["/p/a/init.c", "/p/main.c"];
        let change: &[&str] = &["/q/b/init.c", "/q/main.c"];
        same([base, change], base[0], change[0], false);
        same([base, change], base[1], change[1], true);
    }

    #[test]
    fn libraries_have_versions() {
        let base: &[&str] = &[
            "/home/a/.cargo/registry/src/index-1/serde-1.0.1/src/de.rs",
            "/rustc/0123/library/alloc/src/vec/mod.rs",
            "/p/target/build/x-0123456789abcdef/out/b.rs",
            "/p/src/main.rs",
        ];
        let change: &[&str] = &[
            "/root/.cargo/registry/src/index-2/serde-1.1.0/src/de.rs",
            "/rustc/4567/library/alloc/src/vec/mod.rs",
            "/p/target/build/x-fedcba9876543210/out/b.rs",
            "/p/src/main.rs",
        ];
        for (base_path, change_path) in base.iter().zip(change) {
            same([base, change], base_path, change_path, true);
        }
    }

    #[test]
    fn equal_paths_are_one_file() {
        same([&["a.c", "b/a.c"], &["a.c"]], "a.c", "a.c", true);
        same([&["a.c", "b/a.c"], &["a.c"]], "b/a.c", "a.c", false);
    }
}
