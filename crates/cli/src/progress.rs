//! How far the symboliser is, as one line on the error output.
//!
//! ```text
//! heaptally: naming functions: 31,002 of 50,000 addresses, 2 of 7 modules, libexample.so
//! ```
//!
//! It is there only on a terminal, only when it has taken longer than a second, and is gone at the end.

use std::path::Path;
use std::time::{Duration, Instant};

use heaptally_report::escape::escape;
use heaptally_symbolize::Progress;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is done sooner needs no line.
const SILENCE: Duration = Duration::from_secs(1);

/// The line, as long as this lives.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    begin: Instant,
    is_wanted: bool,
    /// Made when it is time.
    bar: Option<ProgressBar>,
}

impl ProgressLine {
    /// One that shows nothing yet, and nothing ever where it is not wanted.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { begin: Instant::now(), is_wanted, bar: None }
    }

    /// Shows how far it is, if it is time.
    pub(crate) fn update(&mut self, progress: Progress<'_>) {
        if self.is_wanted && self.begin.elapsed() >= SILENCE {
            self.bar.get_or_insert_with(bar).set_message(text(progress));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Draws on the error output if that is a terminal, and nowhere else.
fn bar() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(line_style())
}

/// The line as it is, cut where the terminal ends.
fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn text(progress: Progress<'_>) -> String {
    let Progress { modules_done, modules_total, addresses_done, addresses_total, module } = progress;
    let module =
        Path::new(module).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!(
        "heaptally: naming functions: {} of {} addresses, {} of {} modules, {}",
        HumanCount(addresses_done as u64),
        HumanCount(addresses_total as u64),
        HumanCount(modules_done as u64),
        HumanCount(modules_total as u64),
        escape(&module)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_it_is_with_the_modules_name_visible() {
        let progress = Progress {
            modules_done: 2,
            modules_total: 7,
            addresses_done: 31_002,
            addresses_total: 50_000,
            module: "/opt/lib\u{1b}[31m.so",
        };
        let line = text(progress);
        assert!(
            line.starts_with("heaptally: naming functions: 31,002 of 50,000 addresses, 2 of 7 modules, lib"),
            "{line}"
        );
        assert!(!line.contains('\u{1b}'), "{line}");
    }

    #[test]
    fn nothing_is_shown_before_its_time_or_unasked() {
        let progress =
            Progress { modules_done: 0, modules_total: 1, addresses_done: 0, addresses_total: 1, module: "" };
        for (is_wanted, passed, is_shown) in
            [(true, Duration::ZERO, false), (false, SILENCE, false), (true, SILENCE, true)]
        {
            let mut line = ProgressLine::new(is_wanted);
            line.begin -= passed;
            line.update(progress);
            assert_eq!(line.bar.is_some(), is_shown, "{is_wanted} {passed:?}");
        }
    }
}
