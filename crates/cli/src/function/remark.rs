//! What is to be said of the functions that fit a pattern: that they are several, or more than was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use heaptally_symbolize::ListedFunction;

use super::definition::Edge;
use super::module::Module;
use super::pattern::{instance_of, names};
use crate::message::quote;

/// So many functions are named where several fit.
const MOST_NAMED: usize = 8;

/// Names in quotes, as many as are worth it.
pub(crate) fn list(names: &[impl AsRef<OsStr>]) -> String {
    let more = if names.len() > MOST_NAMED { " …" } else { "" };
    format!("{}{more}", names.iter().take(MOST_NAMED).map(quote).collect::<Vec<_>>().join(", "))
}

/// What is said of a function that has names which were not asked for: whoever calls it by these enters it, too.
pub(crate) fn others(edge: &Edge, function: &ListedFunction) -> Option<String> {
    if function.system_names.len() < 2 || function.range.is_none() {
        return None;
    }
    let alone = |(name, system_name): (String, &String)| ListedFunction {
        name,
        system_names: vec![system_name.clone()],
        ..function.clone()
    };
    let all = names(function).into_iter().zip(&function.system_names).map(alone);
    let (asked, others): (Vec<_>, Vec<_>) =
        all.partition(|alone| !edge.pattern.find(std::slice::from_ref(alone)).is_empty());
    // Constructors and their like have several symbols and one name.
    let asked: BTreeSet<String> =
        asked.into_iter().map(|alone| instance_of(&alone.name).to_owned()).collect();
    let others: BTreeSet<String> =
        others.into_iter().map(|alone| instance_of(&alone.name).to_owned()).collect();
    let others: Vec<&String> = others.difference(&asked).collect();
    (!others.is_empty() && !asked.is_empty()).then(|| {
        format!(
            "{} is also {} (equal code folded by the linker, or other names): these count, too",
            quote(&edge.text),
            list(&others)
        )
    })
}

/// The name of a function for people, without what compilers append to copies.
fn name(function: &ListedFunction) -> String {
    names(function).into_iter().next().unwrap_or_default()
}

/// The functions, where they are not all the same.
pub(crate) fn several(functions: &[ListedFunction]) -> Option<String> {
    // The instances of a generic function are one, whatever their parameters; overloads are not. Functions of one name that are
    // written at several places are several, too.
    let mut places: BTreeMap<String, BTreeSet<(&str, u32)>> = BTreeMap::new();
    for function in functions {
        let known = places.entry(name(function)).or_default();
        if !function.file.is_empty() {
            known.insert((&function.file, function.line));
        }
    }
    let mut different: Vec<String> = Vec::new();
    let mut instances = BTreeSet::new();
    for (name, places) in &places {
        if places.len() > 1 {
            different.extend(places.iter().map(|(file, line)| format!("{name} at {file}:{line}")));
        } else if instances.insert(instance_of(name)) {
            different.push(name.clone());
        }
    }
    (different.len() > 1).then(|| format!("{} functions ({})", different.len(), list(&different)))
}

/// Whether some of the functions have one symbol, so that only the place at which they are written tells them apart.
pub(crate) fn has_twins(functions: &[ListedFunction], found: &[usize]) -> bool {
    let mut known = BTreeSet::new();
    let symbols = found.iter().filter_map(|index| functions.get(*index)).map(name);
    found.len() > 1 && !symbols.into_iter().all(|symbol| known.insert(symbol))
}

/// Of functions beneath which a window is: those that may be gone before their end.
pub(crate) fn tail_calls(module: &Module, functions: &[ListedFunction]) -> Option<String> {
    let leaving = functions.iter().filter(|function| module.has_tail_call(function));
    let leaving: Vec<String> = leaving.map(|function| function.name.clone()).collect();
    (!leaving.is_empty()).then(|| {
        format!(
            "{} may be left by a jump to another function (a tail call): what is called so is not beneath it",
            list(&leaving)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, file: &str, line: u32) -> ListedFunction {
        ListedFunction {
            name: name.to_owned(),
            system_names: vec![name.to_owned()],
            file: file.to_owned(),
            line,
            ..ListedFunction::default()
        }
    }

    #[test]
    fn functions_of_one_name_are_told_apart_by_their_places() {
        let twins = [function("init", "/a.c", 3), function("init", "/b.c", 3)];
        assert_eq!(several(&twins).unwrap(), "2 functions (`init at /a.c:3`, `init at /b.c:3`)");
        assert!(has_twins(&twins, &[0, 1]) && !has_twins(&twins, &[0]));
        let clones = [function("init", "/a.c", 3), function("init.part.0", "/a.c", 3)];
        assert_eq!(several(&clones), None);
        // Of one the place is not known.
        assert_eq!(several(&[function("init", "/a.c", 3), function("init", "", 0)]), None);
    }
}
