//! Names of C++ functions that debug information tells without a linkage name.
//!
//! GCC gives none to functions that no other file can call: those in unnamed namespaces, static ones, lambdas and what
//! is local to them. DWARF has their plain name (`show`, `operator()`), and where they stand tells the rest. What is
//! made here is what the demangler makes of the symbol, where there is one
//! (`(anonymous namespace)::Box<int, 3>::show(int const&) const`), with these differences:
//!
//! - lambdas and types without a name have no number (`main::{lambda(int)}::operator()(int) const`): in debug
//!   information those that nothing uses are left out, so what is there cannot be counted;
//! - the parameters of function templates are those of the instance, where a symbol has the template's;
//! - where a type cannot be told, the parameters are left out, and so they are where debug information has no types
//!   (`-g1`).

use std::cell::OnceCell;
use std::collections::HashMap;

use addr2line::gimli::{self, Dwarf, UnitOffset};
use typed_arena::Arena;

use crate::demangle::demangle;
use crate::object_file::Slice;
use crate::unit_table::{Entry, Place, Units};

mod type_name;

/// How deeply functions, scopes and types may stand in each other.
const MAX_DEPTH: usize = 48;
/// The longest name, in bytes: templates of templates double with each level.
const MAX_NAME_BYTES: usize = 1 << 14;

/// Makes names, each once.
pub(crate) struct CppNames<'c, 'a> {
    texts: &'c Arena<String>,
    /// By where the DWARF lies: that of a module, and those of files of split DWARF.
    readers: HashMap<usize, Reader<'c, 'a>>,
    /// By DWARF and the place in its section; `None`: the plain name is all.
    known: HashMap<(usize, usize), Option<&'c str>>,
}

impl<'c, 'a> CppNames<'c, 'a> {
    /// Keeps the names in an arena.
    pub(crate) fn new(texts: &'c Arena<String>) -> Self {
        Self { texts, readers: HashMap::new(), known: HashMap::new() }
    }

    /// The name of the function of which an entry is an instance; `None` where the plain one is all that is known, or is
    /// right, as `main` is. `unit` is its unit's offset in the section.
    pub(crate) fn find(
        &mut self,
        dwarf: &'c Dwarf<Slice<'a>>,
        unit: usize,
        offset: UnitOffset,
    ) -> Option<&'c str> {
        let dwarf_key = std::ptr::from_ref(dwarf).addr();
        let reader = self.readers.entry(dwarf_key).or_insert_with(|| Reader::new(dwarf));
        let place = Place { unit: reader.units.index_of(unit)?, offset };
        // All instances of one function have one origin.
        let origin = reader
            .units
            .entry(place)
            .and_then(|entry| entry.attr_value(gimli::DW_AT_abstract_origin))
            .and_then(|origin| reader.units.place(place.unit, &origin))
            .unwrap_or(place);
        let key = (dwarf_key, reader.units.section_offset(origin)?);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let name = reader.qualified_name(origin).map(|name| self.texts.alloc(name).as_str());
        self.known.insert(key, name);
        name
    }
}

/// What is known of one unit.
#[derive(Debug, Default)]
struct Outline {
    /// Of each entry in which or as which something has a name: itself and the one around it, ascending.
    parents: Vec<(usize, usize)>,
    /// Whether parameters are described.
    has_parameters: bool,
    is_cpp: bool,
}

/// Reads the names of one file.
struct Reader<'d, 'a> {
    units: Units<'d, 'a>,
    outlines: Vec<OnceCell<Outline>>,
}

impl<'d, 'a> Reader<'d, 'a> {
    fn new(dwarf: &'d Dwarf<Slice<'a>>) -> Self {
        let units = Units::new(dwarf);
        let outlines = (0..units.len()).map(|_| OnceCell::new()).collect();
        Self { units, outlines }
    }

    /// The name of a function without a linkage name.
    fn qualified_name(&self, place: Place) -> Option<String> {
        let chain = self.units.chain(place);
        let has_linkage_name =
            chain.iter().any(|(place, entry)| self.units.linkage_name(place.unit, entry).is_some());
        if has_linkage_name || !self.outline(chain.last()?.0.unit)?.is_cpp {
            return None;
        }
        self.function_name(&chain, 0).filter(|name| name.len() <= MAX_NAME_BYTES)
    }

    /// The name of a function, as the demangler would have it.
    fn function_name(&self, chain: &[(Place, Entry<'a>)], depth: usize) -> Option<String> {
        let linkage = chain.iter().find_map(|(place, entry)| self.units.linkage_name(place.unit, entry));
        if let Some(linkage) = linkage {
            return Some(demangle(&linkage));
        }
        let plain =
            chain.iter().find_map(|(place, entry)| self.units.text(place.unit, entry, gimli::DW_AT_name))?;
        let (declared, entry) = chain.last()?;
        let outline = self.outline(declared.unit)?;
        if !outline.is_cpp {
            return Some(plain);
        }
        let scope = self.scope(*declared, depth)?;
        let is_external = chain.iter().any(|(_, entry)| entry.attr(gimli::DW_AT_external).is_some());
        if scope.is_empty() && is_external {
            return Some(plain);
        }
        let arguments = self.template_arguments(*declared, depth);
        let mut name = scope + &with_arguments(plain, arguments.as_deref());
        // An instance tells only those of its parameters that are left.
        let whole = chain.iter().find(|(_, entry)| entry.attr(gimli::DW_AT_abstract_origin).is_none());
        if let Some((place, _)) = whole.filter(|_| outline.has_parameters)
            && let Some(parameters) = self.parameters(*place, depth)
        {
            name.push('(');
            name.push_str(&parameters.join(", "));
            name.push(')');
            name.push_str(&self.qualifiers(*declared, entry));
        }
        Some(name)
    }

    /// What stands before a name: `a::b::`; empty outside of everything.
    fn scope(&self, place: Place, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let outline = self.outline(place.unit)?;
        let mut at = place.offset.0;
        loop {
            let found = outline.parents.binary_search_by_key(&at, |&(entry, _)| entry).ok()?;
            at = outline.parents.get(found)?.1;
            let parent = Place { unit: place.unit, offset: UnitOffset(at) };
            let entry = self.units.entry(parent)?;
            let mut scope = match entry.tag() {
                gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_type_unit => {
                    return Some(String::new());
                }
                gimli::DW_TAG_namespace => {
                    // A namespace that is opened again may refer to its first opening.
                    let chain = self.units.chain(parent);
                    let name = chain
                        .iter()
                        .find_map(|(place, entry)| self.units.text(place.unit, entry, gimli::DW_AT_name));
                    let (first, _) = chain.last()?;
                    self.scope(*first, depth + 1)? + name.as_deref().unwrap_or("(anonymous namespace)")
                }
                gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type => self.class_name(parent, depth + 1)?,
                gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => {
                    self.function_name(&self.units.chain(parent), depth + 1)?
                }
                // Blocks in functions have no name.
                _ => continue,
            };
            if scope.len() > MAX_NAME_BYTES {
                return None;
            }
            scope.push_str("::");
            return Some(scope);
        }
    }

    fn outline(&self, unit: usize) -> Option<&Outline> {
        Some(self.outlines.get(unit)?.get_or_init(|| self.read_outline(unit).unwrap_or_default()))
    }

    /// Reads the whole unit, up to damage.
    fn read_outline(&self, index: usize) -> Option<Outline> {
        let unit = self.units.unit(index)?;
        let mut outline = Outline::default();
        // The entries around the present one, by depth.
        let mut around: Vec<usize> = Vec::new();
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            around.truncate(usize::try_from(entry.depth()).ok()?);
            match entry.tag() {
                gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_type_unit => {
                    outline.is_cpp = is_cpp(entry);
                }
                gimli::DW_TAG_formal_parameter => outline.has_parameters = true,
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_lexical_block
                | gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine => {
                    outline.parents.push((entry.offset().0, around.last().copied().unwrap_or(0)));
                }
                _ => {}
            }
            around.push(entry.offset().0);
        }
        Some(outline)
    }
}

/// Whether a unit is written in C++.
fn is_cpp(root: &Entry<'_>) -> bool {
    let Some(gimli::AttributeValue::Language(language)) = root.attr_value(gimli::DW_AT_language) else {
        return false;
    };
    is_cpp_language(language)
}

/// Whether a language is C++.
pub(crate) fn is_cpp_language(language: gimli::DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20
    )
}

/// Replaces the arguments in a template instance's name: DWARF spells them as the source does, and leaves out those
/// that are the default.
fn with_arguments(mut name: String, arguments: Option<&[String]>) -> String {
    let Some(arguments) = arguments else { return with_const_behind(&name) };
    if name.ends_with('>') {
        let mut open = 0_usize;
        let begin = name.rfind(|character| {
            match character {
                '>' => open += 1,
                '<' => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0
        });
        // `operator->` has no arguments in its name.
        if let Some(begin) = begin.filter(|&begin| begin > 0 && name[begin..].starts_with('<')) {
            name.truncate(begin);
            if !name.starts_with("operator") {
                name.truncate(name.trim_end().len());
            }
        }
    }
    let text = arguments.join(", ");
    name.push('<');
    name.push_str(&text);
    // As demanglers write it.
    name.push_str(if text.ends_with('>') { " >" } else { ">" });
    name
}

/// Moves the `const` of a template's arguments to where demanglers write it: `pair<const int, A>` is
/// `pair<int const, A>`.
fn with_const_behind(name: &str) -> String {
    const CONST: &str = "const ";
    let mut text = name.to_owned();
    let mut from = 0;
    while let Some(found) = text[from..].find(CONST) {
        let begin = from + found;
        from = begin + CONST.len();
        if !text[..begin].ends_with(['<', ' ', '(']) {
            continue;
        }
        let mut depth = 0_usize;
        let end = text[from..].find(|character| {
            match character {
                '<' | '(' => depth += 1,
                '>' | ')' if depth > 0 => depth -= 1,
                ',' | '>' | ')' | '*' | '&' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        let Some(end) = end else { break };
        let end = from + end;
        text.replace_range(from + text[from..end].trim_end().len()..end, " const");
        text.replace_range(begin..from, "");
        from = begin;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{with_arguments, with_const_behind};

    #[test]
    fn const_stands_behind() {
        for (name, whole) in [
            ("pair<const int, char>", "pair<int const, char>"),
            ("pair<const a::b<const c, d>, const char*>", "pair<a::b<c const, d> const, char const*>"),
            ("node<pair<const a<int> > >", "node<pair<a<int> const> >"),
            ("f<is_const >", "f<is_const >"),
            ("f<const ", "f<const "),
        ] {
            assert_eq!(with_const_behind(name), whole);
        }
    }

    #[test]
    fn arguments_are_those_that_are_told() {
        let arguments = ["int".to_owned(), "std::less<int>".to_owned()];
        for (name, whole) in [
            ("map<int>", "map<int, std::less<int> >"),
            ("map<ns::Pair<int, char> >", "map<int, std::less<int> >"),
            ("map", "map<int, std::less<int> >"),
            ("operator-><int>", "operator-><int, std::less<int> >"),
            ("operator><int>", "operator><int, std::less<int> >"),
        ] {
            assert_eq!(with_arguments(name.to_owned(), Some(&arguments)), whole, "{name}");
        }
        assert_eq!(with_arguments("map<int>".to_owned(), None), "map<int>");
    }
}
