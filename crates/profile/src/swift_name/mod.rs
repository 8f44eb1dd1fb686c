//! Names of Swift functions, as its demangler writes them in full: what is wrapped around a function, and the name that people
//! read.
//!
//! ```text
//! full          (1) await resume partial function for partial apply forwarder for closure #1 (Swift.Int) -> () in a.f(x: Swift.Int) -> ()
//! simplified    partial apply for closure #1 in f(x:)         as `swift demangle -simplified` has it
//! function      closure #1 in f(x:)                           without what is wrapped around it
//! ```
//! Compilers wrap functions as they need it: a copy that is specialized, a part that goes on behind a suspension, a thunk. Another
//! build has others, or none. A text that is no name of Swift comes back as it is.

mod frame;
mod mangled;
mod module;
mod path;
mod scan;
mod wrapping;

use std::borrow::Cow;

use crate::model::Function;

pub use frame::{SwiftFrame, SwiftFrames};
pub use module::module;
pub use wrapping::Wrapping;

/// Whether a function is one of Swift, by its name in the file or else by its source.
pub fn is_swift(function: &Function) -> bool {
    mangled::is_mangled(&function.system_name)
        || function.system_name.starts_with(mangled::ASYNC_MAIN)
        || function.file.ends_with(".swift")
}

/// What is wrapped around a function of Swift, the outermost first.
pub fn wrappings(name: &str) -> Vec<Wrapping> {
    if mangled::is_mangled(name) {
        return mangled::peel(name).1;
    }
    wrapping::peel(name).wrappings
}

/// Longer names stay as they are, as Swift's demangler leaves them.
const LONGEST: usize = 4096;

/// The simplified name.
pub fn simplified(name: &str) -> String {
    if name.len() > LONGEST || mangled::is_mangled(name) {
        return name.to_owned();
    }
    let peeled = wrapping::peel(name);
    let mut text = String::new();
    let mut is_specialized = false;
    for wrapping in &peeled.wrappings {
        let word = wrapping.simplified();
        if *wrapping == Wrapping::Specialized && std::mem::replace(&mut is_specialized, true) {
            continue;
        }
        text.push_str(word);
    }
    text.push_str(&match peeled.wrappings.last() {
        Some(Wrapping::Reabstraction) => path::simplified_type(peeled.inner),
        _ => path::simplified(peeled.inner),
    });
    if let Some(conformance) = peeled.conformance {
        text.push_str(" in conformance ");
        text.push_str(&path::simplified_type(conformance));
    }
    text
}

/// The simplified name of the function within its wrappings; empty: there is none, the wrapping stands for itself (a thunk between two
/// types, an outlined copy).
pub fn function(name: &str) -> String {
    if let Some(rest) = name.strip_prefix(mangled::ASYNC_MAIN)
        && mangled::is_part(rest)
    {
        return mangled::ASYNC_MAIN.to_owned();
    }
    if mangled::is_mangled(name) {
        let (base, wrappings) = mangled::peel(name);
        let is_none = wrappings.iter().any(|wrapping| !wrapping.has_function());
        return if is_none { String::new() } else { base.to_owned() };
    }
    if name.len() > LONGEST {
        return name.to_owned();
    }
    let peeled = wrapping::peel(name);
    if peeled.wrappings.iter().any(|wrapping| !wrapping.has_function()) {
        return String::new();
    }
    let text = path::simplified(peeled.inner);
    match peeled.conformance {
        // The requirement's name belongs to a protocol; what is called is the type's.
        Some(of_type) => path::implemented(&path::simplified_type(of_type), &text),
        None => text,
    }
}

/// The full name of the function within its wrappings, as it is compared between builds; the whole name where there is none.
pub fn full_function(name: &str) -> Cow<'_, str> {
    if let Some(rest) = name.strip_prefix(mangled::ASYNC_MAIN)
        && mangled::is_part(rest)
    {
        return Cow::Borrowed(mangled::ASYNC_MAIN);
    }
    if mangled::is_mangled(name) {
        return Cow::Borrowed(mangled::peel(name).0);
    }
    let peeled = wrapping::peel(name);
    if peeled.wrappings.is_empty() || peeled.wrappings.iter().any(|wrapping| !wrapping.has_function()) {
        return Cow::Borrowed(name);
    }
    match peeled.conformance {
        Some(of_type) => Cow::Owned(path::implemented(of_type, peeled.inner)),
        None => Cow::Borrowed(peeled.inner),
    }
}

#[cfg(test)]
mod tests;
