//! What profiles must have in common for their numbers to go together.

use std::collections::BTreeSet;

use crate::Error;
use crate::model::{Environment, Metric, Origin, Profile};

/// What must be the same in all profiles, as far as it is known.
#[derive(Default)]
pub(super) struct Conditions<'p> {
    first: Option<&'p Environment>,
    recorder: Option<&'p str>,
    architecture: Option<&'p str>,
    libc: Option<&'p str>,
    lifetimes: Option<bool>,
    task_origins: Option<bool>,
}

impl<'p> Conditions<'p> {
    /// Takes one more environment.
    pub(super) fn check(&mut self, environment: &'p Environment) -> Result<(), Error> {
        check_alike(self.first.get_or_insert(environment), environment)?;
        text("the recorder", &mut self.recorder, &environment.recorder)?;
        text("the architecture", &mut self.architecture, &environment.architecture)?;
        text("the C library", &mut self.libc, &environment.libc)?;
        let joined = [environment.task_origins, *self.task_origins.get_or_insert(environment.task_origins)];
        if joined[0] != joined[1] {
            let [found, expected] = joined.map(|joined| joined.to_string());
            return Err(Error::Unlike {
                what: "whether tasks were joined to what created them",
                found,
                expected,
            });
        }
        let lifetimes = environment.lifetimes;
        let expected = *self.lifetimes.get_or_insert(lifetimes);
        if lifetimes == expected {
            return Ok(());
        }
        let (found, expected) = (lifetimes.to_string(), expected.to_string());
        Err(Error::Unlike { what: "whether blocks were followed", found, expected })
    }
}

/// Compares what was counted, and how: that is never unknown.
fn check_alike(expected: &Environment, found: &Environment) -> Result<(), Error> {
    let origin = |of: &Environment| of.origin.clone().unwrap_or_default();
    let (one, other) = (origin(expected), origin(found));
    let quoted = |text: &str, none: &str| match text {
        "" => none.to_owned(),
        text => format!("\"{}\"", text.escape_debug()),
    };
    let mut differences = [
        ("what wrote it", [&one, &other].map(|of| quoted(&of.format, "heaptally"))),
        ("the sampling", [&one, &other].map(|of| quoted(&of.sampling, "none"))),
        (
            "what is counted",
            [&one, &other].map(|of| if of.live_only { "live blocks" } else { "all" }.to_owned()),
        ),
        ("what is not known", [expected, found].map(|of| format!("{:?}", of.unknown).to_lowercase())),
    ]
    .into_iter()
    .filter(|(_, [expected, found])| expected != found);
    match differences.next() {
        Some((what, [expected, found])) => Err(Error::Unlike { what, found, expected }),
        None => Ok(()),
    }
}

/// Makes two recordings comparable: what one of them did not measure is forgotten of the other, too.
///
/// # Errors
/// [`Error::Unlike`] where the numbers of one do not stand for the same as those of the other: estimates out of samples
/// beside exact ones, live blocks beside all.
pub fn make_comparable(base: &mut Profile, change: &mut Profile) -> Result<(), Error> {
    let origin = |of: &Profile| of.environment.origin.clone().unwrap_or_default();
    let (one, other) = (origin(base), origin(change));
    let sampling = |of: &Origin| match of.sampling.as_str() {
        "" => "none".to_owned(),
        sampling => format!("\"{}\"", sampling.escape_debug()),
    };
    if one.sampling.is_empty() != other.sampling.is_empty() {
        let (found, expected) = (sampling(&other), sampling(&one));
        return Err(Error::Unlike { what: "the sampling", found, expected });
    }
    if one.live_only != other.live_only {
        let counted = |live_only: bool| if live_only { "live blocks" } else { "all allocations" }.to_owned();
        let (found, expected) = (counted(other.live_only), counted(one.live_only));
        return Err(Error::Unlike { what: "what is counted", found, expected });
    }
    let unknown: BTreeSet<Metric> =
        base.environment.unknown.union(&change.environment.unknown).copied().collect();
    if unknown.contains(&Metric::Bytes) {
        for profile in [base, change] {
            profile.environment.unknown.insert(Metric::Bytes);
            for row in &mut profile.rows {
                row.counts.bytes = 0;
                row.repeats.iter_mut().for_each(|value| value.bytes = 0);
            }
        }
    }
    Ok(())
}

/// Compares one text of the environment; one that is empty is unknown.
fn text<'p>(what: &'static str, known: &mut Option<&'p str>, found: &'p str) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    let expected = *known.get_or_insert(found);
    if found == expected {
        return Ok(());
    }
    let quoted = |text: &str| format!("\"{}\"", text.escape_debug());
    Err(Error::Unlike { what, found: quoted(found), expected: quoted(expected) })
}
