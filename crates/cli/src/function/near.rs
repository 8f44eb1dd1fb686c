//! Which functions may have been meant.

use heaptally_symbolize::ListedFunction;

use super::pattern::names;

/// So many are named.
const MOST: usize = 5;
/// Names less alike than this are not worth a look.
const LEAST: f64 = 0.7;

/// The names of functions that are nearest to a text, the nearest first.
pub(crate) fn nearest<'a>(
    text: &str,
    functions: impl IntoIterator<Item = &'a ListedFunction>,
) -> Vec<String> {
    nearest_names(text, functions.into_iter().flat_map(names))
}

/// The names that are nearest to a text, the nearest first.
pub(crate) fn nearest_names<N>(text: &str, known: impl IntoIterator<Item = N>) -> Vec<String>
where
    N: AsRef<str> + Into<String>,
{
    let wanted = text.to_lowercase();
    let wanted_last = wanted.rsplit("::").next().unwrap_or(&wanted);
    let mut found: Vec<(f64, String)> = Vec::new();
    for name in known {
        let lower = name.as_ref().to_lowercase();
        let last = lower.rsplit("::").next().unwrap_or(&lower);
        let last = last.split(['(', '<']).next().unwrap_or(last);
        let likeness = if wanted_last == last && !wanted.is_empty() {
            // The whole name, but for its path.
            2.0 + 1.0 / (lower.len() as f64)
        } else if wanted.len() >= 3 && lower.contains(&wanted) {
            1.0 + 1.0 / (lower.len() as f64)
        } else {
            strsim::jaro_winkler(&wanted, &lower)
                .max(strsim::normalized_damerau_levenshtein(wanted_last, last))
        };
        if likeness >= LEAST {
            found.push((likeness, name.into()));
        }
    }
    found.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    found.dedup_by(|left, right| left.1 == right.1);
    found.truncate(MOST);
    found.into_iter().map(|(_, name)| name).collect()
}
