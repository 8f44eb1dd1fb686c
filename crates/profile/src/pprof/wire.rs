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
    let mut fields = Fields::new(profile);
    while let Some((number, content)) = fields.next_bytes() {
        count += 1;
        if number == SAMPLE || number == LOCATION {
            let mut nested = Fields::new(content);
            while nested.next_bytes().is_some() {
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
    let mut fields = Fields::new(beginning);
    let mut count = 0;
    while let Some((number, _)) = fields.next_bytes() {
        if number == 0 || number > LAST_FIELD {
            return false;
        }
        count += 1;
    }
    count > 1
}

/// Whether the fields of a `Profile` fill the bytes, and types of samples are among them. What is within them is not
/// looked at.
pub(crate) fn has_sample_types(profile: &[u8]) -> bool {
    const SAMPLE_TYPE: u64 = 1;
    let mut fields = Fields::new(profile);
    let mut found = false;
    while !fields.is_at_end() {
        match fields.next() {
            Some(Field { number: 0, .. }) | None => return false,
            Some(field) => found |= field.number == SAMPLE_TYPE && matches!(field.content, Content::Bytes(_)),
        }
    }
    found
}

/// Whether a message begins as a `Profile` does that other tools write: known fields, and a type of samples among the first of
/// them. Its end may be damaged.
pub(crate) fn begins_with_sample_types(beginning: &[u8]) -> bool {
    const SAMPLE_TYPE: u64 = 1;
    const FIRST_FIELDS: usize = 8;
    let mut fields = Fields::new(beginning);
    let found = (0..FIRST_FIELDS).map_while(|_| fields.next()).any(|field| {
        let Field { number: SAMPLE_TYPE, content: Content::Bytes(of), .. } = field else { return false };
        let mut numbers = Fields::new(of);
        while let Some(field) = numbers.next() {
            // Its type and its unit.
            if !matches!(field, Field { number: 1 | 2, content: Content::Number, .. }) {
                return false;
            }
        }
        numbers.is_at_end()
    });
    found && begins_well(beginning)
}

/// Where the first field begins that ends beyond the message, or that `is_sound` denies; the message's length if there is
/// none.
pub(super) fn first_damage(message: &[u8], is_sound: impl Fn(&[u8]) -> bool) -> usize {
    let mut fields = Fields::new(message);
    loop {
        let at = message.len() - fields.rest.len();
        match fields.next() {
            Some(field) if is_sound(field.whole) => {}
            _ => return at,
        }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) content: Content<'a>,
    /// It with its key and its length.
    pub(super) whole: &'a [u8],
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// A message, a text or packed numbers.
    Bytes(&'a [u8]),
    /// A number, of whatever size.
    Number,
}

/// The fields of a message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field; `None` at the end, and where the bytes make no sense.
    pub(super) fn next(&mut self) -> Option<Field<'a>> {
        let start = self.rest;
        let key = self.number()?;
        let content = match key & 7 {
            0 => {
                self.number()?;
                Content::Number
            }
            LENGTH_DELIMITED => {
                let len = usize::try_from(self.number()?).ok()?;
                Content::Bytes(self.take(len)?)
            }
            1 => self.take(8).map(|_| Content::Number)?,
            5 => self.take(4).map(|_| Content::Number)?,
            _ => return None,
        };
        let whole = start.get(..start.len() - self.rest.len())?;
        Some(Field { number: key >> 3, content, whole })
    }

    /// The next field with a length: its number, and what it holds.
    fn next_bytes(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            if let Field { number, content: Content::Bytes(content), .. } = self.next()? {
                return Some((number, content));
            }
        }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// A number of variable length.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                // Of the tenth byte one bit belongs to the number.
                return (shift < 63 || byte <= 1).then_some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{begins_with_sample_types, count_messages, first_damage};

    #[test]
    fn messages_are_counted_with_those_within_samples() {
        // Two empty samples; one with two empty labels; a time; a fixed-size field.
        let bytes = [0x12, 0, 0x12, 0, 0x12, 4, 0x1a, 0, 0x1a, 0, 0x48, 0x96, 1, 0x7d, 1, 2, 3, 4];
        assert_eq!(count_messages(&bytes, 100), 5);
    }

    #[test]
    fn the_first_field_that_makes_no_sense_is_found() {
        let sound = [0x12, 0, 0x48, 5, 0x32, 1, b'a'];
        assert_eq!(first_damage(&sound, |_| true), sound.len());
        assert_eq!(first_damage(&sound, |field| !field.ends_with(b"a")), 4);
        assert_eq!(first_damage(&sound[..6], |_| true), 4, "cut within the text");
        assert_eq!(first_damage(&sound[..3], |_| true), 2, "cut within the number");
    }

    #[test]
    fn a_beginning_with_sample_types_may_have_any_end() {
        let message = [0x0a, 4, 8, 1, 16, 2, 0x12, 2, 8, 1, 0x12, 2, 8];
        assert!(begins_with_sample_types(&message));
        assert!(begins_with_sample_types(&[&[0x60, 9], &message[..]].concat()), "a period before it");
        // A text in the place of the type; no type; nothing behind.
        assert!(!begins_with_sample_types(&[0x0a, 2, 0x0a, 0, 0x12, 0]));
        assert!(!begins_with_sample_types(&message[6..]));
        assert!(!begins_with_sample_types(&message[..6]));
    }

    #[test]
    fn what_makes_no_sense_ends_the_count() {
        assert_eq!(count_messages(&[0x12, 0, 0x12, 200], 100), 1);
        assert_eq!(count_messages(&[0x12, 0, 0xff, 0xff], 100), 1);
        assert_eq!(count_messages(&[0xff; 40], 100), 0);
        assert_eq!(count_messages(&[0x12, 0].repeat(50), 10), 11);
    }
}
