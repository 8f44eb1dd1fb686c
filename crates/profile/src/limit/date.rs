//! Days, for what holds until one.

use std::fmt;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// The year.
    pub year: u16,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
}

impl Date {
    /// The day of a time, in seconds after the start of 1970 in UTC.
    pub fn of_unix_seconds(seconds: u64) -> Self {
        let mut days = seconds / 86_400;
        let mut year: u16 = 1970;
        loop {
            let length = if is_leap(year) { 366 } else { 365 };
            if days < length || year == u16::MAX {
                break;
            }
            days -= length;
            year += 1;
        }
        let february = if is_leap(year) { 29 } else { 28 };
        let mut month: u8 = 1;
        for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if days < length {
                break;
            }
            days -= length;
            month += 1;
        }
        Self { year, month, day: u8::try_from(days + 1).unwrap_or(31) }
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (86_400, "1970-01-02"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_796_169_600, "2026-12-02"),
            (4_107_542_400, "2100-03-01"),
            (1_767_225_599, "2025-12-31"),
        ] {
            assert_eq!(Date::of_unix_seconds(seconds).to_string(), day);
        }
    }
}
