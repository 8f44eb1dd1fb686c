//! What was not recorded, in words.

use heaptally_profile::model::Losses;

use crate::number::counted;

/// A phrase for each loss that is not zero, in a fixed order.
pub(crate) fn phrases(losses: &Losses) -> Vec<String> {
    // Without `..`: a new kind of loss must be put into words here.
    let Losses {
        reentrant,
        table_full,
        thread,
        blocks,
        unseen_frees,
        windows,
        window_calls,
        stray_ends,
        stray_resumes,
        restarts,
        unplaced,
        modules,
        thread_totals,
        images,
        damaged,
    } = losses;
    let words: [(u64, &str, &str, &str); 15] = [
        (*reentrant, "allocation", "allocations", "from signal handlers that interrupted the recorder"),
        (*table_full, "allocation", "allocations", "for which there was no place in the tables"),
        (*thread, "allocation", "allocations", "in threads for which no memory could be had"),
        (*blocks, "block", "blocks", "whose free could not be followed"),
        (*unseen_frees, "block", "blocks", "freed without being seen"),
        (*windows, "window", "windows", "for which there was no place"),
        (
            *window_calls,
            "window call",
            "window calls",
            "inside the recorder: of signal handlers, or behind one that left it by longjmp",
        ),
        (*stray_ends, "window call", "window calls", "that name no window which this process had begun"),
        (*stray_resumes, "resume", "resumes", "by threads that were not paused"),
        (*restarts, "restart", "restarts", "that discarded nothing, for want of a place to note it"),
        (
            *unplaced,
            "allocation",
            "allocations",
            "whose stack was cut: whether they were beneath the function of a window is not known",
        ),
        (*modules, "module", "modules", "for which there was no place"),
        (*thread_totals, "thread total", "thread totals", "cut short"),
        (*images, "program", "programs", "that could not be attached"),
        (*damaged, "entry", "entries", "half-written or without sense"),
    ];
    words
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many, rest)| format!("{} {rest}", counted(count, one, many)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_that_happened_are_told() {
        assert!(phrases(&Losses::default()).is_empty());
        let losses = Losses { reentrant: 1, table_full: 12_000, damaged: 2, ..Losses::default() };
        assert_eq!(
            phrases(&losses),
            [
                "1 allocation from signal handlers that interrupted the recorder",
                "12,000 allocations for which there was no place in the tables",
                "2 entries half-written or without sense",
            ]
        );
    }
}
