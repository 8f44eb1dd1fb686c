//! Which frames of a stack are one function of Swift.
//!
//! ```text
//! closure #1 in f()                       closure #1 in f()
//! partial apply for closure #1 in f()     the same, passed on
//! thunk for @escaping () -> ()            nobody's
//! specialized g()                         g()
//! g()                                     the same: what its copy was made of calls that
//! g()                                     g() again, a recursion
//! ```

use std::collections::HashMap;

use super::{Wrapping, function, is_swift, wrappings};
use crate::model::{FunctionId, Profile};

/// What is known of a function in a stack. Of one that is not Swift's: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwiftFrame {
    /// The function within its wrappings, by a number of its own in the profile, from 1; 0: none.
    function: u32,
    /// It only passes calls on to that.
    passes_on: bool,
    /// It is a copy of that.
    is_copy: bool,
    is_nobodys: bool,
}

impl SwiftFrame {
    /// The function within its wrappings: equal ones have equal numbers in a profile.
    pub fn function(self) -> Option<u32> {
        (self.function != 0).then_some(self.function)
    }

    /// Whether it stands for no function: it converts, copies or destroys values on behalf of others.
    pub fn is_nobodys(self) -> bool {
        self.is_nobodys
    }

    /// Whether it is one function with what it called.
    pub fn is_one_with(self, callee: Self) -> bool {
        self.function != 0
            && self.function == callee.function
            && (self.passes_on || (callee.is_copy && !self.is_copy))
    }
}

/// The functions of a profile, as far as they are Swift's.
#[derive(Debug, Default)]
pub struct SwiftFrames(Vec<SwiftFrame>);

impl SwiftFrames {
    /// Looks at each function once.
    pub fn new(profile: &Profile) -> Self {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut frame = |name: &str| {
            let wrappings = wrappings(name);
            let within = function(name);
            let is_nobodys = within.is_empty();
            let next = numbers.len() as u32 + 1;
            SwiftFrame {
                function: if is_nobodys { 0 } else { *numbers.entry(within).or_insert(next) },
                passes_on: wrappings.iter().any(|wrapping| wrapping.passes_on()),
                is_copy: wrappings
                    .iter()
                    .any(|wrapping| matches!(wrapping, Wrapping::Specialized | Wrapping::Merged)),
                is_nobodys,
            }
        };
        Self(
            profile
                .functions
                .iter()
                .map(|function| {
                    let is_one = is_swift(function) && !function.name.is_empty();
                    if is_one { frame(&function.name) } else { SwiftFrame::default() }
                })
                .collect(),
        )
    }

    /// What is known of a function.
    pub fn of(&self, function: FunctionId) -> SwiftFrame {
        self.0.get(function).copied().unwrap_or_default()
    }
}
