//! What is wanted, beside what was measured.

use super::diff::Shown;
use super::figure::{Figures, Spread};
use super::mode::Mode;
use serde_json::{Value, json};
use std::fmt::Write as _;

const OURS: Mode = Mode::Heaptally;
const MIB: f64 = 1048576.0;

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Wanted {
    what: String,
    wanted: String,
    measured: String,
    /// None: not everything that it takes was measured.
    is_met: Option<bool>,
}

impl Wanted {
    fn unknown(what: &str, wanted: &str) -> Self {
        Wanted {
            what: what.to_owned(), wanted: wanted.to_owned(), measured: String::from("–"), is_met: None
        }
    }

    /// At most `limit` of a unit, of which `digits` digits are shown.
    fn at_most(what: &str, wanted: &str, limit: f64, digits: usize, measured: Option<Spread>) -> Self {
        match measured {
            None => Wanted::unknown(what, wanted),
            Some(spread) => Wanted {
                measured: spread.show(digits),
                is_met: Some(spread.median <= limit),
                ..Wanted::unknown(what, wanted)
            },
        }
    }

    fn to_json(&self) -> Value {
        json!({"what": self.what, "wanted": self.wanted, "measured": self.measured, "met": self.is_met})
    }
}

/// All lines, those included that nothing was measured for.
pub(crate) fn all(figures: &Figures, shown: Option<&Shown>) -> Vec<Wanted> {
    let mut lines = vec![beside_heaptrack(figures), beside_frames(figures)];
    lines.extend([60, 200].map(|depth| growth(figures, depth)));
    for stacks in ["10000", "100000"] {
        let (what, workload) = (format!("{stacks} stacks, random order"), format!("pairs-20-{stacks}"));
        let added = figures.added_ns(&workload, OURS);
        lines.push(Wanted::at_most(&what, "≤ 250 ns added per pair", 250.0, 1, added));
    }
    let ratios = [
        ("rust-json", 1.4),
        ("cpp-mix", 1.4),
        ("python-json", 1.2),
        ("perl", 1.2),
        ("jq", 1.2),
        ("sqlite3", 1.2),
        ("node", 1.2),
        ("cc1plus", 1.3),
    ];
    for (workload, limit) in ratios {
        let wanted = format!("≤ {limit} × native");
        lines.push(Wanted::at_most(workload, &wanted, limit, 2, figures.ratio(workload, OURS)));
    }
    lines.extend([100, 10_000, 100_000].map(|stacks| threads(figures, stacks)));
    let added = |workload| figures.added_ns(workload, OURS);
    lines.push(Wanted::at_most("before the first window", "≤ 3 ns added per pair", 3.0, 1, added("before")));
    let what = "window closed again, with live blocks";
    lines.push(Wanted::at_most(what, "≤ 8 ns added per pair", 8.0, 1, added("after")));
    for workload in ["windows-1", "windows-10000"] {
        let what = format!("window begin and end ({workload})");
        lines.push(Wanted::at_most(&what, "≤ 300 ns", 300.0, 1, added(workload)));
    }
    let live = figures.ratio("live", OURS);
    lines.push(Wanted::at_most("a million live blocks, random order", "≤ 2.5 × native", 2.5, 2, live));
    lines.extend(["pairs-20-10000", "pairs-20-100000"].map(|workload| memory(figures, workload)));
    lines.push(memory_of_events(figures));
    lines.push(start_to_end(figures));
    let start = added("start").map(|start| start.map(|ns| ns / 1e6));
    lines.push(Wanted::at_most("the library's own start", "≤ 1 ms", 1.0, 2, start));
    let end = |workload| figures.find(workload, OURS)?.end_to_report_ms();
    let what = "program's end to report, debug information";
    lines.push(Wanted::at_most(what, "≤ 500 ms", 500.0, 0, end("sites")));
    lines.push(Wanted::at_most("program's end to report, cc1plus", "≤ 1000 ms", 1000.0, 0, end("cc1plus")));
    let report = shown.and_then(|shown| Shown::ms(&shown.report));
    lines.push(Wanted::at_most("report of 65,536 stacks", "≤ 300 ms", 300.0, 0, report));
    let diff = shown.and_then(|shown| Shown::ms(&shown.diff));
    lines.push(Wanted::at_most("diff of 65,536 stacks", "≤ 1000 ms", 1000.0, 0, diff));
    lines
}

fn beside_heaptrack(figures: &Figures) -> Wanted {
    let what = "added time at depth 20, 100 stacks";
    let wanted = "≤ 1/15 of heaptrack --raw";
    let added = |mode| figures.added_ns("pairs-20-100", mode);
    let Some((ours, theirs)) = added(OURS).zip(added(Mode::HeaptrackRaw)) else {
        return Wanted::unknown(what, wanted);
    };
    Wanted {
        measured: format!("{} of {} ns: 1/{:.1}", ours.show(1), theirs.show(0), theirs.median / ours.median),
        is_met: Some(ours.median * 15.0 <= theirs.median),
        ..Wanted::unknown(what, wanted)
    }
}

fn beside_frames(figures: &Figures) -> Wanted {
    let what = "the same, of a program without frame pointers";
    let wanted = "≤ the plain frame-pointer walk of one that has them";
    let ours = figures.added_ns("pairs-20-100", OURS);
    let Some((ours, theirs)) = ours.zip(figures.added_ns("pairs-20-100-fp", Mode::Frames)) else {
        return Wanted::unknown(what, wanted);
    };
    Wanted {
        measured: format!("{} ns; the walk {} ns", ours.show(1), theirs.show(1)),
        is_met: Some(ours.median <= theirs.median),
        ..Wanted::unknown(what, wanted)
    }
}

/// From depth 20 on.
fn growth(figures: &Figures, depth: u32) -> Wanted {
    let what = format!("growth from depth 20 to {depth}, 100 stacks");
    let wanted = "≤ 1 ns a frame";
    let low = figures.added_ns("pairs-20-100", OURS);
    let Some((low, high)) = low.zip(figures.added_ns(&format!("pairs-{depth}-100"), OURS)) else {
        return Wanted::unknown(&what, wanted);
    };
    let per_frame = (high.median - low.median) / f64::from(depth - 20);
    Wanted {
        measured: format!("{per_frame:.2} ns (from {:.1} to {:.1} ns)", low.median, high.median),
        is_met: Some(per_frame <= 1.0),
        ..Wanted::unknown(&what, wanted)
    }
}

fn threads(figures: &Figures, stacks: u64) -> Wanted {
    let what = format!("each of two threads, depth 20, {stacks} stacks");
    let wanted = "≤ 1.15 × one alone";
    let time = |workload: &str| figures.find(workload, OURS)?.per_allocation_ns();
    let one = time(&format!("pairs-20-{stacks}"));
    let Some((one, two)) = one.zip(time(&format!("pairs-20-{stacks}-2t"))) else {
        return Wanted::unknown(&what, wanted);
    };
    let ratio = two.median / one.median;
    Wanted {
        measured: format!("{ratio:.2} ({:.1} and {:.1} ns a pair)", one.median, two.median),
        is_met: Some(ratio <= 1.15),
        ..Wanted::unknown(&what, wanted)
    }
}

/// Of one thread without live blocks: a row a stack, and nodes for the last three frames of each and the rest.
fn memory(figures: &Figures, workload: &str) -> Wanted {
    let what = format!("memory added to the program, {workload}");
    let wanted = "≤ 8 MiB + 100 bytes a row + 16 bytes a node";
    let own = |mode| Some(figures.find(workload, mode)?.own_peak_rss_bytes()?.median);
    let stacks = |mode| figures.find(workload, mode)?.spread(|run| Some(run.own?.stacks? as f64));
    let Some(((ours, native), stacks)) = own(OURS).zip(own(Mode::Native)).zip(stacks(OURS)) else {
        return Wanted::unknown(&what, wanted);
    };
    let nodes = stacks.median * (1.0 + 1.0 / 47.0 + 1.0 / 2209.0) + 20.0;
    let limit = 8.0 * MIB + 100.0 * stacks.median + 16.0 * nodes;
    let added = ours - native;
    Wanted {
        measured: format!("{:.1} MiB of {:.1}", added / MIB, limit / MIB),
        is_met: Some(added <= limit),
        ..Wanted::unknown(&what, wanted)
    }
}

fn memory_of_events(figures: &Figures) -> Wanted {
    let (what, wanted) = ("memory with ten times the events", "the same (within 256 KiB)");
    let own = |workload| Some(figures.find(workload, OURS)?.own_peak_rss_bytes()?.median);
    let Some((few, many)) = own("memory-1m").zip(own("memory-10m")) else {
        return Wanted::unknown(what, wanted);
    };
    Wanted {
        measured: format!("{:.2} and {:.2} MiB", few / MIB, many / MIB),
        is_met: Some(many - few <= 256.0 * 1024.0),
        ..Wanted::unknown(what, wanted)
    }
}

fn start_to_end(figures: &Figures) -> Wanted {
    let whole = |mode| figures.find("true", mode)?.whole_ms();
    let native = whole(Mode::Native).map(|native| native.median);
    let added = whole(OURS).zip(native).map(|(ours, native)| ours.map(|ms| ms - native));
    Wanted::at_most("start to end of true", "≤ 15 ms more than native", 15.0, 1, added)
}

/// As Markdown.
pub(crate) fn table(lines: &[Wanted]) -> String {
    let mut text = String::from("| what | wanted | measured | met |\n|---|---|---|---|\n");
    for line in lines {
        let met = match line.is_met {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not measured",
        };
        // NOTE: a String takes any text.
        let _ = writeln!(text, "| {} | {} | {} | {met} |", line.what, line.wanted, line.measured);
    }
    text
}

/// As JSON.
pub(crate) fn to_json(lines: &[Wanted]) -> Value {
    lines.iter().map(Wanted::to_json).collect()
}
