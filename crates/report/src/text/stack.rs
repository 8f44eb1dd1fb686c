//! A stack in words: its call site, what was called there, and from where.

use std::rc::Rc;

use heaptally_profile::call_site::CallSites;
use heaptally_profile::frame::{Frame, frame_at};
use heaptally_profile::kind::{Kind, KindId};
use heaptally_profile::model::{Capture, FrameKind, FunctionId, LocationId, Profile};
use heaptally_profile::short_name::shorten as shorten_name;
use heaptally_profile::view::{RowView, WindowView};

use super::Context;
use super::head::reallocs;
use super::recursion::{Run, runs};
use super::word::Word;
use crate::escape::escape;
use crate::executor;
use crate::frame::{mark, name, short_names, source, source_at, source_file};
use crate::number::{count, counted, per_iteration, share};
use crate::path::{is_own, shorten};
use crate::width::{cut_front, cut_middle, width};

/// How many callers are shown in the short form: the first, and the last.
const NEAR_CALLERS: usize = 8;
const FAR_CALLERS: usize = 2;
/// Where a line of callers ends that need not fit a terminal.
const LINE_COLUMNS: usize = 110;
/// What a name keeps of a line that it shares with its source.
const LEAST_NAME_COLUMNS: usize = 24;
/// How many lines callers take on a terminal.
const LINES: usize = 2;

/// What stands behind the last caller that a task has.
const TASK_BEGINS: &str = "(task begins here)";

/// What is seen of a stack in the short form.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    /// The call site's line, and whether it is inlined; of other frames the function alone is shown.
    site: Option<(u32, bool)>,
    kind: Option<KindId>,
    capture: Capture,
    /// Call site, callee and callers.
    frames: Box<[Seen]>,
}

/// A frame by what is seen of it: its function's index, a number of Swift's, or where it has none its place, told apart by the highest
/// bits.
type Seen = u64;

fn seen(context: &Context<'_>, place: Place) -> Seen {
    const PLACE: Seen = 1 << 63;
    const SWIFT: Seen = 1 << 62;
    let profile = context.profile;
    let location = profile.locations.get(place.location as usize);
    let line = location.and_then(|location| location.lines.get(place.line_index as usize));
    match line.filter(|line| line.function < profile.functions.len()) {
        // Parts and copies of one function look the same.
        Some(line) => match context.swift.of(line.function).function() {
            Some(function) => SWIFT | u64::from(function),
            None => line.function as u64,
        },
        None => PLACE | u64::from(place.location) << 32 | u64::from(place.line_index),
    }
}

/// A frame by its location and line. PERF: 8 bytes, where a frame takes a hundred: there can be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    location: u32,
    line_index: u32,
}

impl Place {
    /// Stands for frames that are left out.
    const GAP: Self = Self { location: u32::MAX, line_index: u32::MAX };

    fn of(frame: &Frame<'_>) -> Self {
        Self::new(frame.location, frame.line_index)
    }

    fn new(location: LocationId, line_index: usize) -> Self {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Self { location: number(location), line_index: number(line_index) }
    }

    /// `None` for a gap.
    fn frame(self, profile: &Profile) -> Option<Frame<'_>> {
        frame_at(profile, self.location as usize, self.line_index as usize)
    }
}

/// A stack's frames, parted at its call site.
pub(super) struct Parts<'p> {
    /// The library's function that the user's code called; the allocation function if it called that.
    pub(super) callee: Option<Frame<'p>>,
    pub(super) site: Option<Frame<'p>>,
    /// Outwards from the call site, listed frames left out; a gap for some of them between others.
    callers: Box<[Place]>,
    /// Whether the last one is where a task of Swift's began.
    begins_task: bool,
    /// What was allocated, where that is certain.
    kind: Option<KindId>,
}

impl<'p> Parts<'p> {
    pub(super) fn of(context: &Context<'p>, row: &RowView<'p>) -> Self {
        let profile = context.profile;
        let at = match row.call_site(profile, context.sites) {
            Some((at, _)) => at,
            // Trimmed before it, or nothing but the allocation function.
            None => row.frames(profile).count().saturating_sub(1),
        };
        let mut ends = row.frames(profile).skip(at.saturating_sub(1));
        let callee = if at > 0 { ends.next() } else { None };
        let site = ends.next();
        // Where no frame is the user's, all are shown.
        let folds = site.is_some_and(|site| !is_listed(profile, context.sites, &site));
        // PERF: of callers the places alone are looked at: whole frames took a third of the time of a report.
        let mut callers = Vec::with_capacity(row.frame_count.min(row.stack.locations.len() * 2));
        let (mut is_gap, mut was_origin, mut frame) = (false, false, 0);
        let swift =
            |frame: Option<FunctionId>| frame.map(|function| context.swift.of(function)).unwrap_or_default();
        let mut inner = swift(site.and_then(|site| site.function_id));
        for &id in &row.stack.locations {
            let Some(location) = profile.locations.get(id) else { continue };
            for line_index in 0..location.lines.len().max(1) {
                frame += 1;
                if frame <= at + 1 || frame > row.frame_count {
                    continue;
                }
                let is_signal = location.kind == FrameKind::Signal;
                if folds && !is_signal && context.sites.lists(location, line_index) {
                    is_gap = true;
                    continue;
                }
                let own = swift(location.lines.get(line_index).map(|line| line.function));
                if folds && (own.is_nobodys() || own.is_one_with(inner)) {
                    continue;
                }
                inner = own;
                // Around where a task was created only its run time is left out.
                let is_origin = location.kind == FrameKind::TaskOrigin;
                if std::mem::take(&mut is_gap) && !is_origin && !std::mem::take(&mut was_origin) {
                    callers.push(Place::GAP);
                }
                callers.push(Place::new(id, line_index));
                was_origin = is_origin;
            }
        }
        drop_entry_point(profile, &mut callers);
        Self {
            callee,
            site,
            callers: callers.into_boxed_slice(),
            begins_task: begins_task(profile, row),
            kind: context.kinds.of(row, context.sites),
        }
    }

    /// What is seen of them: stacks with equal keys look the same.
    pub(super) fn key(&self, context: &Context<'_>, capture: Capture) -> StackKey {
        let ends = [&self.site, &self.callee].map(|frame| frame.as_ref().map_or(Place::GAP, Place::of));
        StackKey {
            site: self.site.map(|frame| (frame.line, frame.inlined)),
            kind: self.kind,
            capture,
            frames: ends.iter().chain(&self.callers).map(|&place| seen(context, place)).collect(),
        }
    }

    /// What was allocated, in words: `array growth`, `class instance (Node)`.
    pub(super) fn kind_words(&self, context: &Context<'_>) -> Option<String> {
        let Kind { words, of_type } = context.kinds.kind(self.kind?);
        let words = escape(&words).into_owned();
        Some(match of_type {
            Some(of_type) => format!("{words} ({})", escape(&of_type)),
            None => words,
        })
    }

    /// The nearest caller in the user's own folder, if the call site lies outside.
    fn own(&self, context: &Context<'p>) -> Option<Frame<'p>> {
        let project = Some(context.options.project.as_deref()?);
        let is_ours = |frame: &Frame<'_>| {
            frame.file().is_some_and(|file| is_own(file, project))
                && !is_listed(context.profile, context.sites, frame)
        };
        if self.site.as_ref().is_some_and(|site| site.file().is_none() || is_ours(site)) {
            return None;
        }
        self.callers.iter().filter_map(|place| place.frame(context.profile)).find(is_ours)
    }
}

/// Drops C's `main`, which a compiler made to call the run time of its language, which calls the program's own.
fn drop_entry_point(profile: &Profile, callers: &mut Vec<Place>) {
    let is_made = |frame: Frame<'_>| frame.name() == Some("main") && frame.file().is_none();
    let is_own = |frame: Frame<'_>| frame.name().is_some_and(|name| name.ends_with("::main"));
    if let [.., own, Place::GAP, last] = callers.as_slice()
        && last.frame(profile).is_some_and(is_made)
        && own.frame(profile).is_some_and(is_own)
    {
        callers.truncate(callers.len() - 2);
    }
}

pub(super) fn is_listed(profile: &Profile, sites: &CallSites<'_>, frame: &Frame<'_>) -> bool {
    profile.locations.get(frame.location).is_some_and(|location| sites.lists(location, frame.line_index))
}

/// The call site of a stack, in one line, or in two where room is short.
pub(super) fn site(context: &Context<'_>, parts: &Parts<'_>, room: Option<usize>) -> Rc<[String]> {
    match &parts.site {
        Some(frame) => context.words.of_site(frame, room, || name_and_source(context, frame, room)),
        None => Rc::from(["unknown".to_owned()]),
    }
}

/// A frame's name and source, as [`in_room`].
fn name_and_source(context: &Context<'_>, frame: &Frame<'_>, room: Option<usize>) -> Vec<String> {
    let file = source_file(frame).map(|file| shorten(file, context.options.project.as_deref()));
    let [name, short] = short_names(frame);
    in_room(&name, &short, mark(frame), file.map(|file| source_at(&file, frame.line)), room)
}

/// A name, its mark and its source. Where room is short, `short` stands for the name, and then loses its middle; where
/// it is too short for that, the source stands on a line of its own.
pub(super) fn in_room(
    name: &str,
    short: &str,
    mark: Option<&str>,
    source: Option<String>,
    room: Option<usize>,
) -> Vec<String> {
    let mut behind = mark.map(|mark| format!(" {mark}")).unwrap_or_default();
    let Some(room) = room else {
        behind.extend(source.map(|source| format!("  {source}")));
        return vec![format!("{name}{behind}")];
    };
    let least = width(name).min(LEAST_NAME_COLUMNS);
    let on_one_line = |source: &String| least + width(&behind) + 2 + width(source) <= room;
    let (source, below) = match source {
        Some(source) if on_one_line(&source) => (format!("  {source}"), None),
        below => (String::new(), below),
    };
    behind.push_str(&source);
    let columns = room.saturating_sub(width(&behind));
    let name = if width(name) <= columns { name } else { short };
    let mut lines = vec![format!("{}{behind}", cut_middle(name, columns))];
    lines.extend(below.map(|source| format!("  {}", cut_front(&source, room.saturating_sub(2)))));
    lines
}

/// The lines below the call site, indented by two.
pub(super) fn details(
    context: &Context<'_>,
    window: &WindowView<'_>,
    row: &RowView<'_>,
    parts: &Parts<'_>,
    stacks: u64,
    room: Option<usize>,
) -> Vec<String> {
    let mut facts = facts(context, window, row, stacks);
    // Else it stands before what is called.
    if let Some(kind) = parts.kind_words(context).filter(|_| context.options.full) {
        facts.insert(0, kind);
    }
    let mut lines = wrap_facts(&facts, room.map(|room| room.saturating_sub(2)));
    if context.options.full {
        lines.extend(all_frames(context, row, room));
    } else {
        lines.extend(callers(context, parts, room));
        lines.extend(ending(row));
    }
    for line in &mut lines {
        line.insert_str(0, "  ");
    }
    lines
}

/// `array growth: calls Vec::push, from parse ← main`, in as many lines as it takes.
pub(super) fn callers<'p>(context: &Context<'p>, parts: &Parts<'p>, room: Option<usize>) -> Vec<String> {
    let room = room.map(|room| room.saturating_sub(2));
    let fit = |frame: &Frame<'_>| context.words.of_frame(frame, room);
    let mut lines = Vec::new();
    if let Some(own) = parts.own(context) {
        let mut own = name_and_source(context, &own, room.map(|room| room.saturating_sub(4)));
        if let Some(first) = own.first_mut() {
            first.insert_str(0, "for ");
        }
        lines.extend(own);
    }
    let calls = parts.callee.as_ref().map(|callee| format!("calls {}", fit(callee).text));
    let mut calls = match (parts.kind_words(context), calls) {
        (Some(kind), Some(calls)) => {
            let both = format!("{kind}: {calls}");
            if room.is_none_or(|room| width(&both) <= room) {
                Some(both)
            } else {
                lines.push(kind);
                Some(calls)
            }
        }
        (kind, calls) => kind.or(calls),
    };
    let word = |place: &Place| match place.frame(context.profile) {
        Some(frame) => fit(&frame),
        None => context.words.of_text("…"),
    };
    let callers: Vec<Word> = parts.callers.iter().map(word).collect();
    let mut names = Vec::with_capacity(callers.len());
    for run in runs(&callers) {
        add_run(context, &run, &mut names);
    }
    match &mut calls {
        Some(calls) if parts.begins_task && names.is_empty() => calls.push_str(&format!(" {TASK_BEGINS}")),
        _ if parts.begins_task => names.push(context.words.of_text(TASK_BEGINS)),
        _ => {}
    }
    let (mut near, far) = (NEAR_CALLERS, FAR_CALLERS);
    loop {
        let hidden = names.len().checked_sub(near + far).filter(|hidden| *hidden > 0);
        let wrapped = match hidden {
            None => wrap(calls.as_deref(), &names, room.unwrap_or(LINE_COLUMNS)),
            Some(hidden) => {
                let mut words = Vec::with_capacity(near + 1 + far);
                words.extend(names.iter().take(near).cloned());
                words.push(context.words.of_text(&format!("… {hidden} more …")));
                words.extend(names.iter().skip(names.len() - far).cloned());
                wrap(calls.as_deref(), &words, room.unwrap_or(LINE_COLUMNS))
            }
        };
        if room.is_none() || wrapped.len() <= LINES || near == 0 {
            lines.extend(wrapped);
            return lines;
        }
        near -= 1;
    }
}

fn add_run(context: &Context<'_>, run: &Run<'_, Word>, names: &mut Vec<Word>) {
    let texts = || run.items.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ← ");
    match (run.items, run.times) {
        (items, 1) => names.extend_from_slice(items),
        ([one], times) => {
            names.push(context.words.of_text(&format!("{} × {}", one.text, count(times as u64))));
        }
        (_, times) => {
            names.push(context.words.of_text(&format!("({}) × {}", texts(), count(times as u64))));
        }
    }
}

/// Words with arrows between, in lines of so many columns; a word is never broken.
fn wrap(calls: Option<&str>, words: &[Word], columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::with_capacity(columns.min(LINE_COLUMNS) + 64);
    line.push_str(calls.unwrap_or_default());
    let mut taken = width(&line);
    for (at, word) in words.iter().enumerate() {
        let link = match (at, line.is_empty()) {
            (0, true) => "from ",
            (0, false) => ", from ",
            _ => " ← ",
        };
        if !line.is_empty() && taken + width(link) + word.columns > columns {
            lines.push(std::mem::take(&mut line));
            line.push_str("  ");
            line.push_str(link.trim_start_matches(", ").trim_start());
            taken = width(&line) + word.columns;
        } else {
            line.push_str(link);
            taken += width(link) + word.columns;
        }
        line.push_str(&word.text);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Every frame, leaf first: on a line, or on two where room is short.
fn all_frames(context: &Context<'_>, row: &RowView<'_>, room: Option<usize>) -> Vec<String> {
    let room = room.map(|room| room.saturating_sub(2));
    let frames: Vec<Vec<String>> = row
        .frames(context.profile)
        .map(|frame| {
            let whole = name(&frame);
            match room {
                None => vec![
                    [Some(whole), source(&frame), mark(&frame).map(str::to_owned)]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join("  "),
                ],
                room => {
                    let name = shorten_name(&whole);
                    in_room(&name, &name, mark(&frame), source(&frame), room)
                }
            }
        })
        .collect();
    let mut folded = Vec::new();
    for run in runs(&frames) {
        match (run.items, run.times) {
            (items, 1) => folded.extend(items.iter().flatten().cloned()),
            ([one], times) => {
                folded.extend(one.iter().cloned());
                if let Some(last) = folded.last_mut() {
                    last.push_str(&format!("  × {}", count(times as u64)));
                }
            }
            (several, times) => {
                folded.extend(several.iter().flatten().cloned());
                folded.push(format!("(the {} frames above × {})", several.len(), count(times as u64)));
            }
        }
    }
    if begins_task(context.profile, row) {
        folded.push(TASK_BEGINS.to_owned());
    }
    folded.extend(ending(row));
    if !row.is_trimmed {
        folded.extend(executors(context, row, room));
    }
    folded
}

/// What resumed the async function of a stack, each in as many lines as it takes.
fn executors(context: &Context<'_>, row: &RowView<'_>, room: Option<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    for executor in context.executors.of(row.row.stack) {
        let words: Vec<Word> = executor::frames(context.profile, executor)
            .map(|frame| context.words.of_frame(&frame, room))
            .collect();
        let mut names = Vec::with_capacity(words.len());
        for run in runs(&words) {
            add_run(context, &run, &mut names);
        }
        let made = counted(executor.allocations, "allocation", "allocations");
        lines.extend(wrap(Some(&format!("resumed for {made}")), &names, room.unwrap_or(LINE_COLUMNS)));
    }
    lines
}

/// Whether a stack ends where a task of Swift's began: at its last async caller.
fn begins_task(profile: &Profile, row: &RowView<'_>) -> bool {
    let last = row.stack.locations.last().and_then(|&last| profile.locations.get(last));
    let is_whole = matches!(row.stack.capture, Capture::Complete | Capture::FramePointer);
    is_whole && !row.is_trimmed && last.is_some_and(|last| last.kind == FrameKind::Async)
}

/// What ended a stack before its thread's start.
fn ending(row: &RowView<'_>) -> Option<String> {
    if row.is_trimmed {
        return None;
    }
    match row.stack.capture {
        Capture::Cut => {}
        Capture::AsyncUnknown => return Some("(async callers unknown)".to_owned()),
        Capture::Complete | Capture::FramePointer => return None,
    }
    let reason = match row.stack.cut_reason.as_str() {
        "" => "the walk stopped here",
        reason => reason,
    };
    Some(format!("(cut: {})", escape(reason)))
}

/// What else is to be known of a row, if anything.
fn facts(context: &Context<'_>, view: &WindowView<'_>, row: &RowView<'_>, stacks: u64) -> Vec<String> {
    let counts = &row.row.counts;
    let mut facts = Vec::new();
    if stacks > 1 {
        facts.push(format!("{} that look alike here", counted(stacks, "stack", "stacks")));
    }
    if let Some((least, most)) = row.row.range(view.window).filter(|_| row.row.is_unstable(view.window)) {
        let (least, most) = (per_iteration(Some(least)), per_iteration(Some(most)));
        facts.push(format!("unstable: {least} to {most} allocs/iter over the runs"));
    }
    if context.profile.environment.lifetimes && counts.live() > 0 {
        let mut fact = format!("{} live at end ({} B)", count(counts.live()), count(counts.live_bytes()));
        match counts.freed_later {
            0 => {}
            later if later == counts.live() => fact.push_str(", freed later"),
            later => fact.push_str(&format!(", {} of them freed later", count(later))),
        }
        facts.push(fact);
    }
    if counts.temporary > 0 {
        facts.push(format!("{} temporary", share(counts.temporary, counts.allocations)));
    }
    if counts.reallocs > 0 {
        facts.push(reallocs(counts.reallocs, counts.reallocs_in_place));
    }
    if counts.discarded > 0 {
        facts.push(format!("{} more discarded", count(counts.discarded)));
    }
    if counts.failed > 0 {
        facts.push(format!("{} failed", counted(counts.failed, "call", "calls")));
    }
    if counts.reallocs_to_zero > 0 {
        facts.push(counted(counts.reallocs_to_zero, "realloc to 0", "reallocs to 0"));
    }
    // Those of one entry stand below a title that says so; of the first one it says all.
    let is_told = row.row.entries == Some(1) && row.row.first_entry == Some(1) && !row.is_trimmed;
    if let Some(entries) = row.row.entries.filter(|entries| *entries != view.window.entries && !is_told) {
        let range = match (row.row.first_entry, row.row.last_entry) {
            (Some(first), Some(last)) if first == last => format!(": number {}", count(first)),
            (Some(first), Some(last)) => format!(": numbers {} to {}", count(first), count(last)),
            _ => String::new(),
        };
        facts.push(format!("in {} of {} entries{range}", count(entries), count(view.window.entries)));
    }
    facts
}

/// Facts in as few lines as they fit.
fn wrap_facts(facts: &[String], room: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        match lines.last_mut() {
            Some(line) if room.is_none_or(|room| width(line) + 2 + width(fact) <= room) => {
                line.push_str("; ");
                line.push_str(fact);
            }
            _ => lines.push(fact.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::word::Words;
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let words = Words::default();
        text.split_whitespace().map(|text| words.of_text(text)).collect()
    }

    #[test]
    fn callers_are_wrapped_between_names() {
        assert_eq!(
            wrap(Some("calls push"), &words("parse run main"), 24),
            ["calls push, from parse", "  ← run ← main"]
        );
        assert_eq!(wrap(None, &words("parse"), 3), ["from parse"]);
        assert_eq!(wrap(Some("calls malloc"), &[], 3), ["calls malloc"]);
        assert_eq!(wrap(None, &[], 3), [""; 0]);
    }

    #[test]
    fn a_name_and_its_source_share_the_room() {
        let source = || Some("src/header.rs:88".to_owned());
        assert_eq!(
            in_room("push_value", "push_value", None, source(), None),
            ["push_value  src/header.rs:88"]
        );
        assert_eq!(
            in_room("push_value", "push_value", None, source(), Some(28)),
            ["push_value  src/header.rs:88"]
        );
        assert_eq!(
            in_room("push_value", "push_value", None, source(), Some(27)),
            ["push_value", "  src/header.rs:88"]
        );
        for room in 12..80 {
            for mark in [None, Some("(inlined)")] {
                let lines = in_room(
                    "Header::push_value::with_a_long_name",
                    "Header::push_value::with_a_long_name",
                    mark,
                    source(),
                    Some(room),
                );
                assert!(lines.iter().all(|line| width(line) <= room), "{room}: {lines:?}");
            }
        }
    }
}
