//! Folded stacks: what flamegraph.pl and inferno draw.
//!
//! ```text
//! main;parse;Header::push_value;malloc 40000
//! ```
//!
//! One line for each stack of each window, outermost frame first, then what the options sort by, in all. Inlined frames
//! end in `_[i]`, async ones in `_[a]`. Where several windows are shown, their names are the outermost frames. Nothing is
//! folded away, and nothing is limited.

use heaptally_profile::call_site::CallSites;
use heaptally_profile::model::{FrameKind, Profile};

use crate::{Options, frame};

/// The stacks of a profile.
pub fn folded(profile: &Profile, options: &Options) -> String {
    let sites = CallSites::new(profile, &options.rules);
    let view = options.view(profile, &sites);
    let windows: Vec<_> = view.windows.iter().filter(|view| !view.in_background).collect();
    let mut out = String::new();
    for window in &windows {
        for row in &window.rows {
            let value = options.sort.value(&row.row.counts);
            if value == 0 {
                continue;
            }
            let mut frames: Vec<String> = row
                .frames(profile)
                .map(|frame| {
                    let mark = if frame.inlined {
                        "_[i]"
                    } else if frame.kind == FrameKind::Async {
                        "_[a]"
                    } else {
                        ""
                    };
                    format!("{}{mark}", one_frame(&frame::name(&frame)))
                })
                .collect();
            if windows.len() > 1 {
                frames.push(one_frame(&crate::escape::escape(&window.window.name)));
            }
            frames.reverse();
            out.push_str(&frames.join(";"));
            out.push_str(&format!(" {value}\n"));
        }
    }
    out
}

/// A name that is one frame: `;` parts frames.
fn one_frame(name: &str) -> String {
    name.replace(';', ":")
}
