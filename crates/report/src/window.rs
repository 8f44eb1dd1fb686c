//! A window with its rows in the order in which every form shows them.

use heaptally_profile::call_site::CallSites;
use heaptally_profile::model::{Counts, Image, Profile, Row, Stack, Window, WindowKind};
use heaptally_profile::total::CaptureEvents;

use crate::Options;
use crate::frame::{Frame, compare_stacks, frames};

/// A window to show.
#[derive(Debug)]
pub(crate) struct WindowView<'p> {
    pub(crate) window: &'p Window,
    pub(crate) image: Option<&'p Image>,
    /// The sum of its rows.
    pub(crate) counts: Counts,
    /// How its allocations were walked.
    pub(crate) captures: CaptureEvents,
    /// Whether it is the automatic window beside others, and was not asked for by name.
    pub(crate) in_background: bool,
    /// By allocations, most first; then by bytes, most first; then by the frames from the leaf
    /// ([`compare_stacks`]); then as they stand in the profile.
    pub(crate) rows: Vec<RowView<'p>>,
}

/// A row to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowView<'p> {
    pub(crate) row: &'p Row,
    pub(crate) stack: &'p Stack,
}

/// The windows that the options ask for, in the profile's order.
pub(crate) fn windows<'p>(profile: &'p Profile, options: &Options) -> Vec<WindowView<'p>> {
    let counts = profile.window_counts();
    let captures = profile.window_captures();
    let has_others = has_named_windows(profile);
    let mut views: Vec<WindowView<'p>> = profile
        .windows
        .iter()
        .enumerate()
        .map(|(id, window)| WindowView {
            window,
            image: profile.images.get(window.image),
            counts: counts.get(id).copied().unwrap_or_default(),
            captures: captures.get(id).copied().unwrap_or_default(),
            in_background: window.kind == WindowKind::Automatic && has_others && options.windows.is_empty(),
            rows: Vec::new(),
        })
        .collect();
    for row in &profile.rows {
        if let (Some(view), Some(stack)) = (views.get_mut(row.window), profile.stacks.get(row.stack)) {
            view.rows.push(RowView { row, stack });
        }
    }
    if !options.windows.is_empty() {
        views.retain(|view| options.windows.contains(&view.window.name));
    }
    for view in &mut views {
        view.rows.sort_by(|a, b| {
            let (more, less) = (&b.row.counts, &a.row.counts);
            (more.allocations, more.bytes)
                .cmp(&(less.allocations, less.bytes))
                .then_with(|| compare_stacks(profile, a.stack, b.stack))
        });
    }
    views
}

/// Whether the program or the user opened a window, so that the automatic one is not what is looked for.
pub(crate) fn has_named_windows(profile: &Profile) -> bool {
    profile.windows.iter().any(|window| window.kind != WindowKind::Automatic)
}

impl<'p> RowView<'p> {
    /// The call site among the stack's frames: its index from the leaf, and the frame.
    pub(crate) fn call_site(
        &self,
        profile: &'p Profile,
        sites: &CallSites<'_>,
    ) -> Option<(usize, Frame<'p>)> {
        let (location, line_index) = sites.of(self.row.stack)?;
        let is_it = |frame: &Frame<'_>| frame.location == location && frame.line_index == line_index;
        frames(profile, self.stack).enumerate().find(|(_, frame)| is_it(frame))
    }
}
