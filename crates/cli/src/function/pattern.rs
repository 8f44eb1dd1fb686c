//! What a user names functions by.
//!
//! | pattern | fits |
//! |---|---|
//! | `re:REGEX` | functions of whose name any part fits |
//! | `FILE:LINE` | the function in `FILE` (a path's tail) whose declaration is nearest at or above the line |
//! | with `*` | functions whose whole name fits, where no name is the text itself |
//! | else | the name as reports print it, or the mangled one; without parameters, and without generic arguments |
//!
//! Of the last kind the most exact one that is there decides: `parse(int)` before `parse` before `parse<int>`.

use heaptally_profile::name_part;
use heaptally_symbolize::{ListedFunction, demangle, without_clone_suffix};
use regex::Regex;

/// A pattern of the command line.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// A name, or one with `*`.
    Name(String),
    /// `re:REGEX`
    Regex(Regex),
    /// `FILE:LINE`
    Line(String, u32),
}

impl Pattern {
    /// Reads a pattern. The error says why it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it names no function".to_owned());
        }
        if let Some(pattern) = text.strip_prefix("re:") {
            return Regex::new(pattern).map(Self::Regex).map_err(|error| error.to_string());
        }
        if let Some((file, line)) = text.rsplit_once(':')
            && !file.is_empty()
            && !file.ends_with(':')
            && let Ok(line) = line.parse::<u32>()
        {
            return Ok(Self::Line(file.to_owned(), line));
        }
        Ok(Self::Name(text.to_owned()))
    }

    /// Whether it means one function, or its copies, and not all that fit.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Name(name) if !name.contains('*'))
    }

    /// Whether it means all functions that fit, in whatever module.
    pub(crate) fn is_all(&self) -> bool {
        !self.is_one() && !matches!(self, Self::Line(..))
    }

    /// The functions that fit, as indices.
    pub(crate) fn find(&self, functions: &[ListedFunction]) -> Vec<usize> {
        let all = |fits: &dyn Fn(&ListedFunction) -> bool| -> Vec<usize> {
            functions
                .iter()
                .enumerate()
                .filter(|(_, function)| fits(function))
                .map(|(index, _)| index)
                .collect()
        };
        match self {
            Self::Regex(regex) => all(&|function| {
                regex.is_match(&function.name)
                    || function.system_names.iter().any(|name| regex.is_match(name))
                    || is_clone(function) && names(function).iter().any(|name| regex.is_match(name))
            }),
            Self::Line(file, line) => at_line(functions, file, *line),
            Self::Name(name) => {
                let is_it = |function: &ListedFunction| {
                    function.name == *name || function.system_names.iter().any(|own| own == name)
                };
                // What compilers made of the function under a name of its own is the function, too.
                let bases: Vec<&str> = functions
                    .iter()
                    .filter(|function| is_it(function))
                    .flat_map(|function| function.system_names.iter().map(String::as_str))
                    .collect();
                let is_clone_of_it = |function: &ListedFunction| {
                    let mut bases_of_clone =
                        function.system_names.iter().map(|own| without_clone_suffix(own));
                    bases_of_clone.any(|(base, suffix)| !suffix.is_empty() && bases.contains(&base))
                };
                let found = all(&|function| is_it(function) || is_clone_of_it(function));
                if !found.is_empty() {
                    return found;
                }
                // PERF: to demangle is most of the time that this takes, so it is done once.
                let known: Vec<Vec<String>> = functions.iter().map(names).collect();
                let all_of = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
                    let is_one = |(_, names): &(usize, &Vec<String>)| names.iter().any(|own| fits(own));
                    known.iter().enumerate().filter(is_one).map(|(index, _)| index).collect()
                };
                let alike: [&dyn Fn(&str) -> bool; 3] =
                    [&|own| own == name, &|own| without_parameters(own) == name.as_str(), &|own| {
                        without_generics(without_parameters(own)) == name.as_str()
                    }];
                let found = alike.into_iter().map(all_of).find(|found| !found.is_empty()).unwrap_or_default();
                if !found.is_empty() || !name.contains('*') {
                    return found;
                }
                let whole = name.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
                match Regex::new(&format!("^(?s:{whole})$")) {
                    Ok(regex) => {
                        let fits =
                            |own: &String| regex.is_match(own) || regex.is_match(without_parameters(own));
                        let is_one = |(_, (function, names)): &(usize, (&ListedFunction, &Vec<String>))| {
                            names.iter().chain(&function.system_names).any(fits)
                        };
                        functions
                            .iter()
                            .zip(&known)
                            .enumerate()
                            .filter(is_one)
                            .map(|(index, _)| index)
                            .collect()
                    }
                    Err(_) => Vec::new(),
                }
            }
        }
    }
}

/// Whether a compiler made it of a function, or of a part of one (`parse.constprop.0`).
fn is_clone(function: &ListedFunction) -> bool {
    function.system_names.iter().any(|name| !without_clone_suffix(name).1.is_empty())
}

/// The names of a function and its aliases for people, without what compilers append to copies.
pub(crate) fn names(function: &ListedFunction) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, system_name) in function.system_names.iter().enumerate() {
        let (base, suffix) = without_clone_suffix(system_name);
        let is_whole = index == 0 && suffix.is_empty();
        names.push(if is_whole { function.name.clone() } else { demangle(base) });
    }
    names
}

/// Whether a name without a path is the last part of one of a function's (`gen` of `r::gen`).
pub(crate) fn has_last_part(function: &ListedFunction, name: &str) -> bool {
    let is_it = |own: &String| {
        let plain = without_generics(without_parameters(own));
        plain.strip_suffix(name).is_some_and(|path| path.ends_with("::"))
    };
    !name.contains(':') && names(function).iter().any(is_it)
}

/// Whether it is a part of a function that is not entered by a call.
pub(crate) fn is_part(function: &ListedFunction) -> bool {
    !function.system_names.is_empty()
        && function.system_names.iter().all(|name| {
            let (_, suffix) = without_clone_suffix(name);
            suffix.split('.').any(|word| matches!(word, "cold" | "part"))
        })
}

/// The async function of which a name is a part: `…TQ0_` goes on behind a call, `…TY0_` behind a change of executors
/// (swift/docs/ABI/Mangling.rst).
fn async_function(system_name: &str) -> Option<&str> {
    let rest = system_name.strip_prefix("$s").and_then(|_| system_name.strip_suffix('_'))?;
    let stem = rest.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let is_part = stem.len() < rest.len() && (stem.ends_with("TQ") || stem.ends_with("TY"));
    if is_part { stem.get(..stem.len() - 2) } else { None }
}

/// Whether a function is a part of one of `functions`, which are async ones of Swift.
pub(crate) fn is_async_part(function: &ListedFunction, functions: &[ListedFunction]) -> bool {
    let mut wholes = function.system_names.iter().filter_map(|name| async_function(name));
    wholes.any(|whole| functions.iter().any(|other| other.system_names.iter().any(|name| name == whole)))
}

/// The code of all parts of `functions`, as far as they are async ones of Swift, among all that there are.
pub(crate) fn async_parts(functions: &[ListedFunction], all: &[ListedFunction]) -> Vec<(u64, u64)> {
    if !functions.iter().any(|function| function.system_names.iter().any(|name| name.starts_with("$s"))) {
        return Vec::new();
    }
    all.iter()
        .filter(|function| is_async_part(function, functions))
        .filter_map(|function| function.range)
        .collect()
}

/// What is the same in the names of all instances of a generic function; the name itself where it is none.
pub(crate) fn instance_of(name: &str) -> &str {
    let plain = without_parameters(name);
    let general = without_generics(plain);
    if general.len() == plain.len() { name } else { general }
}

fn at_line(functions: &[ListedFunction], file: &str, line: u32) -> Vec<usize> {
    let is_there = |function: &&ListedFunction| {
        function.line != 0
            && function.line <= line
            && function.file.strip_suffix(file).is_some_and(|head| head.is_empty() || head.ends_with('/'))
    };
    let nearest = functions.iter().filter(is_there).map(|function| function.line).max();
    let fits = |function: &ListedFunction| is_there(&function) && Some(function.line) == nearest;
    functions.iter().enumerate().filter(|(_, function)| fits(function)).map(|(index, _)| index).collect()
}

/// A name of C++ without its parameters; another name as it is.
fn without_parameters(name: &str) -> &str {
    let trimmed = name.trim_end_matches(" const").trim_end_matches(" volatile").trim_end_matches(['&', ' ']);
    if !trimmed.ends_with(')') {
        return name;
    }
    let front = name_part::without_parameters(trimmed);
    if front.len() == trimmed.len() { name } else { front }
}

/// A name without the generic arguments at its end.
fn without_generics(name: &str) -> &str {
    if name.contains("operator") { name } else { name_part::without_arguments(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(system_name: &str, file: &str, line: u32) -> ListedFunction {
        ListedFunction {
            name: demangle(system_name),
            system_names: vec![system_name.to_owned()],
            file: file.to_owned(),
            line,
            ..ListedFunction::default()
        }
    }

    fn all() -> Vec<ListedFunction> {
        vec![
            function("parse", "/src/a.c", 10),
            function("_Z5parsei", "/src/b.cc", 20),
            function("_Z3fooIiEvT_", "/src/b.cc", 30),
            function("_Z3fooIdEvT_", "/src/b.cc", 30),
            function("_ZNK1A3getEv", "/src/b.cc", 40),
            function("_ZNK1AclEv", "/src/b.cc", 50),
            function("_ZN4demo5parse17h0123456789abcdefE", "/src/c.rs", 3),
            function("_Z4bodyi.constprop.0", "/src/b.cc", 60),
            function("_Z4bodyi.cold", "", 0),
            function("rec", "/src/d.c", 3),
            function("rec.part.0", "/src/d.c", 3),
            function("rec.constprop.0.isra.0", "/src/d.c", 3),
            function("_Z4rec2i", "/src/d.cc", 3),
            function("_Z4rec2i.constprop.0", "/src/d.cc", 3),
        ]
    }

    #[track_caller]
    fn finds(pattern: &str, expected: &[usize]) {
        assert_eq!(Pattern::parse(pattern).unwrap().find(&all()), expected, "{pattern}");
    }

    #[test]
    fn names_as_people_and_files_have_them() {
        finds("parse", &[0]);
        finds("parse(int)", &[1]);
        finds("_Z5parsei", &[1]);
        finds("demo::parse", &[6]);
        finds("A::get", &[4]);
        finds("A::get() const", &[4]);
        finds("A::operator()", &[5]);
        finds("body(int)", &[7, 8]);
        finds("body", &[7, 8]);
        finds("nothing", &[]);
    }

    /// The plain function stands beside what the compiler made of it for some of its callers.
    #[test]
    fn clones_beside_the_plain_function() {
        finds("rec", &[9, 10, 11]);
        finds("re:^rec$", &[9, 10, 11]);
        finds("rec.constprop.0.isra.0", &[11]);
        finds("rec2", &[12, 13]);
        finds("rec2(int)", &[12, 13]);
        finds("_Z4rec2i", &[12, 13]);
        finds("_Z4rec2i.constprop.0", &[13]);
        finds("d.c:4", &[9, 10, 11]);
    }

    #[test]
    fn all_instances_of_a_template() {
        finds("foo", &[2, 3]);
        finds("foo<int>", &[2]);
    }

    #[test]
    fn instances_are_one_function_and_overloads_are_not() {
        assert_eq!(instance_of("a::twice<int>(int)"), instance_of("a::twice<double>(double)"));
        assert_ne!(instance_of("parse(int)"), instance_of("parse(char)"));
        assert_ne!(instance_of("A<int>::f(int)"), instance_of("A<int>::f(char)"));
    }

    #[test]
    fn globs_and_regular_expressions() {
        finds("*parse*", &[0, 1, 6]);
        finds("demo::*", &[6]);
        finds("re:^parse", &[0, 1]);
        assert!(Pattern::parse("re:(").is_err());
        assert!(Pattern::parse("").is_err());
    }

    #[test]
    fn a_line_belongs_to_the_declaration_above_it() {
        finds("b.cc:29", &[1]);
        finds("src/b.cc:35", &[2, 3]);
        finds("b.cc:19", &[]);
        finds("c.cc:3", &[]);
        assert!(matches!(Pattern::parse("a::1").unwrap(), Pattern::Name(_)));
    }

    #[test]
    fn parts_are_no_entries() {
        let parts: Vec<bool> = all().iter().map(is_part).collect();
        assert_eq!(parts.iter().filter(|part| **part).count(), 2);
        assert!(parts[8] && parts[10]);
    }

    #[test]
    fn parts_of_async_functions_are_told_by_their_names() {
        assert_eq!(async_function("$s1a1fyyYaFTQ0_"), Some("$s1a1fyyYaF"));
        assert_eq!(async_function("$s1a1fyyYaFTY12_"), Some("$s1a1fyyYaF"));
        assert_eq!(async_function("$s1a4MainV4mainyyYaFZTf4d_nTQ2_"), Some("$s1a4MainV4mainyyYaFZTf4d_n"));
        for name in ["$s1a1fyyYaF", "$s1a1fyyYaFTQ_", "TQ0_", "", "_", "a_TQ1_"] {
            assert_eq!(async_function(name), None, "{name}");
        }
    }
}
