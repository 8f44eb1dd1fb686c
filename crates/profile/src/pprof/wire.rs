//! A look at protobuf's wire format before it is decoded: how many messages would there be?
//!
//! An empty message takes two bytes in a file and up to a hundred in memory, so a small file could ask for much memory.

/// Wire type 2: a length and as many bytes.
const LENGTH_DELIMITED: u64 = 2;

/// Counts the length-delimited fields of a `Profile`, and those within its samples and locations, as far as the bytes
/// make sense; what does not is left to the decoder to refuse. Stops soon after `enough`.
pub(super) fn count_messages(profile: &[u8], enough: u64) -> u64 {
    const SAMPLE: u64 = 2;
    const LOCATION: u64 = 4;
    let mut count = 0;
    let mut fields = Fields { rest: profile };
    while let Some((number, content)) = fields.next() {
        count += 1;
        if number == SAMPLE || number == LOCATION {
            let mut nested = Fields { rest: content };
            while nested.next().is_some() {
                count += 1;
            }
        }
        if count > enough {
            break;
        }
    }
    count
}

/// Whether a beginning is that of a `Profile`: known fields, the first of them several, up to where it ends.
pub(crate) fn begins_well(beginning: &[u8]) -> bool {
    const LAST_FIELD: u64 = 15;
    let mut fields = Fields { rest: beginning };
    let mut count = 0;
    while let Some((number, _)) = fields.next() {
        if number == 0 || number > LAST_FIELD {
            return false;
        }
        count += 1;
    }
    count > 1
}

/// The length-delimited fields of a message; the others are skipped.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let key = self.varint()?;
            let skipped = match key & 7 {
                0 => {
                    self.varint()?;
                    continue;
                }
                1 => 8,
                LENGTH_DELIMITED => {
                    let len = usize::try_from(self.varint()?).ok()?;
                    return Some((key >> 3, self.take(len)?));
                }
                5 => 4,
                _ => return None,
            };
            self.take(skipped)?;
        }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::count_messages;

    #[test]
    fn messages_are_counted_with_those_within_samples() {
        // Two empty samples; one with two empty labels; a time; a fixed-size field.
        let bytes = [0x12, 0, 0x12, 0, 0x12, 4, 0x1a, 0, 0x1a, 0, 0x48, 0x96, 1, 0x7d, 1, 2, 3, 4];
        assert_eq!(count_messages(&bytes, 100), 5);
    }

    #[test]
    fn what_makes_no_sense_ends_the_count() {
        assert_eq!(count_messages(&[0x12, 0, 0x12, 200], 100), 1);
        assert_eq!(count_messages(&[0x12, 0, 0xff, 0xff], 100), 1);
        assert_eq!(count_messages(&[0xff; 40], 100), 0);
        assert_eq!(count_messages(&[0x12, 0].repeat(50), 10), 11);
    }
}
