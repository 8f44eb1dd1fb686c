//! Functions, each once: those of a part of one module, and those of the profile.

use std::borrow::Cow;
use std::collections::HashMap;

use heaptally_profile::model::{Function, FunctionId};

use crate::demangle::demangle_all;

/// Which function it is, by where its texts lie: looked-up frames share them, so none is read again.
type Place = (usize, usize, usize, usize, usize, bool);

/// The functions that one thread found, in the order in which it met them first.
///
/// PERF: 50,000 addresses with 203,000 frames of 13,700 functions took 1.75 G instructions in all when frames were told
/// apart by their texts, and 1.05 G by where these lie.
#[derive(Debug, Default)]
pub(crate) struct FoundFunctions<'c> {
    ids: HashMap<Place, usize>,
    /// Those without a name of their own (`libfoo.so+0x1234`), by their text.
    synthetic: HashMap<(String, &'c str), usize>,
    functions: Vec<FoundFunction<'c>>,
}

#[derive(Debug)]
struct FoundFunction<'c> {
    system_name: Cow<'c, [u8]>,
    /// Its name for people, where it is not what the demangler makes of the other.
    name: Option<&'c str>,
    file: &'c str,
    is_folded: bool,
}

impl<'c> FoundFunctions<'c> {
    /// The index of a function. `name` is its name for people where that is not the demangled system name; each function
    /// has one text of it.
    pub(crate) fn intern(
        &mut self,
        system_name: &'c [u8],
        name: Option<&'c str>,
        file: &'c str,
        is_folded: bool,
    ) -> usize {
        let place = (
            system_name.as_ptr().addr(),
            system_name.len(),
            name.map_or(0, |name| name.as_ptr().addr()),
            file.as_ptr().addr(),
            file.len(),
            is_folded,
        );
        let next = self.functions.len();
        let id = *self.ids.entry(place).or_insert(next);
        if id == next {
            let system_name = Cow::Borrowed(system_name);
            self.functions.push(FoundFunction { system_name, name, file, is_folded });
        }
        id
    }

    /// The index of a function whose name is made up.
    pub(crate) fn intern_synthetic(&mut self, name: String, file: &'c str) -> usize {
        let next = self.functions.len();
        let id = *self.synthetic.entry((name.clone(), file)).or_insert(next);
        if id == next {
            self.functions.push(FoundFunction {
                system_name: Cow::Owned(name.into_bytes()),
                name: None,
                file,
                is_folded: false,
            });
        }
        id
    }

    /// The functions, with their names for people.
    pub(crate) fn into_functions(self) -> Vec<Function> {
        let system_names: Vec<String> = self
            .functions
            .iter()
            .map(|found| String::from_utf8_lossy(&found.system_name).into_owned())
            .collect();
        let names = demangle_all(&system_names.iter().map(String::as_str).collect::<Vec<_>>());
        names
            .into_iter()
            .zip(system_names)
            .zip(self.functions)
            .map(|((name, system_name), found)| Function {
                name: found.name.map_or(name, str::to_owned),
                system_name,
                file: found.file.to_owned(),
                is_folded: found.is_folded,
            })
            .collect()
    }
}

/// The functions of a profile, each once.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    functions: Vec<Function>,
    ids: HashMap<Function, FunctionId>,
    next: FunctionId,
}

impl FunctionTable {
    /// Begins with those that a profile has.
    pub(crate) fn new(functions: Vec<Function>) -> Self {
        let mut ids = HashMap::new();
        for (id, function) in functions.iter().enumerate() {
            ids.entry(function.clone()).or_insert(id);
        }
        Self { next: functions.len(), functions, ids }
    }

    /// The index of a function.
    pub(crate) fn intern(&mut self, function: Function) -> FunctionId {
        let id = *self.ids.entry(function).or_insert(self.next);
        if id == self.next {
            self.next += 1;
        }
        id
    }

    /// All functions.
    pub(crate) fn into_functions(mut self) -> Vec<Function> {
        let known = self.functions.len();
        self.functions.resize_with(self.next, Function::default);
        for (function, id) in self.ids {
            if id >= known
                && let Some(slot) = self.functions.get_mut(id)
            {
                *slot = function;
            }
        }
        self.functions
    }
}
