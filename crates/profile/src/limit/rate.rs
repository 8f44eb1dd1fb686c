//! Counts per iteration and the numbers that limits state, exact.
//!
//! No limit is decided by a floating-point number: 76/1000 is 76/1000, `0.3` is 3/10, and `10 %` of 10 is 1.

use std::fmt;

use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedMul, CheckedSub};

/// So many digits a stated number may have before and behind its point together: what is computed from it fits then.
const MOST_DIGITS: usize = 15;
/// … and so many behind it.
const MOST_DECIMALS: usize = 9;

/// A number that is not negative, exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(Ratio<u128>);

impl Rate {
    /// Nothing.
    pub const ZERO: Self = Self(Ratio::new_raw(0, 1));

    /// A count divided by iterations; none count as one.
    pub fn new(count: u64, iterations: u64) -> Self {
        Self(Ratio::new(u128::from(count), u128::from(iterations.max(1))))
    }

    /// The number that a text states: `75`, `4_114`, `0.3`. `None` for what is no such number, or has more than 15
    /// digits, 9 of them behind the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| {
            part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
                && !part.starts_with('_')
                && !part.ends_with('_')
        };
        if whole.is_empty() || !is_number(whole) || !is_number(decimals) || text.ends_with('.') {
            return None;
        }
        let digits: String =
            whole.chars().chain(decimals.chars()).filter(|character| *character != '_').collect();
        let behind = decimals.chars().filter(|character| *character != '_').count();
        if digits.trim_start_matches('0').len() > MOST_DIGITS || behind > MOST_DECIMALS {
            return None;
        }
        let denominator = 10_u128.checked_pow(u32::try_from(behind).ok()?)?;
        Some(Self(Ratio::new(digits.parse().ok()?, denominator)))
    }

    /// The sum; the highest number where it does not fit.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.checked_add(&other.0).unwrap_or(Ratio::new_raw(u128::MAX, 1)))
    }

    /// The difference, not below nothing.
    pub fn minus(self, other: Self) -> Self {
        if other >= self {
            return Self::ZERO;
        }
        Self(self.0.checked_sub(&other.0).unwrap_or(Ratio::new_raw(0, 1)))
    }

    /// So many percent of it.
    pub fn percent(self, percent: Self) -> Self {
        let hundredth = Ratio::new(1, 100);
        let product = percent.0.checked_mul(&hundredth).and_then(|share| self.0.checked_mul(&share));
        Self(product.unwrap_or(Ratio::new_raw(u128::MAX, 1)))
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        *self.0.numer() == 0
    }

    /// As near as a floating-point number comes: to show it, not to decide by it.
    pub fn to_f64(self) -> f64 {
        *self.0.numer() as f64 / *self.0.denom() as f64
    }

    /// It with so many decimals, the last one rounded.
    pub fn rounded(self, decimals: usize) -> String {
        self.written(decimals, |twice_rest, denominator| twice_rest >= denominator)
    }

    /// The least number with so many decimals that is not below it.
    pub fn rounded_up(self, decimals: usize) -> String {
        self.written(decimals, |twice_rest, _| twice_rest > 0)
    }

    /// Whether it can be written with so many decimals.
    pub fn has_decimals(self, decimals: usize) -> bool {
        let scale = u32::try_from(decimals).ok().and_then(|decimals| 10_u128.checked_pow(decimals));
        scale.is_some_and(|scale| scale.is_multiple_of(*self.0.denom()))
    }

    fn written(self, decimals: usize, is_up: impl Fn(u128, u128) -> bool) -> String {
        let denominator = *self.0.denom();
        let mut whole = self.0.numer() / denominator;
        let mut rest = self.0.numer() % denominator;
        let mut digits = Vec::with_capacity(decimals);
        for _ in 0..decimals {
            // Long division: `rest` is below the denominator, which is at most 2^64 times a power of ten.
            rest = rest.saturating_mul(10);
            digits.push(u8::try_from(rest / denominator).unwrap_or(9).min(9));
            rest %= denominator;
        }
        if is_up(rest.saturating_mul(2), denominator) {
            let mut carries = true;
            for digit in digits.iter_mut().rev() {
                if !carries {
                    break;
                }
                carries = *digit == 9;
                *digit = if carries { 0 } else { *digit + 1 };
            }
            whole = whole.saturating_add(u128::from(carries));
        }
        let mut text = whole.to_string();
        if !digits.is_empty() {
            text.push('.');
            text.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
        }
        text
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::*;

    fn big(numerator: u64, denominator: u64) -> BigRational {
        BigRational::new(numerator.into(), denominator.max(1).into())
    }

    fn rate(text: &str) -> Rate {
        Rate::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_read_exactly() {
        assert_eq!(rate("0.3"), Rate::new(3, 10));
        assert_eq!(rate("4_114"), Rate::new(4114, 1));
        assert_eq!(rate("75.50"), Rate::new(151, 2));
        for wrong in
            ["", ".", ".5", "5.", "-1", "1e3", "1.2.3", "_1", "1_", "1234567890123456", "0.1234567891"]
        {
            assert_eq!(Rate::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ten_percent_of_ten_is_one() {
        let allowed = Rate::new(10, 1).plus(Rate::new(10, 1).percent(rate("10")));
        assert!(Rate::new(11, 1) <= allowed && Rate::new(12, 1) > allowed);
        assert!(Rate::new(110, 10) <= allowed && Rate::new(111, 10) > allowed);
        assert_eq!(Rate::ZERO.percent(rate("10")), Rate::ZERO);
    }

    #[test]
    fn numbers_are_written_with_decimals() {
        assert_eq!(Rate::new(1, 3).rounded(2), "0.33");
        assert_eq!(Rate::new(2, 3).rounded(2), "0.67");
        assert_eq!(Rate::new(1, 3).rounded_up(2), "0.34");
        assert_eq!(Rate::new(999, 1000).rounded_up(2), "1.00");
        assert_eq!(Rate::new(76, 1).rounded_up(0), "76");
        assert!(Rate::new(1, 8).has_decimals(3) && !Rate::new(1, 8).has_decimals(2));
        assert!(!Rate::new(1, 3).has_decimals(20));
        assert_eq!(Rate::new(u64::MAX, u64::MAX - 1).rounded(3), "1.000");
    }

    proptest! {
        #[test]
        fn a_relative_limit_is_the_same_as_with_large_integers(
            (base, bi) in (any::<u64>(), any::<u64>()),
            (change, ci) in (any::<u64>(), any::<u64>()),
            (percent, decimals) in (0_u64..1_000_000_000_000_000, 0_usize..=9),
        ) {
            let scale = 10_u64.pow(decimals as u32);
            let text = format!("{}.{:0>decimals$}", percent / scale, percent % scale);
            let stated = Rate::parse(text.trim_end_matches('.')).or_else(|| Rate::parse(&(percent / scale).to_string()));
            let stated = stated.unwrap();
            let exact = if decimals == 0 { big(percent, 1) } else { big(percent, scale) };
            prop_assume!(decimals > 0 || stated == Rate::new(percent, 1));
            let allowed = Rate::new(base, bi).plus(Rate::new(base, bi).percent(stated));
            let exactly = big(base, bi) * (big(1, 1) + exact / big(100, 1));
            prop_assert_eq!(Rate::new(change, ci).cmp(&allowed), big(change, ci).cmp(&exactly));
            let least = Rate::new(base, bi).minus(Rate::new(base, bi).percent(stated));
            let exactly = (big(base, bi) * big(2, 1) - exactly).max(big(0, 1));
            prop_assert_eq!(Rate::new(change, ci).cmp(&least), big(change, ci).cmp(&exactly));
        }

        #[test]
        fn an_absolute_limit_is_the_same_as_with_large_integers(
            (base, bi, change, ci, more) in (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0_u64..1_000_000_000_000_000),
        ) {
            let allowed = Rate::new(base, bi).plus(Rate::new(more, 1_000));
            prop_assert_eq!(Rate::new(change, ci).cmp(&allowed), big(change, ci).cmp(&(big(base, bi) + big(more, 1_000))));
        }

        #[test]
        fn a_number_that_is_written_up_is_never_below(count in 0_u64..1_000_000_000, iterations in 1_u64..1_000_000, decimals in 0_usize..5) {
            let rate = Rate::new(count, iterations);
            let up = Rate::parse(&rate.rounded_up(decimals)).unwrap();
            let unit = Rate::new(1, 10_u64.pow(decimals as u32));
            prop_assert!(up >= rate && up.minus(rate) < unit);
            prop_assert_eq!(up == rate, rate.has_decimals(decimals));
        }
    }
}
