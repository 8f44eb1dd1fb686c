//! Requests for plans, their answers, and what came of the plans. See [`layout::Plan`](crate::layout::Plan).

use core::mem::{offset_of, size_of};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::vec;
use std::vec::Vec;

use super::area::Strings;
use super::source::{AreaSource, Bytes, Source};
use super::{Error, Module, module};
use crate::layout::{
    self, AREA_BYTES, AREA_LIMIT, AreaHeader, CodeRange, FIRST_AREA, FileHeader, HEADER, MAGIC, PAGE,
    PLAN_ACTIONS, PLAN_CODE, PLAN_FIXUPS, PLAN_LIMIT, PLAN_ORIGINAL, PLAN_STEPS, PLAN_WRITTEN, PLANS,
    PlanFixup, PlanStep, RANGE_LIMIT, RANGES, STRING_LIMIT, STRINGS,
};

/// What came of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `PLAN_*`.
    pub state: u32,
    /// The path of the function's module.
    pub path: Vec<u8>,
    /// Where the jump came (SVMA).
    pub at: u64,
    /// How often the function was entered.
    pub hits: u64,
}

/// A recorder that waits for plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The area's number.
    pub area: u32,
    /// The request's number.
    pub number: u32,
    /// The loaded modules, but for those of which a forked child has its parent's plans, each with the number of its entry.
    pub modules: Vec<(u32, Module)>,
    /// How many plans there are.
    pub plans: u32,
    /// How many there can be.
    pub plan_limit: u32,
    /// How many ranges of code there are.
    pub ranges: u32,
    /// How many there can be.
    pub range_limit: u32,
}

/// What answers a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What is to be written at entries, those of a module side by side.
    pub plans: Vec<NewPlan>,
    /// The code of functions beneath which a window is.
    pub ranges: Vec<CodeRange>,
}

/// A plan for an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewPlan {
    /// The number of the module's entry.
    pub module: u32,
    /// Where the jump comes (SVMA).
    pub at: u64,
    /// What an entry does: see [`layout::Plan::actions`]. The first [`PLAN_ACTIONS`] count.
    pub actions: Vec<u32>,
    /// What lies there.
    pub original: Vec<u8>,
    /// What comes to the island.
    pub code: Vec<u8>,
    /// Its fix-ups.
    pub fixups: Vec<PlanFixup>,
    /// Its steps.
    pub steps: Vec<PlanStep>,
}

impl NewPlan {
    /// Whether it fits into a plan.
    pub fn fits(&self) -> bool {
        self.original.len() <= PLAN_ORIGINAL
            && self.code.len() <= PLAN_CODE
            && self.fixups.len() <= PLAN_FIXUPS
            && self.steps.len() <= PLAN_STEPS
            && self.actions.len() <= PLAN_ACTIONS
    }

    /// As the segment has it.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<layout::Plan>()];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        let len = |len: usize| (len as u32).to_le_bytes();
        put(offset_of!(layout::Plan, state), &PLAN_WRITTEN.to_le_bytes());
        put(offset_of!(layout::Plan, module), &self.module.to_le_bytes());
        put(offset_of!(layout::Plan, at), &self.at.to_le_bytes());
        for (number, action) in self.actions.iter().take(PLAN_ACTIONS).enumerate() {
            put(offset_of!(layout::Plan, actions) + number * 4, &action.to_le_bytes());
        }
        put(offset_of!(layout::Plan, original_len), &len(self.original.len()));
        put(offset_of!(layout::Plan, code_len), &len(self.code.len()));
        put(offset_of!(layout::Plan, fixups_len), &len(self.fixups.len()));
        put(offset_of!(layout::Plan, steps_len), &len(self.steps.len()));
        put(offset_of!(layout::Plan, original), self.original.get(..PLAN_ORIGINAL).unwrap_or(&self.original));
        put(offset_of!(layout::Plan, code), self.code.get(..PLAN_CODE).unwrap_or(&self.code));
        for (number, fixup) in self.fixups.iter().take(PLAN_FIXUPS).enumerate() {
            let at = offset_of!(layout::Plan, fixups) + number * size_of::<PlanFixup>();
            put(at + offset_of!(PlanFixup, target), &fixup.target.to_le_bytes());
            put(at + offset_of!(PlanFixup, kind), &fixup.kind.to_le_bytes());
            put(at + offset_of!(PlanFixup, at), &fixup.at.to_le_bytes());
            put(at + offset_of!(PlanFixup, end), &fixup.end.to_le_bytes());
        }
        for (number, step) in self.steps.iter().take(PLAN_STEPS).enumerate() {
            let at = offset_of!(layout::Plan, steps) + number * size_of::<PlanStep>();
            put(at + offset_of!(PlanStep, original), &step.original.to_le_bytes());
            put(at + offset_of!(PlanStep, at), &step.at.to_le_bytes());
            put(at + offset_of!(PlanStep, pushed), &step.pushed.to_le_bytes());
        }
        bytes
    }
}

/// The requests that are not answered.
///
/// # Errors
/// As for [`read`](super::read()).
pub fn requests(file: &File) -> Result<Vec<Request>, Error> {
    let source = Source::new(file)?;
    let mut page = vec![0; PAGE as usize];
    source.read(0, &mut page)?;
    let header = Bytes::new(&page);
    let found = header.u64(offset_of!(FileHeader, magic));
    if found != MAGIC {
        return Err(Error::NotASegment { found });
    }
    let limit = header.u32(offset_of!(FileHeader, area_limit)).min(AREA_LIMIT);
    let taken = header.u32(offset_of!(FileHeader, areas_taken)).min(limit);
    let mut requests = Vec::new();
    for number in 0..taken {
        requests.extend(request(source, number)?);
    }
    Ok(requests)
}

fn request(source: Source<'_>, area_number: u32) -> Result<Option<Request>, Error> {
    let area = AreaSource { source, start: area_start(area_number) };
    let mut page = vec![0; PAGE as usize];
    area.read(HEADER.offset, &mut page)?;
    let header = Bytes::new(&page);
    let number = header.u32(offset_of!(AreaHeader, plan_requests));
    if number == header.u32(offset_of!(AreaHeader, plan_answers)) {
        return Ok(None);
    }
    let strings = Strings::new(area, header.u32(offset_of!(AreaHeader, strings)).min(STRING_LIMIT));
    let modules = module::read_numbered(area, header.u32(offset_of!(AreaHeader, modules)), strings)?;
    let inherited = header.u32(offset_of!(AreaHeader, inherited_modules));
    let is_loaded = |module: &Module| module.unload_node == u32::MAX;
    Ok(Some(Request {
        area: area_number,
        number,
        modules: modules
            .into_iter()
            .filter(|(number, module)| *number >= inherited && is_loaded(module))
            .collect(),
        plans: header.u32(offset_of!(AreaHeader, plans)).min(PLAN_LIMIT),
        plan_limit: header.u32(offset_of!(AreaHeader, plan_limit)).min(PLAN_LIMIT),
        ranges: header.u32(offset_of!(AreaHeader, ranges)).min(RANGE_LIMIT),
        range_limit: header.u32(offset_of!(AreaHeader, range_limit)).min(RANGE_LIMIT),
    }))
}

/// Where an area begins in the file.
fn area_start(number: u32) -> u64 {
    FIRST_AREA + u64::from(number) * AREA_BYTES
}

/// Tells the recorder that its request was seen.
///
/// # Errors
/// What the system says to a write.
pub fn see(file: &File, request: &Request) -> io::Result<()> {
    let at = area_start(request.area) + offset_of!(AreaHeader, plans_seen) as u64;
    file.write_all_at(&request.number.to_le_bytes(), at)
}

/// Answers a request. The word that the recorder waits at is written last and not woken: it lies at the offset that is
/// returned, in the file. What has no place is left out.
///
/// # Errors
/// What the system says to a write.
pub fn answer(file: &File, request: &Request, answer: &Answer) -> io::Result<u64> {
    let start = area_start(request.area);
    let room = request.plan_limit.saturating_sub(request.plans) as usize;
    let fitting: Vec<&NewPlan> = answer.plans.iter().take(room).collect();
    let bytes: Vec<u8> = fitting.iter().flat_map(|plan| plan.bytes()).collect();
    let first = u64::from(request.plans) * size_of::<layout::Plan>() as u64;
    file.write_all_at(&bytes, start + PLANS.offset + first)?;
    let count = request.plans + fitting.len() as u32;
    file.write_all_at(&count.to_le_bytes(), start + offset_of!(AreaHeader, plans) as u64)?;
    let room = request.range_limit.saturating_sub(request.ranges) as usize;
    let ranges: Vec<u8> = answer.ranges.iter().take(room).flat_map(range_bytes).collect();
    let first = u64::from(request.ranges) * size_of::<CodeRange>() as u64;
    file.write_all_at(&ranges, start + RANGES.offset + first)?;
    let count = request.ranges + (ranges.len() / size_of::<CodeRange>()) as u32;
    file.write_all_at(&count.to_le_bytes(), start + offset_of!(AreaHeader, ranges) as u64)?;
    let lost = answer.ranges.len().saturating_sub(room) as u32;
    if lost > 0 {
        file.write_all_at(&lost.to_le_bytes(), start + offset_of!(AreaHeader, lost_ranges) as u64)?;
    }
    let word = start + offset_of!(AreaHeader, plan_answers) as u64;
    file.write_all_at(&request.number.to_le_bytes(), word)?;
    Ok(word)
}

fn range_bytes(range: &CodeRange) -> [u8; size_of::<CodeRange>()] {
    let mut bytes = [0; size_of::<CodeRange>()];
    let mut put = |at: usize, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    };
    put(offset_of!(CodeRange, start), &range.start.to_le_bytes());
    put(offset_of!(CodeRange, end), &range.end.to_le_bytes());
    put(offset_of!(CodeRange, module), &range.module.to_le_bytes());
    put(offset_of!(CodeRange, window), &range.window.to_le_bytes());
    bytes
}

/// What came of an area's plans.
pub(super) fn read(area: AreaSource<'_>, used: u32, strings: Strings<'_>) -> Result<Vec<Plan>, Error> {
    let mut found = Vec::new();
    area.for_each::<layout::Plan>(PLANS, used.min(PLAN_LIMIT), |_, entry| {
        let state = entry.u32(offset_of!(layout::Plan, state));
        if state != 0 {
            let module = entry.u32(offset_of!(layout::Plan, module));
            let at = entry.u64(offset_of!(layout::Plan, at));
            let hits = entry.u64(offset_of!(layout::Plan, hits));
            found.push((module, Plan { state, path: Vec::new(), at, hits }));
        }
    })?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let used = found.iter().map(|(module, _)| module.saturating_add(1)).max().unwrap_or(0);
    let modules = module::read_numbered(area, used, strings)?;
    let path = |number: u32| modules.iter().find(|(own, _)| *own == number).map(|(_, module)| &module.path);
    Ok(found
        .into_iter()
        .map(|(module, plan)| Plan { path: path(module).cloned().unwrap_or_default(), ..plan })
        .collect())
}

const _: () = assert!(STRINGS.bytes == STRING_LIMIT as u64);
