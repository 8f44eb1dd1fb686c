//! Paths of sources as a person wants to see them, and as what shows them beside the sources finds them.

use std::borrow::Cow;

/// A path without what says nothing: the user's own folder, and where tool chains and registries keep their sources.
///
/// ```text
/// /home/me/parser/src/lib.rs                                      src/lib.rs    (with the project /home/me/parser)
/// /home/me/.cargo/registry/src/index.crates.io-19/serde-1.0/src/de.rs    serde-1.0/src/de.rs
/// /rustc/0123abcd/library/alloc/src/vec/mod.rs                    library/alloc/src/vec/mod.rs
/// /usr/include/c++/12/bits/vector.tcc                             c++/12/bits/vector.tcc
/// /tmp/build.1/Python-3.11/Objects/obmalloc.c                     Python-3.11/Objects/obmalloc.c
/// /home/me/parser/build/../src/lib.c                              src/lib.c
/// ```
pub(crate) fn shorten<'a>(path: &'a str, project: Option<&str>) -> Cow<'a, str> {
    match straight(path) {
        Cow::Borrowed(path) => Cow::Borrowed(without_folders(path, project)),
        Cow::Owned(path) => Cow::Owned(without_folders(&path, project).to_owned()),
    }
}

/// A path without `.` and without folders that are left again by `..`, as builds beside the sources have them. Links are
/// not looked at: the sources need not be there.
fn straight(path: &str) -> Cow<'_, str> {
    let is_dots = |part: &str| part == "." || part == "..";
    if !path.contains("./") || !path.split('/').any(is_dots) {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            (".", _) => {}
            // There is nothing above the root.
            ("..", Some(&"")) if parts.len() == 1 => {}
            ("..", Some(&last)) if last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Cow::Owned(parts.join("/"))
}

fn without_folders<'a>(path: &'a str, project: Option<&str>) -> &'a str {
    if let Some(inner) = project.and_then(|project| inside(path, project)) {
        return inner;
    }
    if let Some(rest) = path.strip_prefix("/rustc/") {
        return rest.split_once('/').map_or(path, |(_, inner)| inner);
    }
    if let Some((_, inner)) = path.split_once("/lib/rustlib/src/rust/") {
        return inner;
    }
    if let Some((_, rest)) = path.split_once("/.cargo/registry/src/") {
        return rest.split_once('/').map_or(path, |(_, inner)| inner);
    }
    if let Some((_, inner)) = path.split_once("/.cargo/git/checkouts/") {
        return inner;
    }
    match path.find("/include/c++/") {
        Some(at) => path.get(at + "/include/".len()..).unwrap_or(path),
        None => tail(path),
    }
}

/// The last parts of an absolute path that is long: where somebody else's build had its sources tells nothing.
fn tail(path: &str) -> &str {
    const PARTS: usize = 3;
    if !path.starts_with('/') || path.matches('/').count() <= PARTS + 1 {
        return path;
    }
    path.rmatch_indices('/').nth(PARTS - 1).and_then(|(at, _)| path.get(at + 1..)).unwrap_or(path)
}

/// Whether a source is the user's own: in the project, or of a path that leads nowhere else. Without a project any path
/// from no certain folder is one.
pub(crate) fn is_own(path: &str, project: Option<&str>) -> bool {
    let path = straight(path);
    if !path.starts_with('/') {
        return !path.starts_with("../");
    }
    let inner = project.and_then(|project| inside(&path, project));
    inner.is_some_and(|inner| !inner.starts_with(".cargo/"))
}

/// A path below a folder.
fn inside<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/').filter(|inner| !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_left_out() {
        for (path, short) in [
            ("/home/me/parser/src/lib.rs", "src/lib.rs"),
            ("/home/me/parser-old/src/lib.rs", "parser-old/src/lib.rs"),
            ("/tmp/build.1/Python-3.11/Objects/obmalloc.c", "Python-3.11/Objects/obmalloc.c"),
            ("/src/main.c", "/src/main.c"),
            ("/home/me/.cargo/registry/src/index.crates.io-19/serde-1.0/src/de.rs", "serde-1.0/src/de.rs"),
            ("/home/me/.cargo/git/checkouts/serde-1/abc/src/de.rs", "serde-1/abc/src/de.rs"),
            ("/rustc/0123abcd/library/alloc/src/vec/mod.rs", "library/alloc/src/vec/mod.rs"),
            (
                "/home/me/.rustup/toolchains/s/lib/rustlib/src/rust/library/core/src/x.rs",
                "library/core/src/x.rs",
            ),
            ("/usr/include/c++/12/bits/vector.tcc", "c++/12/bits/vector.tcc"),
            ("/rustc/", "/rustc/"),
            ("src/main.rs", "src/main.rs"),
            ("./src/main.c", "src/main.c"),
            ("build/../src/main.c", "src/main.c"),
            ("/home/me/parser/build/x/../../src/./main.c", "src/main.c"),
            ("/home/me/parser/../lexer/main.c", "/home/me/lexer/main.c"),
            ("../src/main.c", "../src/main.c"),
            ("a/../../src/main.c", "../src/main.c"),
            ("/../a/..b/c...c", "/a/..b/c...c"),
        ] {
            assert_eq!(shorten(path, Some("/home/me/parser")), short);
        }
        assert_eq!(shorten("/home/me/parser/src/lib.rs", None), "parser/src/lib.rs");
    }

    #[test]
    fn own_sources_lie_in_the_project() {
        for project in [None, Some("/p")] {
            assert!(is_own("src/a.rs", project) && is_own("./src/a.rs", project));
            assert!(is_own("build/../src/a.rs", project));
            assert!(!is_own("../sysdeps/a.h", project) && !is_own("./csu/../../a.h", project));
            assert!(!is_own("/usr/include/a.h", project));
        }
        assert!(is_own("/p/src/a.rs", Some("/p")) && !is_own("/p/src/a.rs", None));
        assert!(is_own("/q/../p/a.rs", Some("/p")) && !is_own("/p/../q/a.rs", Some("/p")));
        assert!(!is_own("/p/.cargo/registry/src/x/a.rs", Some("/p")));
        assert!(!is_own("/pp/a.rs", Some("/p")));
    }
}
