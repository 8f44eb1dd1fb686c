//! Names of types, as demanglers write them: `char const*`, `int (*)(int, char)`.

use addr2line::gimli::{self, AttributeValue};

use super::{MAX_DEPTH, MAX_NAME_BYTES, Reader, with_arguments};
use crate::unit_table::{Entry, Place};

/// How compilers and demanglers spell one type.
const SPELLINGS: [(&str, &str); 8] = [
    ("long unsigned int", "unsigned long"),
    ("long int", "long"),
    ("long long unsigned int", "unsigned long long"),
    ("long long int", "long long"),
    ("short unsigned int", "unsigned short"),
    ("short int", "short"),
    ("__int128 unsigned", "unsigned __int128"),
    ("decltype(nullptr)", "std::nullptr_t"),
];

impl<'a> Reader<'_, 'a> {
    /// The parameters' types, without those that the compiler adds; `None`: one cannot be told.
    pub(super) fn parameters(&self, place: Place, depth: usize) -> Option<Vec<String>> {
        let mut types = Vec::new();
        for (place, entry) in self.children(place)? {
            match entry.tag() {
                gimli::DW_TAG_formal_parameter if entry.attr(gimli::DW_AT_artificial).is_none() => {
                    types.push(self.parameter(place.unit, &entry, depth)?);
                }
                gimli::DW_TAG_GNU_formal_parameter_pack => {
                    for (place, entry) in self.children(place)? {
                        types.push(self.parameter(place.unit, &entry, depth)?);
                    }
                }
                gimli::DW_TAG_unspecified_parameters => types.push("...".to_owned()),
                _ => {}
            }
        }
        Some(types)
    }

    /// A parameter's type. Whether it is const itself is no part of a function's name.
    fn parameter(&self, unit: usize, entry: &Entry<'a>, depth: usize) -> Option<String> {
        let mut at = self.target(unit, entry)?;
        let mut target = self.units.entry(at)?;
        for _ in 0..MAX_DEPTH {
            if !matches!(target.tag(), gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type) {
                break;
            }
            at = self.target(at.unit, &target)?;
            target = self.units.entry(at)?;
        }
        self.type_name(Some(at), String::new(), depth + 1)
    }

    /// ` const`, ` &`, ` &&` and what is put together of them, as a member function says it.
    pub(super) fn qualifiers(&self, place: Place, entry: &Entry<'a>) -> String {
        let mut text = String::new();
        let mut object = entry
            .attr_value(gimli::DW_AT_object_pointer)
            .and_then(|object| self.units.place(place.unit, &object))
            .and_then(|object| self.step(object));
        let mut is_pointed = false;
        for _ in 0..MAX_DEPTH {
            let Some((at, entry)) = object else { break };
            match entry.tag() {
                gimli::DW_TAG_pointer_type => is_pointed = true,
                // `this` itself may be const too.
                gimli::DW_TAG_const_type if is_pointed => text.insert_str(0, " const"),
                gimli::DW_TAG_volatile_type if is_pointed => text.push_str(" volatile"),
                gimli::DW_TAG_const_type => {}
                _ => break,
            }
            object = self.step(at);
        }
        if entry.attr(gimli::DW_AT_rvalue_reference).is_some() {
            text.push_str(" &&");
        } else if entry.attr(gimli::DW_AT_reference).is_some() {
            text.push_str(" &");
        }
        text
    }

    /// The entry of an entry's type.
    fn step(&self, place: Place) -> Option<(Place, Entry<'a>)> {
        let target = self.target(place.unit, &self.units.entry(place)?)?;
        Some((target, self.units.entry(target)?))
    }

    /// The arguments of a template instance; `None` where it is none, or one cannot be told.
    pub(super) fn template_arguments(&self, place: Place, depth: usize) -> Option<Vec<String>> {
        let mut arguments = Vec::new();
        self.add_arguments(place, depth, &mut arguments)?.then_some(arguments)
    }

    /// Whether there was one.
    fn add_arguments(&self, place: Place, depth: usize, arguments: &mut Vec<String>) -> Option<bool> {
        let mut is_instance = false;
        for (place, entry) in self.children(place)? {
            match entry.tag() {
                gimli::DW_TAG_template_type_parameter => {
                    arguments.push(self.type_name(
                        self.target(place.unit, &entry),
                        String::new(),
                        depth + 1,
                    )?);
                }
                gimli::DW_TAG_template_value_parameter => {
                    arguments.push(self.constant(place.unit, &entry, depth + 1)?);
                }
                gimli::DW_TAG_GNU_template_template_param => {
                    arguments.push(self.units.text(place.unit, &entry, gimli::DW_AT_GNU_template_name)?);
                }
                gimli::DW_TAG_GNU_template_parameter_pack => {
                    self.add_arguments(place, depth + 1, arguments)?;
                }
                _ => continue,
            }
            is_instance = true;
        }
        Some(is_instance)
    }

    /// A number in a template's arguments.
    fn constant(&self, unit: usize, entry: &Entry<'a>, depth: usize) -> Option<String> {
        let value = entry.attr(gimli::DW_AT_const_value)?;
        let name = self.type_name(self.target(unit, entry), String::new(), depth)?;
        let is_unsigned = name.starts_with("unsigned") || name == "bool";
        let number =
            if is_unsigned { value.udata_value()?.to_string() } else { value.sdata_value()?.to_string() };
        Some(match name.as_str() {
            "bool" => if number == "0" { "false" } else { "true" }.to_owned(),
            "int" => number,
            _ => format!("({name}){number}"),
        })
    }

    /// The name of a class, a union, an enumeration, with what is around it.
    pub(super) fn class_name(&self, place: Place, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let chain = self.units.chain(place);
        let (declared, entry) = chain.last()?;
        let name = chain
            .iter()
            .find_map(|(place, entry)| self.units.text(place.unit, entry, gimli::DW_AT_name))
            .or_else(|| self.typedef_name(declared.unit, entry))
            .filter(|name| !name.starts_with("<lambda"));
        let scope = self.scope(*declared, depth + 1)?;
        match name {
            Some(name) => {
                let arguments = self.template_arguments(place, depth + 1);
                Some(scope + &with_arguments(name, arguments.as_deref()))
            }
            None => Some(scope + &self.unnamed(place, depth + 1)?),
        }
    }

    /// The name that `typedef struct { … } name` gave to a type: GCC says it as `4name`.
    fn typedef_name(&self, unit: usize, entry: &Entry<'a>) -> Option<String> {
        let mangled = self.units.linkage_name(unit, entry)?;
        let name = mangled.trim_start_matches(|character: char| character.is_ascii_digit());
        let is_name = mangled.len() - name.len() > 0 && mangled == format!("{}{name}", name.len());
        is_name.then(|| name.to_owned())
    }

    /// What stands for the name of a type that has none: a lambda is known by the operator in it.
    fn unnamed(&self, place: Place, depth: usize) -> Option<String> {
        for (place, entry) in self.children(place)? {
            let is_call = entry.tag() == gimli::DW_TAG_subprogram
                && self
                    .units
                    .text(place.unit, &entry, gimli::DW_AT_name)
                    .is_some_and(|name| name == "operator()" || name.starts_with("operator()<"));
            if is_call {
                let parameters = self.parameters(place, depth)?;
                return Some(format!("{{lambda({})}}", parameters.join(", ")));
            }
        }
        Some("{unnamed type}".to_owned())
    }

    /// The name of a type around `inner`, what is said of it already: `*` for a pointer to it.
    fn type_name(&self, place: Option<Place>, inner: String, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH || inner.len() > MAX_NAME_BYTES {
            return None;
        }
        let Some(place) = place else { return Some(joined("void", &inner)) };
        let entry = self.units.entry(place)?;
        let target = || self.target(place.unit, &entry);
        let around = |inner: String| self.type_name(target(), inner, depth + 1);
        match entry.tag() {
            gimli::DW_TAG_base_type | gimli::DW_TAG_unspecified_type => {
                let name = self.units.text(place.unit, &entry, gimli::DW_AT_name)?;
                let spelled = SPELLINGS.iter().find(|(compiler, _)| *compiler == name);
                Some(joined(spelled.map_or(name.as_str(), |(_, demangler)| demangler), &inner))
            }
            gimli::DW_TAG_const_type => around(joined(" const", &inner)),
            gimli::DW_TAG_volatile_type => around(joined(" volatile", &inner)),
            gimli::DW_TAG_restrict_type => around(joined(" restrict", &inner)),
            gimli::DW_TAG_pointer_type => self.pointer(target(), "*", &inner, depth),
            gimli::DW_TAG_reference_type => self.pointer(target(), "&", &inner, depth),
            gimli::DW_TAG_rvalue_reference_type => self.pointer(target(), "&&", &inner, depth),
            gimli::DW_TAG_typedef | gimli::DW_TAG_template_alias => match self.is_unnamed(target()) {
                // `typedef struct { … } name` names the type.
                Some(true) => {
                    let name = self.units.text(place.unit, &entry, gimli::DW_AT_name)?;
                    let target = target()?;
                    Some(joined(&(self.scope(target, depth + 1)? + &name), &inner))
                }
                _ => around(inner),
            },
            gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type => Some(joined(&self.class_name(place, depth + 1)?, &inner)),
            gimli::DW_TAG_subroutine_type => {
                let parameters = self.parameters(place, depth + 1)?.join(", ");
                let qualifiers = self.qualifiers(place, &entry);
                around(format!("{inner}({parameters}){qualifiers}"))
            }
            gimli::DW_TAG_array_type => {
                let mut inner = if inner.is_empty() { inner } else { inner + " " };
                for (_, dimension) in self.children(place)? {
                    if dimension.tag() == gimli::DW_TAG_subrange_type {
                        inner.push_str(&extent(&dimension)?);
                    }
                }
                around(inner)
            }
            gimli::DW_TAG_ptr_to_member_type => {
                let class = self.units.place(place.unit, &entry.attr_value(gimli::DW_AT_containing_type)?)?;
                let class = self.class_name(class, depth + 1)?;
                let target = target()?;
                match self.units.entry(target)?.tag() {
                    gimli::DW_TAG_subroutine_type => {
                        self.type_name(Some(target), format!("({class}::*{inner})"), depth + 1)
                    }
                    _ => self.type_name(Some(target), format!(" {class}::*{inner}"), depth + 1),
                }
            }
            _ => None,
        }
    }

    /// A pointer or a reference to a type.
    fn pointer(&self, target: Option<Place>, sign: &str, inner: &str, depth: usize) -> Option<String> {
        let needs_brackets = target.and_then(|target| self.units.entry(target)).is_some_and(|entry| {
            matches!(entry.tag(), gimli::DW_TAG_subroutine_type | gimli::DW_TAG_array_type)
        });
        let inner = if needs_brackets { format!("({sign}{inner})") } else { format!("{sign}{inner}") };
        self.type_name(target, inner, depth + 1)
    }

    /// Whether a type is a class without a name that is no lambda.
    fn is_unnamed(&self, place: Option<Place>) -> Option<bool> {
        let place = place?;
        let entry = self.units.entry(place)?;
        let is_class = matches!(
            entry.tag(),
            gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
        );
        Some(
            is_class
                && entry.attr(gimli::DW_AT_name).is_none()
                && self.unnamed(place, 0)? == "{unnamed type}",
        )
    }

    /// The type that an entry is of, or is made of.
    fn target(&self, unit: usize, entry: &Entry<'a>) -> Option<Place> {
        self.units.place(unit, &entry.attr_value(gimli::DW_AT_type)?)
    }

    /// The entries in an entry, those directly in it.
    fn children(&self, place: Place) -> Option<Vec<(Place, Entry<'a>)>> {
        let mut children = Vec::new();
        let mut tree = self.units.unit(place.unit)?.entries_tree(Some(place.offset)).ok()?;
        let mut nodes = tree.root().ok()?.children();
        while let Some(node) = nodes.next().ok()? {
            let entry = node.entry().clone();
            children.push((Place { unit: place.unit, offset: entry.offset() }, entry));
        }
        Some(children)
    }
}

/// A type's name with what is said of it: brackets stand apart.
fn joined(name: &str, inner: &str) -> String {
    let space = if inner.starts_with(['(', '[']) { " " } else { "" };
    format!("{name}{space}{inner}")
}

/// The size of an array in one direction: `[4]`.
fn extent(dimension: &Entry<'_>) -> Option<String> {
    let number = |name| match dimension.attr_value(name)? {
        AttributeValue::Exprloc(_) => None,
        value => value.udata_value(),
    };
    match (number(gimli::DW_AT_count), number(gimli::DW_AT_upper_bound)) {
        (Some(count), _) => Some(format!("[{count}]")),
        (None, Some(last)) => Some(format!("[{}]", last.checked_add(1)?)),
        (None, None) => Some("[]".to_owned()),
    }
}
