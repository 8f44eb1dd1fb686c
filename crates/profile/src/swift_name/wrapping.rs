//! What stands before the function in a name.

use super::scan::{closing_angle, find_outside, rfind_outside};

/// What compilers wrap around a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// A part that goes on behind a suspension.
    Part,
    /// Code that functions share.
    Merged,
    /// A copy for some types, or for how it is called.
    Specialized,
    /// Calls a function with what a closure holds.
    PartialApply,
    /// Calls a method by the class's or the protocol's table.
    DispatchThunk,
    /// Stands in a class's table for an overridden method.
    TableThunk,
    /// Implements a requirement of a protocol.
    Witness,
    /// Gives a method as a function.
    CurryThunk,
    /// Called from Objective-C, or as a function of C.
    ObjectiveC,
    /// Calls across processes or versions.
    Bridge,
    /// Converts how a closure is called: between two types, around any function.
    Reabstraction,
    /// What copies, moves or destroys a value of a type.
    Outlined,
    /// The same, in a type's table.
    ValueWitness,
    /// Makes a global or a static variable once.
    OneTime,
    /// Data that stands for an async function.
    FunctionPointer,
}

impl Wrapping {
    /// Whether there is a function within.
    pub(super) fn has_function(self) -> bool {
        !matches!(self, Self::Reabstraction | Self::Outlined | Self::ValueWitness)
    }

    /// Whether it only passes a call on, so that the function within stands beside it on a stack unless it was inlined.
    pub(super) fn passes_on(self) -> bool {
        match self {
            Self::PartialApply | Self::DispatchThunk | Self::TableThunk | Self::Witness => true,
            Self::CurryThunk | Self::ObjectiveC | Self::Bridge => true,
            Self::Merged | Self::Specialized | Self::Part | Self::OneTime | Self::FunctionPointer => false,
            Self::Reabstraction | Self::Outlined | Self::ValueWitness => false,
        }
    }

    /// What the simplified name has for it.
    pub(super) fn simplified(self) -> &'static str {
        match self {
            Self::Part | Self::Merged | Self::TableThunk => "",
            Self::ObjectiveC => "@objc ",
            Self::Bridge => "",
            Self::Specialized => "specialized ",
            Self::PartialApply => "partial apply for ",
            Self::DispatchThunk => "dispatch thunk of ",
            Self::Witness => "protocol witness for ",
            Self::CurryThunk => "curry thunk of ",
            Self::Reabstraction => "thunk for ",
            // Told by what stands behind it.
            Self::Outlined | Self::ValueWitness => "",
            Self::OneTime => "one-time initialization function for ",
            Self::FunctionPointer => "async function pointer to ",
        }
    }
}

/// A name in its parts.
#[derive(Debug, Default)]
pub(super) struct Peeled<'n> {
    pub(super) wrappings: Vec<Wrapping>,
    /// The function, in full; of a wrapping without function what it is for.
    pub(super) inner: &'n str,
    /// The type that conforms, where the function is a protocol's.
    pub(super) conformance: Option<&'n str>,
}

/// What names begin with.
const PREFIXES: [(&str, Wrapping); 18] = [
    ("merged ", Wrapping::Merged),
    ("partial apply forwarder for ", Wrapping::PartialApply),
    ("partial apply ObjC forwarder for ", Wrapping::PartialApply),
    ("partial apply for ", Wrapping::PartialApply),
    ("dispatch thunk of ", Wrapping::DispatchThunk),
    ("curry thunk of ", Wrapping::CurryThunk),
    ("@objc ", Wrapping::ObjectiveC),
    ("@nonobjc ", Wrapping::Bridge),
    ("distributed thunk ", Wrapping::Bridge),
    ("back deployment thunk for ", Wrapping::Bridge),
    ("back deployment fallback for ", Wrapping::Bridge),
    ("one-time initialization function for ", Wrapping::OneTime),
    ("async function pointer to ", Wrapping::FunctionPointer),
    ("coro function pointer to ", Wrapping::FunctionPointer),
    ("specialized ", Wrapping::Specialized),
    ("reabstraction thunk helper from ", Wrapping::Reabstraction),
    ("reabstraction thunk from ", Wrapping::Reabstraction),
    ("thunk for ", Wrapping::Reabstraction),
];

/// What names begin with before a list in angle brackets and ` of `.
const SPECIALIZATIONS: [&str; 7] = [
    "generic specialization <",
    "generic not re-abstracted specialization <",
    "generic partial specialization <",
    "generic not-reabstracted partial specialization <",
    "generic pre-specialization <",
    "inlined generic function <",
    "function signature specialization <",
];

/// What outlined functions do.
const OUTLINED: &str = "outlined ";

/// How a value witness ends before the type.
const VALUE_WITNESS: &str = " value witness for ";

/// Takes a name apart.
pub(super) fn peel(name: &str) -> Peeled<'_> {
    let mut rest = without_clones(name);
    let mut peeled = Peeled::default();
    loop {
        if let Some(inner) = without_part(rest) {
            peeled.wrappings.push(Wrapping::Part);
            rest = inner;
        } else if let Some((inner, wrapping)) = PREFIXES.iter().find_map(|(prefix, wrapping)| {
            Some((rest.strip_prefix(prefix).filter(|inner| !inner.is_empty())?, *wrapping))
        }) {
            peeled.wrappings.push(wrapping);
            rest = inner;
            if wrapping == Wrapping::Reabstraction {
                rest = converted(rest);
                break;
            }
        } else if let Some(inner) = without_specialization(rest) {
            peeled.wrappings.push(Wrapping::Specialized);
            rest = inner;
        } else if let Some(inner) = rest.strip_prefix("reabstraction thunk helper <") {
            // The signature, then what is converted.
            let from = inner.find(" from ").map_or(inner, |at| &inner[at + " from ".len()..]);
            peeled.wrappings.push(Wrapping::Reabstraction);
            rest = converted(from);
            break;
        } else if let Some(inner) = rest.strip_prefix("protocol witness for ") {
            peeled.wrappings.push(Wrapping::Witness);
            rest = inner;
            if let Some(at) = rfind_outside(rest, " in conformance ") {
                let conformance = &rest[at + " in conformance ".len()..];
                let end = find_outside(conformance, " : ").unwrap_or(conformance.len());
                peeled.conformance = Some(&conformance[..end]);
                rest = &rest[..at];
            }
        } else if let Some(inner) = rest.strip_prefix("vtable thunk for ") {
            peeled.wrappings.push(Wrapping::TableThunk);
            rest = inner.split_once(" dispatching to ").map_or(inner, |(_, to)| to);
        } else {
            let is_outlined = rest.starts_with(OUTLINED);
            if is_outlined || find_outside(rest, VALUE_WITNESS).is_some() {
                peeled.wrappings.push(if is_outlined { Wrapping::Outlined } else { Wrapping::ValueWitness });
            }
            break;
        }
    }
    peeled.inner = rest;
    peeled
}

/// Of `A to B` the first, which the simplified name has.
fn converted(types: &str) -> &str {
    find_outside(types, " to ").map_or(types, |at| &types[..at])
}

/// Without `(1) await resume partial function for `.
fn without_part(name: &str) -> Option<&str> {
    let rest = match name.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => name,
    };
    ["await resume partial function for ", "suspend resume partial function for "]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))
        .filter(|rest| !rest.is_empty())
}

fn without_specialization(name: &str) -> Option<&str> {
    let prefix = SPECIALIZATIONS.iter().find(|prefix| name.starts_with(**prefix))?;
    let list = &name[prefix.len() - 1..];
    let end = closing_angle(list)?;
    list[end + 1..].strip_prefix(" of ").filter(|inner| !inner.is_empty())
}

/// A name without ` [clone .x]` at its end.
fn without_clones(name: &str) -> &str {
    match name.find(" [clone ") {
        Some(at) if name.ends_with(']') => &name[..at],
        _ => name,
    }
}
