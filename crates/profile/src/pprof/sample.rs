//! Samples from their bytes. A large profile is mostly samples, and their length is known before they are decoded.
//!
//! ```text
//! sample_type … | sample sample … sample | mapping … comment
//!                 ^^^^^^^^^^^^^^^^^^^^^^ here; the rest is left to prost
//! ```
//!
//! What is not in the form that every writer uses (packed numbers, no unknown fields) is left to prost as a whole, so that
//! the same bytes are refused, for the same reasons.

use prost::Message as _;

use super::proto;
use super::wire::{Content, Field, Fields};

/// `Profile.sample`.
const SAMPLE: u64 = 2;
/// The fields of `Sample`.
const LOCATION_ID: u64 = 1;
const VALUE: u64 = 2;
const LABEL: u64 = 3;

/// As prost decodes the message. PERF: for 65,536 stacks in a third of prost's time.
pub(super) fn decode(profile: &[u8]) -> Result<proto::Profile, prost::DecodeError> {
    match parts(profile) {
        Some((sample, rest)) => Ok(proto::Profile { sample, ..proto::Profile::decode(&rest[..])? }),
        None => proto::Profile::decode(profile),
    }
}

/// The samples, and the bytes of all other fields. `None`: not in the usual form.
fn parts(profile: &[u8]) -> Option<(Vec<proto::Sample>, Vec<u8>)> {
    let (mut samples, mut rest) = (Vec::new(), Vec::new());
    let mut fields = Fields::new(profile);
    while !fields.is_at_end() {
        let field = fields.next()?;
        match field {
            Field { number: SAMPLE, content: Content::Bytes(content), .. } => samples.push(sample(content)?),
            field => rest.extend_from_slice(field.whole),
        }
    }
    Some((samples, rest))
}

fn sample(content: &[u8]) -> Option<proto::Sample> {
    let mut sample = proto::Sample::default();
    let mut fields = Fields::new(content);
    while !fields.is_at_end() {
        let Field { number, content: Content::Bytes(content), .. } = fields.next()? else { return None };
        match number {
            LOCATION_ID => numbers(content, &mut sample.location_id, |number| number)?,
            VALUE => numbers(content, &mut sample.value, |number| number as i64)?,
            LABEL => {
                if sample.label.is_empty() {
                    sample.label.reserve_exact(2);
                }
                sample.label.push(proto::Label::decode(content).ok()?);
            }
            _ => return None,
        }
    }
    Some(sample)
}

/// Adds packed numbers.
fn numbers<T>(content: &[u8], to: &mut Vec<T>, of: impl Fn(u64) -> T) -> Option<()> {
    // The last byte of each number has no highest bit.
    to.reserve_exact(content.iter().filter(|&&byte| byte < 0x80).count());
    let mut fields = Fields::new(content);
    while !fields.is_at_end() {
        to.push(of(fields.number()?));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(samples: Vec<(Vec<u64>, Vec<i64>, Vec<i64>)>, strings: Vec<String>) -> proto::Profile {
        let label = |key| proto::Label { key, str: 7, ..proto::Label::default() };
        proto::Profile {
            sample: samples
                .into_iter()
                .map(|(location_id, value, keys)| proto::Sample {
                    location_id,
                    value,
                    label: keys.into_iter().map(label).collect(),
                })
                .collect(),
            string_table: strings,
            comment: vec![1],
            ..proto::Profile::default()
        }
    }

    #[test]
    fn the_usual_form_is_decoded_here() {
        let bytes = message(vec![(vec![1, 300], vec![-1, 5], vec![2])], vec![String::new()]).encode_to_vec();
        assert!(parts(&bytes).is_some_and(|(samples, _)| samples.len() == 1));
    }

    proptest! {
        #[test]
        fn what_is_written_is_decoded_as_by_prost(
            samples in prop::collection::vec(
                (
                    prop::collection::vec(any::<u64>(), 0..5),
                    prop::collection::vec(any::<i64>(), 0..5),
                    prop::collection::vec(any::<i64>(), 0..3),
                ),
                0..6,
            ),
            strings in prop::collection::vec("[a-z]{0,4}", 0..4),
        ) {
            let bytes = message(samples, strings).encode_to_vec();
            prop_assert!(parts(&bytes).is_some());
            prop_assert_eq!(decode(&bytes), proto::Profile::decode(&bytes[..]));
        }

        #[test]
        fn other_bytes_are_decoded_as_by_prost(
            samples in prop::collection::vec(
                (prop::collection::vec(any::<u64>(), 0..3), prop::collection::vec(any::<i64>(), 0..3), prop::collection::vec(any::<i64>(), 0..2)),
                0..4,
            ),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            end in any::<prop::sample::Index>(),
        ) {
            let mut bytes = message(samples, vec!["a".to_owned()]).encode_to_vec();
            let len = bytes.len();
            for (at, byte) in damage {
                bytes[at.index(len)] = byte;
            }
            bytes.truncate(end.index(len) + 1);
            let known = proto::Profile::decode(&bytes[..]);
            match decode(&bytes) {
                Ok(message) => prop_assert_eq!(Ok(message), known),
                Err(_) => prop_assert!(known.is_err()),
            }
        }
    }
}
