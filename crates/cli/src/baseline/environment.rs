//! Baselines of another place: built by another compiler, or run with another C library, allocator or machine.
//!
//! That is a note of every comparison (`conditions` of a diff); on request it is an error.

use heaptally_profile::diff::Condition;
use heaptally_report::text::diff::words;

use crate::exit::{Failure, UNREADABLE};

/// Refuses a comparison over two places, naming both sides of all that differs.
pub(crate) fn require_same(conditions: &[Condition]) -> Result<(), Failure> {
    let unlike: Vec<String> =
        conditions.iter().filter(|condition| condition.what.is_of_place()).map(words).collect();
    if unlike.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        UNREADABLE,
        format!(
            "--same-environment: the profiles are not of the same environment\n{}\n\
             record the base again here, or leave --same-environment out to compare all the same",
            unlike.join("\n")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use heaptally_profile::diff::What;

    use super::*;

    #[test]
    fn another_place_is_an_error_that_names_both_sides() {
        let condition =
            |what, base: &str, change: &str| Condition { what, values: [base.to_owned(), change.to_owned()] };
        require_same(&[condition(What::Recorder, "0.1", "0.2"), condition(What::Incomplete, "1", "2")])
            .unwrap();
        let failure = require_same(&[
            condition(What::Compilers, "rustc 1.94", "rustc 1.95"),
            condition(What::Machine, "a, 2 processors", "b, 4 processors"),
        ])
        .unwrap_err();
        assert_eq!(failure.code, UNREADABLE);
        for word in ["rustc 1.94 in the base, rustc 1.95 in the change", "b, 4 processors"] {
            assert!(failure.message.contains(word), "{failure}");
        }
    }
}
