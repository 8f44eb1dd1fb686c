//! Whether a diff's first line is what was planted.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::succeed;

/// What a diff says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The first line of the text.
    pub(crate) line: String,
    /// Of the first entry: what it is, allocations more of all iterations, the call site.
    pub(crate) first: Option<(String, i64, Frame)>,
    /// How many entries there are, and how many of them are new or gone.
    pub(crate) entries: usize,
    pub(crate) new_or_gone: usize,
}

/// A logical frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) system_name: String,
    pub(crate) file: String,
    pub(crate) line: u64,
    inlined: bool,
}

impl Frame {
    fn of(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Self {
            function: text("function"),
            system_name: text("system_name"),
            file: text("file"),
            line: value["line"].as_u64().unwrap_or(0),
            inlined: value["inlined"].as_bool().unwrap_or(false),
        }
    }

    /// Whether it belongs to a language's own library, by its name: nobody planted anything there.
    fn is_library(&self) -> bool {
        let name = own_name(&self.function).trim_start_matches(['<', '&', '*', '(']);
        let name = name.trim_start_matches("dyn ").trim_start_matches("mut ");
        let starts =
            ["std::", "core::", "alloc::", "hashbrown::", "__gnu_cxx::", "operator new", "__rust", "__rdl"];
        let is_builtin = || {
            let head = self.function.split(" as ").next().unwrap_or_default();
            head.starts_with('<') && !head.contains("::") && self.function.contains(" as ")
        };
        starts.iter().any(|start| name.starts_with(start)) || is_builtin()
    }

    fn is_at(&self, file: &str, line: u64) -> bool {
        self.line == line && self.file.ends_with(file)
    }
}

/// A name without what C++ writes around it: the type that is returned, and parameters.
fn own_name(function: &str) -> &str {
    let (mut depth, mut start) = (0_usize, 0);
    if function.starts_with('<') {
        return function;
    }
    for (at, character) in function.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => return function.get(start..at).unwrap_or(function),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    function.get(start..).unwrap_or(function)
}

/// Whether a function is one of some, by linkers' names. A constructor or destructor of C++ often has one code under two
/// names, for the whole object (C1, D1) and for the part of a derived one (C2, D2).
fn is_one_of(names: &BTreeSet<String>, name: &str) -> bool {
    let both = |name: &str| without_clone(name).replace("C1E", "C2E").replace("D1E", "D2E");
    names.iter().any(|known| both(known) == both(name))
}

/// A linker's name without what compilers write behind it when they split or copy a function.
fn without_clone(name: &str) -> &str {
    let marks = [".llvm.", ".part.", ".constprop.", ".isra.", ".cold", ".lto_priv."];
    let end = marks.iter().filter_map(|mark| name.find(mark)).min();
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

fn json(heaptally: &Path, words: &[&std::ffi::OsStr]) -> Result<Value, String> {
    let text = succeed(Command::new(heaptally).args(words).arg("--json"))?;
    serde_json::from_str(&text).map_err(|error| format!("{words:?}: {error}"))
}

/// Compares two profiles.
pub(crate) fn answer(heaptally: &Path, base: &Path, change: &Path) -> Result<Answer, String> {
    let words = ["diff".as_ref(), base.as_os_str(), change.as_os_str()];
    let diff = json(heaptally, &words)?;
    let text = succeed(Command::new(heaptally).args(words))?;
    let windows = diff["windows"].as_array().map_or(&[][..], Vec::as_slice);
    let entries: Vec<&Value> =
        windows.iter().filter_map(|window| window["entries"].as_array()).flatten().collect();
    let kind = |entry: &Value| entry["kind"].as_str().unwrap_or_default().to_owned();
    let first = entries.first().map(|entry| {
        let of = |side: &str| entry["allocations"][side].as_i64().unwrap_or(0);
        let site = entry["call_site"].as_u64().and_then(|at| diff["frames"].get(at as usize));
        (kind(entry), of("change") - of("base"), site.map(Frame::of).unwrap_or_default())
    });
    Ok(Answer {
        line: text.lines().next().unwrap_or_default().to_owned(),
        first,
        entries: entries.len(),
        new_or_gone: entries.iter().filter(|entry| ["new", "gone"].contains(&kind(entry).as_str())).count(),
    })
}

impl Answer {
    /// Whether the first line names the file and the line.
    pub(crate) fn is_line(&self, file: &str, line: u64) -> bool {
        let is_site = self.first.as_ref().is_some_and(|(_, more, site)| *more > 0 && site.is_at(file, line));
        is_site && self.line.contains(&format!(":{line} ("))
    }

    /// Whether the first entry's call site is one of these functions, or a clone of one (`.llvm.1`, `.part.0`).
    pub(crate) fn is_function(&self, names: &BTreeSet<String>) -> bool {
        self.first.as_ref().is_some_and(|(_, more, site)| *more > 0 && is_one_of(names, &site.system_name))
    }
}

/// The functions with a symbol of their own that hold a line: of each stack through it the innermost one, no library's. By
/// the debug information of a profile, as linkers name them.
pub(crate) fn holders(
    heaptally: &Path,
    profile: &Path,
    file: &str,
    line: u64,
) -> Result<BTreeSet<String>, String> {
    let words = ["report".as_ref(), profile.as_os_str()];
    let report = json(heaptally, &words)?;
    let mut names = BTreeSet::new();
    let windows = report["windows"].as_array().map_or(&[][..], Vec::as_slice);
    for row in windows.iter().filter_map(|window| window["rows"].as_array()).flatten() {
        let stack = row["stack"].as_array().map_or(&[][..], Vec::as_slice);
        let frames = stack.iter().filter_map(|at| report["frames"].get(usize::try_from(at.as_u64()?).ok()?));
        let outwards = frames.map(Frame::of).skip_while(|frame| !frame.is_at(file, line));
        if let Some(holder) = outwards.filter(|frame| !frame.inlined).find(|frame| !frame.is_library()) {
            names.insert(holder.system_name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_the_function() {
        for (name, function) in [
            ("_ZN1a1b17h0123456789abcdefE.llvm.15637457322473427345", "_ZN1a1b17h0123456789abcdefE"),
            (
                "_ZN3_$LT$a..B$u20$as$u20$c..D$GT$1e17h0123456789abcdefE",
                "_ZN3_$LT$a..B$u20$as$u20$c..D$GT$1e17h0123456789abcdefE",
            ),
            ("_ZN1n1fEi.constprop.0.isra.0", "_ZN1n1fEi"),
            ("main.cold", "main"),
        ] {
            assert_eq!(without_clone(name), function);
        }
        let names = BTreeSet::from(["_ZN1aC2Ev".to_owned()]);
        assert!(is_one_of(&names, "_ZN1aC1Ev") && is_one_of(&names, "_ZN1aC2Ev.part.0"));
        assert!(!is_one_of(&names, "_ZN1aC2Ei") && !is_one_of(&names, "_ZN1aD2Ev"));
    }

    #[test]
    fn libraries_are_known_by_their_own_names() {
        for (function, is_library) in [
            ("n::lexer<n::json<std::__cxx11::string> >::scan(std::__cxx11::string const&)", false),
            ("void std::vector<int, std::allocator<int> >::push_back(int&&)", true),
            ("std::map<int, n::a>::find(int)", true),
            ("std::string n::name(int)", false),
            ("<alloc::vec::Vec<T> as a::B>::f", true),
            ("<a::B as core::fmt::Debug>::fmt", false),
            ("<str as alloc::borrow::ToOwned>::to_owned", true),
            ("driver::work", false),
        ] {
            let frame = Frame { function: function.to_owned(), ..Frame::default() };
            assert_eq!(frame.is_library(), is_library, "{function}");
        }
    }
}
