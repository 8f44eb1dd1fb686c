//! Source files of two profiles: which path of one is which path of the other.
//!
//! A checkout lies elsewhere, a version or a hash in a path is another one. So paths are compared below the folder that
//! all of a profile's own sources have in common, without versions; where one profile saw less of a tree, its shorter
//! path is the end of the other's. `a/init.c` and `b/init.c` are two files.

use std::collections::BTreeMap;

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

impl Files {
    pub(super) fn new(profiles: [&Profile; 2]) -> Self {
        let paths = profiles.map(|profile| {
            let mut paths: Vec<&str> =
                profile.functions.iter().map(|function| function.file.as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            paths.retain(|path| !path.is_empty());
            paths
        });
        let short = [0, 1].map(|side| shorten(&paths[side]));
        // By file name, since only files of one name can be the same.
        let mut by_name: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
        for (side, short) in short.iter().enumerate() {
            for path in short.values() {
                let name = path.rsplit('/').next().unwrap_or(path);
                let of_side = &mut by_name.entry(name).or_default()[side];
                if !of_side.contains(&path.as_str()) {
                    of_side.push(path);
                }
            }
        }
        let mut ids = [BTreeMap::new(), BTreeMap::new()];
        let mut next = 1;
        for of_name in by_name.values() {
            for pair in pair(of_name) {
                for (side, path) in pair.into_iter().enumerate() {
                    if let Some(path) = path {
                        ids[side].insert(path.to_owned(), FileId(next));
                    }
                }
                next += 1;
            }
        }
        let by_path = [0, 1].map(|side| {
            let id = |short: &String| ids[side].get(short).copied().unwrap_or_default();
            short[side].iter().map(|(path, short)| ((*path).to_owned(), id(short))).collect()
        });
        Self { ids: by_path }
    }

    pub(super) fn id(&self, side: usize, path: &str) -> FileId {
        self.ids[side].get(path).copied().unwrap_or_default()
    }
}

/// The same files on both sides: equal paths first, then those of which one is the end of the other, longest first.
fn pair<'a>(sides: &[Vec<&'a str>; 2]) -> Vec<[Option<&'a str>; 2]> {
    let mut candidates: Vec<(usize, &str, &str)> = Vec::new();
    for &base in &sides[0] {
        for &change in &sides[1] {
            if is_end(base, change) || is_end(change, base) {
                candidates.push((base.len().min(change.len()), base, change));
            }
        }
    }
    candidates.sort_by(|a, b| (b.0, b.1 == b.2, a.1, a.2).cmp(&(a.0, a.1 == a.2, b.1, b.2)));
    let mut open = sides.clone();
    let mut pairs: Vec<[Option<&str>; 2]> = Vec::new();
    for (_, base, change) in candidates {
        if open[0].contains(&base) && open[1].contains(&change) {
            open[0].retain(|path| *path != base);
            open[1].retain(|path| *path != change);
            pairs.push([Some(base), Some(change)]);
        }
    }
    let [base, change] = open;
    pairs.extend(base.into_iter().map(|path| [Some(path), None]));
    pairs.extend(change.into_iter().map(|path| [None, Some(path)]));
    // Of a pair either path, whichever is first: so the order is the same when the sides are exchanged.
    let text = |pair: &[Option<&'a str>; 2]| pair.iter().flatten().min().copied();
    pairs.sort_by(|a, b| text(a).cmp(&text(b)));
    pairs
}

fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Each path below the folder that the profile's own sources share, without versions.
fn shorten<'p>(paths: &[&'p str]) -> BTreeMap<&'p str, String> {
    let own = || paths.iter().copied().filter(|path| library(path).is_none() && path.starts_with('/'));
    let folder = |path: &'p str| path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let common = own().map(folder).reduce(common_folder).unwrap_or_default();
    let short = |path: &'p str| {
        let inner = match library(path) {
            Some(inner) => inner,
            None => path.strip_prefix(common).map_or(path, |inner| inner.trim_start_matches('/')),
        };
        inner.split('/').map(without_version).collect::<Vec<_>>().join("/")
    };
    paths.iter().map(|path| (*path, short(path))).collect()
}

/// The folders at the front that two have in common.
fn common_folder<'a>(a: &'a str, b: &str) -> &'a str {
    let mut end = 0;
    for (at, part) in a.split('/').zip(b.split('/')).enumerate() {
        if part.0 != part.1 {
            break;
        }
        end += part.0.len() + usize::from(at > 0);
    }
    a.get(..end).unwrap_or_default()
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
    behind("/lib/rustlib/src/rust/")
        .or_else(|| behind("/.cargo/git/checkouts/"))
        .or_else(|| path.strip_prefix("/usr/include/"))
        .or_else(|| path.strip_prefix("/usr/lib/"))
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
