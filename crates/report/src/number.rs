//! Numbers for people.

/// A count with its thousands set off: `1,204,000`.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A count with its noun: `1 stack`, `2 stacks`.
pub(crate) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A count per iteration: two decimals, `76.00`; below 0.01 two significant digits, so that little is not nothing.
/// `–` when there was no iteration.
pub(crate) fn per_iteration(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let mut decimals: usize = 2;
    if value > 0.0 && value < 0.01 {
        let mut scaled = value * 100.0;
        while scaled < 10.0 && decimals < 20 {
            scaled *= 10.0;
            decimals += 1;
        }
    }
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", group(whole)),
        None => text,
    }
}

/// Bytes per iteration: whole where they are, else as [`per_iteration`].
pub(crate) fn bytes_per_iteration(value: Option<f64>) -> String {
    match value {
        Some(value) if value.fract() == 0.0 => group(&format!("{value:.0}")),
        value => per_iteration(value),
    }
}

/// A share with one decimal: `52.6 %`. What is not all is never `100.0 %`, what is not nothing never `0.0 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    percent(part, whole, 1)
}

/// A share with two decimals, as [`share`].
pub(crate) fn fine_share(part: u64, whole: u64) -> String {
    percent(part, whole, 2)
}

fn percent(part: u64, whole: u64, decimals: usize) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    if part >= whole {
        return "100 %".to_owned();
    }
    let unit = 0.1_f64.powi(i32::try_from(decimals).unwrap_or(1));
    let percent = part as f64 / whole as f64 * 100.0;
    if percent < unit {
        return format!("<{unit:.decimals$} %");
    }
    format!("{:.decimals$} %", percent.min(100.0 - unit))
}

/// Digits with their thousands set off.
pub(crate) fn group(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_off() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "stack", "stacks"), "1 stack");
        assert_eq!(counted(0, "stack", "stacks"), "0 stacks");
    }

    #[test]
    fn little_is_not_nothing() {
        assert_eq!(per_iteration(Some(76.0)), "76.00");
        assert_eq!(per_iteration(Some(0.3)), "0.30");
        assert_eq!(per_iteration(Some(0.01)), "0.01");
        assert_eq!(per_iteration(Some(0.0012)), "0.0012");
        assert_eq!(per_iteration(Some(0.000_003)), "0.0000030");
        assert_eq!(per_iteration(Some(0.0)), "0.00");
        assert_eq!(per_iteration(Some(12345.678)), "12,345.68");
        assert_eq!(per_iteration(None), "–");
    }

    #[test]
    fn whole_bytes_have_no_fraction() {
        assert_eq!(bytes_per_iteration(Some(4138.0)), "4,138");
        assert_eq!(bytes_per_iteration(Some(4138.5)), "4,138.50");
        assert_eq!(bytes_per_iteration(None), "–");
    }

    #[test]
    fn shares_do_not_round_to_all_or_nothing() {
        assert_eq!(share(526, 1000), "52.6 %");
        assert_eq!(share(1, 1), "100 %");
        assert_eq!(share(99_999, 100_000), "99.9 %");
        assert_eq!(share(1, 100_000), "<0.1 %");
        assert_eq!(share(0, 0), "0 %");
        assert_eq!(fine_share(999_999, 1_000_000), "99.99 %");
        assert_eq!(fine_share(1, 1_000_000), "<0.01 %");
    }
}
