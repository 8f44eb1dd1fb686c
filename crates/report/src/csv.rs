//! Rows as comma-separated values (RFC 4180), a head line first.
//!
//! One record for each stack of each window, in the order of the text; nothing is limited. `stack` holds the frames
//! from the leaf, parted by `;`. What is not known is empty. A text that a spreadsheet would take for a formula has a `'` before it.

use std::borrow::Cow;

use csv::Writer;
use heaptally_profile::call_site::CallSites;
use heaptally_profile::kind::Kinds;
use heaptally_profile::model::{Capture, Metric, Profile};

use crate::escape::escape;
use crate::{Options, frame};

const COLUMNS: [&str; 32] = [
    "window",
    "image",
    "iterations",
    "allocations_per_iteration",
    "bytes_per_iteration",
    "allocations",
    "bytes",
    "freed",
    "freed_bytes",
    "freed_later",
    "freed_later_bytes",
    "live",
    "live_bytes",
    "live_at_exit",
    "live_at_exit_bytes",
    "reallocs",
    "reallocs_in_place",
    "reallocs_moved",
    "temporary",
    "temporary_bytes",
    "failed",
    "entries",
    "first_entry",
    "last_entry",
    "capture",
    "function",
    "file",
    "line",
    "stack",
    "discarded",
    "discarded_bytes",
    "kind",
];

/// The rows of a profile.
pub fn csv(profile: &Profile, options: &Options) -> String {
    let sites = CallSites::new(profile, &options.rules);
    let kinds = Kinds::new(profile, &options.rules);
    let view = options.view(profile, &sites);
    let mut writer = Writer::from_writer(Vec::new());
    // NOTE: writing to memory does not fail, and all records have as many fields.
    let _ = writer.write_record(COLUMNS);
    for window in view.windows.iter().filter(|view| !view.in_background) {
        for row in &window.rows {
            let counts = &row.row.counts;
            let site = row.call_site(profile, &sites).map(|(_, frame)| frame);
            let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            // Where blocks were not followed, nothing is known of them.
            let environment = &profile.environment;
            let followed = |value: u64| number(environment.lifetimes.then_some(value));
            let measured = |metric: Metric, value: u64| number(environment.knows(metric).then_some(value));
            let temporary = |value: u64| {
                if environment.knows(Metric::Temporary) { followed(value) } else { String::new() }
            };
            let per_iteration =
                |value| window.window.per_iteration(value).map(|value| value.to_string()).unwrap_or_default();
            let bytes_per_iteration = match environment.knows(Metric::Bytes) {
                true => per_iteration(counts.bytes),
                false => String::new(),
            };
            let frames: Vec<String> =
                row.frames(profile).map(|frame| frame::name(&frame).replace(';', ":")).collect();
            let capture = match row.stack.capture {
                _ if !environment.knows(Metric::Captures) => "",
                Capture::Complete => "complete",
                Capture::FramePointer => "frame_pointer",
                Capture::Cut => "cut",
                Capture::AsyncUnknown => "async_unknown",
            };
            let image = window.image.map_or("", |image| &image.label);
            let record: [String; 32] = [
                text(&window.window.name),
                text(image),
                measured(Metric::Windows, window.window.iterations),
                per_iteration(counts.allocations),
                bytes_per_iteration,
                counts.allocations.to_string(),
                measured(Metric::Bytes, counts.bytes),
                followed(counts.freed),
                followed(counts.freed_bytes),
                followed(counts.freed_later),
                followed(counts.freed_later_bytes),
                followed(counts.live()),
                followed(counts.live_bytes()),
                followed(counts.live_at_exit()),
                followed(counts.live_at_exit_bytes()),
                measured(Metric::Reallocs, counts.reallocs),
                measured(Metric::Reallocs, counts.reallocs_in_place),
                measured(Metric::Reallocs, counts.reallocs_moved),
                temporary(counts.temporary),
                temporary(counts.temporary_bytes),
                measured(Metric::Failed, counts.failed),
                number(row.row.entries),
                number(row.row.first_entry),
                number(row.row.last_entry),
                capture.to_owned(),
                site.map(|frame| text(&frame::name(&frame))).unwrap_or_default(),
                site.and_then(|frame| frame.file().map(text)).unwrap_or_default(),
                number(site.filter(|frame| frame.line > 0).map(|frame| u64::from(frame.line))),
                text(&frames.join(";")),
                measured(Metric::Windows, counts.discarded),
                measured(Metric::Windows, counts.discarded_bytes),
                kinds.of(row, &sites).map(|kind| text(&kinds.kind(kind).name())).unwrap_or_default(),
            ];
            let _ = writer.write_record(&record);
        }
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// A name as one field.
fn text(name: &str) -> String {
    let name: Cow<'_, str> = escape(name);
    if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_name_is_no_formula() {
        assert_eq!(text("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(text("-[NSObject init]"), "'-[NSObject init]");
        assert_eq!(text("a=b"), "a=b");
        assert_eq!(text("a\u{1b}"), "a\\u{1b}");
    }
}
