//! One thing that was looked at, and what it means for a recording.

use serde::Serialize;

use crate::exit::Failure;

/// How much a finding matters. The order is that of the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// All is well.
    Ok,
    /// Good to know; nothing is missing for it.
    Note,
    /// It can be recorded, and something will be missing or hard to read.
    Warning,
    /// It cannot be recorded.
    Problem,
}

impl Level {
    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a check found. The texts are one line each, with everything in them visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at: a name that stays the same from version to version.
    pub(crate) check: &'static str,
    /// How much it matters.
    pub(crate) level: Level,
    /// What was found.
    pub(crate) found: String,
    /// What to do; `None`: nothing.
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), advice: None }
    }

    pub(crate) fn note(check: &'static str, found: impl Into<String>) -> Self {
        Self { level: Level::Note, ..Self::ok(check, found) }
    }

    pub(crate) fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::ok(check, found) }.advise(advice)
    }

    pub(crate) fn problem(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Problem, ..Self::ok(check, found) }.advise(advice)
    }

    /// Says what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// It and what to do, as `heaptally run` says it.
    pub(crate) fn in_a_line(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{}; {advice}", self.found),
            None => self.found.clone(),
        }
    }

    /// A refusal in the words in which `heaptally run` says it: the last line is what to do.
    pub(crate) fn of_failure(check: &'static str, failure: &Failure) -> Self {
        match failure.message.rsplit_once('\n') {
            Some((found, advice)) => Self::problem(check, found.replace('\n', "; "), advice),
            None => Self { level: Level::Problem, ..Self::ok(check, failure.message.clone()) },
        }
    }
}

/// A number with the right form of the word behind it.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", with_commas(number), if number == 1 { one } else { many })
}

/// A number in groups of three digits.
pub(crate) fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in the largest unit of which it is a whole or a large number.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = UNITS
        .iter()
        .find(|(shift, _)| bytes >= 10 << shift || (bytes >> shift > 0 && bytes << (64 - shift) == 0));
    match unit {
        Some((shift, unit)) => format!("{} {unit}", with_commas(bytes >> shift)),
        None => count(bytes, "byte", "bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_refusal_is_the_advice() {
        let finding = Finding::of_failure("check", &Failure::recorder("a\nb\nc"));
        assert_eq!((finding.found.as_str(), finding.advice.as_deref()), ("a; b", Some("c")));
        let finding = Finding::of_failure("check", &Failure::recorder("a"));
        assert_eq!((finding.found.as_str(), finding.advice), ("a", None));
    }

    #[test]
    fn sizes_have_their_units() {
        let sizes = [0, 1, 1024, 1025, 10 << 10, 1 << 20, (1 << 20) + 1, 1 << 40, u64::MAX].map(size);
        let expected = [
            "0 bytes",
            "1 byte",
            "1 KiB",
            "1,025 bytes",
            "10 KiB",
            "1 MiB",
            "1,024 KiB",
            "1 TiB",
            "16,777,215 TiB",
        ];
        assert_eq!(sizes, expected);
    }
}
