//! The JSON document in the comment: what is not additive, and what pprof has no place for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::COMMENT_PREFIX;
use crate::Error;
use crate::model::{
    Capture, Children, Environment, Executor, FrameKind, FunctionId, Image, LocationId, Losses, ModuleId,
    Profile, RepeatValue, Row, StackId, ThreadLife, Window, WindowId,
};

/// The document's `format`.
const FORMAT: &str = "heaptally-profile";
/// The version that is written.
pub(super) const VERSION: u64 = 1;

/// The document. Its picture is in the [parent module](super).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) format: String,
    pub(super) version: u64,
    pub(super) digest: String,
    pub(super) images: Vec<Image>,
    pub(super) windows: Vec<Window>,
    pub(super) threads: Vec<ThreadLife>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) executors: Vec<Executor>,
    pub(super) losses: Losses,
    #[serde(default, skip_serializing_if = "Children::is_empty")]
    pub(super) children: Children,
    pub(super) environment: Environment,
    /// Modules about which there is something to say.
    pub(super) symbol_problems: BTreeMap<ModuleId, String>,
    /// Functions that share their code.
    pub(super) folded_functions: Vec<FunctionId>,
    /// Locations by kind, [`FrameKind::Return`] left out.
    pub(super) location_kinds: BTreeMap<FrameKind, Vec<LocationId>>,
    pub(super) stacks: Stacks,
    pub(super) rows: Rows,
}

/// What samples do not say of stacks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Stacks {
    /// How many there are.
    pub(super) len: usize,
    /// Stacks by capture, [`Capture::Complete`] left out.
    pub(super) captures: BTreeMap<Capture, Vec<StackId>>,
    /// Where it is not empty.
    pub(super) cut_reasons: BTreeMap<StackId, String>,
    /// The locations of stacks that no row, and so no sample, holds.
    pub(super) unused: BTreeMap<StackId, Vec<LocationId>>,
}

/// What samples do not say of rows: columns by sample.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rows {
    pub(super) window: Vec<WindowId>,
    pub(super) stack: Vec<StackId>,
    pub(super) entries: Vec<Option<u64>>,
    pub(super) first_entry: Vec<Option<u64>>,
    pub(super) last_entry: Vec<Option<u64>>,
    pub(super) reallocs_to_zero: Vec<u64>,
    #[serde(default, skip_serializing_if = "Repeats::is_empty")]
    pub(super) repeats: Repeats,
}

/// The values of several runs: for each run a column by sample. None when there is one run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Repeats {
    pub(super) allocations: Vec<Vec<u64>>,
    pub(super) bytes: Vec<Vec<u64>>,
}

impl Document {
    /// The document of a profile, whose message has this digest.
    pub(super) fn of(profile: &Profile, digest: String) -> Self {
        let mut location_kinds: BTreeMap<FrameKind, Vec<LocationId>> = BTreeMap::new();
        for (at, location) in profile.locations.iter().enumerate() {
            if location.kind != FrameKind::default() {
                location_kinds.entry(location.kind).or_default().push(at);
            }
        }
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            digest,
            images: profile.images.iter().map(|image| Image { pid: 0, ..image.clone() }).collect(),
            windows: profile.windows.clone(),
            executors: profile.executors.clone(),
            threads: profile.threads.iter().map(|thread| ThreadLife { tid: 0, ..thread.clone() }).collect(),
            losses: profile.losses.clone(),
            children: profile.children.clone(),
            environment: profile.environment.clone(),
            symbol_problems: sparse(profile.modules.iter().map(|module| module.symbol_problem.clone())),
            folded_functions: (0..)
                .zip(&profile.functions)
                .filter(|(_, f)| f.is_folded)
                .map(|(at, _)| at)
                .collect(),
            location_kinds,
            stacks: Stacks::of(profile),
            rows: Rows::of(profile),
        }
    }

    /// The comment's text.
    pub(super) fn to_comment(&self) -> String {
        // NOTE: the types hold only numbers, text, sequences and maps with such keys, which JSON can always hold.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{COMMENT_PREFIX}{json}")
    }

    /// Reads the comment's text.
    pub(super) fn from_comment(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
        }
        let comment_error = |error: serde_json::Error| Error::Comment { reason: error.to_string() };
        let json = text.strip_prefix(COMMENT_PREFIX).unwrap_or(text);
        let head: Head = serde_json::from_str(json).map_err(comment_error)?;
        if head.format != FORMAT {
            let reason = format!("expected format \"{FORMAT}\", found \"{}\"", head.format.escape_debug());
            return Err(Error::Comment { reason });
        }
        if head.version != VERSION {
            return Err(Error::Version { found: head.version, known: VERSION.to_string() });
        }
        serde_json::from_str(json).map_err(comment_error)
    }
}

impl Stacks {
    fn of(profile: &Profile) -> Self {
        let mut used = vec![false; profile.stacks.len()];
        for row in &profile.rows {
            if let Some(used) = used.get_mut(row.stack) {
                *used = true;
            }
        }
        let mut stacks = Self { len: profile.stacks.len(), ..Self::default() };
        for (at, (stack, used)) in profile.stacks.iter().zip(used).enumerate() {
            if stack.capture != Capture::default() {
                stacks.captures.entry(stack.capture).or_default().push(at);
            }
            if !stack.cut_reason.is_empty() {
                stacks.cut_reasons.insert(at, stack.cut_reason.clone());
            }
            if !used {
                stacks.unused.insert(at, stack.locations.clone());
            }
        }
        stacks
    }
}

impl Rows {
    fn of(profile: &Profile) -> Self {
        let rows = &profile.rows;
        Self {
            window: rows.iter().map(|row| row.window).collect(),
            stack: rows.iter().map(|row| row.stack).collect(),
            entries: rows.iter().map(|row| row.entries).collect(),
            first_entry: rows.iter().map(|row| row.first_entry).collect(),
            last_entry: rows.iter().map(|row| row.last_entry).collect(),
            reallocs_to_zero: rows.iter().map(|row| row.counts.reallocs_to_zero).collect(),
            repeats: Repeats::of(rows),
        }
    }

    /// Checks that every column has as many entries as there are samples.
    pub(super) fn check_len(&self, samples: usize) -> Result<(), Error> {
        let Repeats { allocations, bytes } = &self.repeats;
        if allocations.len() != bytes.len() {
            let reason = format!(
                "rows.repeats has allocations of {} runs and bytes of {}",
                allocations.len(),
                bytes.len()
            );
            return Err(Error::Comment { reason });
        }
        let repeats = allocations.iter().chain(bytes).map(|column| ("repeats", column.len()));
        for (name, len) in [
            ("window", self.window.len()),
            ("stack", self.stack.len()),
            ("entries", self.entries.len()),
            ("first_entry", self.first_entry.len()),
            ("last_entry", self.last_entry.len()),
            ("reallocs_to_zero", self.reallocs_to_zero.len()),
        ]
        .into_iter()
        .chain(repeats)
        {
            if len != samples {
                let reason = format!("rows.{name} has {len} entries, and there are {samples} samples");
                return Err(Error::Comment { reason });
            }
        }
        Ok(())
    }
}

impl Repeats {
    /// A row without a value for a run makes the run's column too short, so that no reader takes it.
    fn of(rows: &[Row]) -> Self {
        let runs = rows.iter().map(|row| row.repeats.len()).max().unwrap_or(0);
        let column = |run: usize, field: fn(&RepeatValue) -> u64| {
            rows.iter().filter_map(|row| row.repeats.get(run)).map(field).collect()
        };
        Self {
            allocations: (0..runs).map(|run| column(run, |value| value.allocations)).collect(),
            bytes: (0..runs).map(|run| column(run, |value| value.bytes)).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.allocations.is_empty() && self.bytes.is_empty()
    }

    /// The values of a sample. [`Rows::check_len`] has found the columns whole.
    pub(super) fn values(&self, sample: usize) -> Vec<RepeatValue> {
        let columns = self.allocations.iter().zip(&self.bytes);
        let value = |(allocations, bytes): (&Vec<u64>, &Vec<u64>)| {
            Some(RepeatValue { allocations: *allocations.get(sample)?, bytes: *bytes.get(sample)? })
        };
        columns.filter_map(value).collect()
    }
}

/// The values that are there, by index.
fn sparse<T>(values: impl Iterator<Item = Option<T>>) -> BTreeMap<usize, T> {
    values.enumerate().filter_map(|(at, value)| Some((at, value?))).collect()
}
