//! What two recordings measured by the same rules.
//!
//! | | |
//! |---|---|
//! | all allocations were counted on one side, some were sampled on the other | refused |
//! | all blocks on one side, those that were live at some time on the other | refused |
//! | bytes are known on one side only | bytes are not compared |
//! | blocks were followed on one side only, sampled at other rates, by other tools | compared, and told as a [`Condition`](super::Condition) |

use super::Side;
use crate::Error;
use crate::model::{Metric, Profile};

/// Makes two profiles comparable: takes out of both what one of them does not know. To be called before
/// [`diff`](super::diff()) with profiles that other tools may have written.
///
/// # Errors
/// [`Error::Incomparable`] where numbers of one are no measure for those of the other.
pub fn level(base: &mut Profile, change: &mut Profile) -> Result<(), Error> {
    let sides = [&*base, &*change];
    let differing = |words: fn(&Profile) -> &'static str| {
        let [base, change] = sides.map(words);
        if base == change { Ok(()) } else { Err(Error::Incomparable { base, change }) }
    };
    differing(|profile| {
        match profile.environment.origin.as_ref().is_some_and(|of| !of.sampling.is_empty()) {
            true => "a sample of the allocations",
            false => "all allocations",
        }
    })?;
    differing(|profile| match profile.environment.origin.as_ref().is_some_and(|of| of.live_only) {
        true => "blocks that were live when the file was written",
        false => "all blocks",
    })?;
    let knows = [Side::Base, Side::Change].map(|side| sides[side.index()].environment.knows(Metric::Bytes));
    if knows != [true, true] {
        for row in [base, change].into_iter().flat_map(|profile| &mut profile.rows) {
            row.counts.bytes = 0;
            row.repeats.iter_mut().for_each(|value| value.bytes = 0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counts, Origin, Row};

    fn profile(origin: Option<Origin>) -> Profile {
        let row = Row { counts: Counts { allocations: 3, bytes: 24, ..Counts::default() }, ..Row::default() };
        let mut profile = Profile { rows: vec![row], ..Profile::default() };
        profile.environment.origin = origin;
        profile
    }

    #[test]
    fn samples_are_not_compared_with_counts() {
        let sampled = || profile(Some(Origin { sampling: "one in 512".into(), ..Origin::default() }));
        let live = || profile(Some(Origin { live_only: true, ..Origin::default() }));
        for (mut base, mut change, is_refused) in [
            (sampled(), profile(None), true),
            (profile(None), sampled(), true),
            (live(), profile(None), true),
            (sampled(), sampled(), false),
            (profile(Some(Origin::default())), profile(None), false),
        ] {
            let outcome = level(&mut base, &mut change);
            assert_eq!(outcome.is_err(), is_refused, "{outcome:?}");
        }
        let refused = level(&mut sampled(), &mut profile(None)).expect_err("refused").to_string();
        assert!(
            refused.contains("a sample of the allocations") && refused.contains("all allocations"),
            "{refused}"
        );
    }

    #[test]
    fn bytes_of_one_side_are_not_compared() {
        let (mut base, mut change) = (profile(None), profile(None));
        level(&mut base, &mut change).expect("comparable");
        assert_eq!(base.rows[0].counts.bytes, 24);
        change.environment.unknown.insert(Metric::Bytes);
        level(&mut base, &mut change).expect("comparable");
        assert_eq!([base.rows[0].counts.bytes, change.rows[0].counts.bytes], [0, 0]);
        assert_eq!(base.rows[0].counts.allocations, 3);
    }
}
