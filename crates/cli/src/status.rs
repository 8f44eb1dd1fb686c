//! `--json-status`: what became of the program and of the recorder, told apart.

use heaptally_profile::model::Children;
use heaptally_segment::layout::OracleSkip;
use heaptally_segment::read::{Oracle, Snapshot};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::message::print;
use crate::output::Output;
use crate::process::End;

/// Gathers what is known; written whatever happens.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// How often the program was to run.
    pub(crate) repeat: u64,
    /// The runs that ended.
    pub(crate) runs: Vec<RunStatus>,
    pub(crate) error: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) windows: u64,
    pub(crate) allocations: u64,
    /// How many rows differ between the runs.
    pub(crate) unstable: u64,
    pub(crate) complete: bool,
    /// What is known of child processes.
    pub(crate) children: Children,
    /// The processes that were recorded, where children were followed.
    pub(crate) processes: Vec<Value>,
}

/// What became of one run.
#[derive(Debug)]
pub(crate) struct RunStatus {
    pub(crate) end: End,
    /// What the recorder's comparison with itself found.
    pub(crate) oracle: Option<Value>,
}

impl RunStatus {
    fn json(&self) -> Value {
        json!({"exit_code": self.end.exit_code, "signal": self.end.signal})
    }
}

impl Status {
    /// Writes the file. A status that cannot be written is said, and changes no exit code but that of a good run.
    ///
    /// `program` tells of the last run; with `--repeat` the list `runs` tells of each.
    pub(crate) fn write(&self, output: Output) -> Result<(), Failure> {
        let program = self.runs.last().map(RunStatus::json);
        let mut status = json!({
            "schema": "heaptally-status",
            "version": 1,
            "program": program,
            "recorder": {
                "ok": self.error.is_none(),
                "error": self.error,
                "profile": self.profile,
                "windows": self.windows,
                "allocations": self.allocations,
                "complete": self.complete,
            },
        });
        if self.repeat > 1 {
            let runs = self.runs.iter().map(|run| {
                let mut json = run.json();
                if let Some(oracle) = &run.oracle {
                    json["oracle"] = oracle.clone();
                }
                json
            });
            status["runs"] = runs.collect();
            status["recorder"]["unstable"] = self.unstable.into();
        } else if let Some(oracle) = self.runs.last().and_then(|run| run.oracle.as_ref()) {
            status["oracle"] = oracle.clone();
        }
        if !self.children.is_empty() {
            status["children"] = serde_json::to_value(&self.children).unwrap_or_default();
        }
        if !self.processes.is_empty() {
            status["processes"] = self.processes.clone().into();
        }
        output.write(format!("{status}\n").as_bytes())
    }
}

/// The sums of the recorder's self-comparison over all images, printed and as JSON; `None` where it was not on.
pub(crate) fn oracle(snapshot: &Snapshot) -> Option<Value> {
    let is_on = |oracle: &&Oracle| oracle.full > 0;
    let all: Vec<&Oracle> = snapshot.areas.iter().map(|area| &area.oracle).filter(is_on).collect();
    if all.is_empty() {
        return None;
    }
    let sum = |field: fn(&Oracle) -> u64| all.iter().map(|oracle| field(oracle)).sum::<u64>();
    let skip = |reason: OracleSkip| all.iter().map(|oracle| oracle.skips[reason as usize]).sum::<u64>();
    let skips = [
        ("no_unwinder", OracleSkip::NoUnwinder),
        ("nested", OracleSkip::Nested),
        ("cut", OracleSkip::Cut),
        ("frame_pointer", OracleSkip::FramePointer),
        ("too_deep", OracleSkip::TooDeep),
        ("not_found", OracleSkip::NotFound),
    ]
    .map(|(name, reason)| (name, skip(reason)));
    let full = sum(|oracle| oracle.full);
    let libgcc = sum(|oracle| oracle.libgcc);
    let full_differs = sum(|oracle| oracle.full_differs);
    let libgcc_differs = sum(|oracle| oracle.libgcc_differs);
    let skipped: Vec<String> =
        skips.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let mut line = format!(
        "oracle: {full} compared with the full walk, {libgcc} with libgcc's, {} differences, skipped: {}",
        full_differs + libgcc_differs,
        if skipped.is_empty() { "none".to_owned() } else { skipped.join(", ") },
    );
    for oracle in all.iter().filter(|oracle| oracle.full_differs + oracle.libgcc_differs > 0) {
        line.push_str(&format!("\nthe first: {:x?}\nagainst:   {:x?}", oracle.first[0], oracle.first[1]));
    }
    print(&line);
    Some(json!({
        "full": full,
        "libgcc": libgcc,
        "full_differs": full_differs,
        "libgcc_differs": libgcc_differs,
        "skips": skips.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect::<serde_json::Map<_, _>>(),
    }))
}
