//! Plans for entries, as the recorder follows them.

use heaptally_segment::layout::{
    ACTION_BEGIN, ACTION_END, ACTION_KIND_SHIFT, ACTION_TURN, FIXUP_DISTANCE, FIXUP_HIGH, FIXUP_LOW,
    PlanFixup, PlanStep,
};
use heaptally_segment::read::NewPlan;

use super::entry::{FixupKind, Moved};

/// A function that is both edges of a window opens and closes it by turns.
pub(super) fn by_turns(mut actions: Vec<u32>) -> Vec<u32> {
    const NAME: u32 = (1 << ACTION_KIND_SHIFT) - 1;
    let is = |action: u32, kind: u32| action >> ACTION_KIND_SHIFT == kind;
    let (begin, end) = (ACTION_BEGIN << ACTION_KIND_SHIFT, ACTION_END << ACTION_KIND_SHIFT);
    let is_both = |action: u32, all: &[u32]| {
        all.contains(&(begin | (action & NAME))) && all.contains(&(end | (action & NAME)))
    };
    let all = actions.clone();
    actions.retain(|action| !(is(*action, ACTION_BEGIN) && is_both(*action, &all)));
    for action in actions.iter_mut().filter(|action| is(**action, ACTION_END) && is_both(**action, &all)) {
        *action = ACTION_TURN << ACTION_KIND_SHIFT | (*action & NAME);
    }
    actions
}

/// The plan for an entry, as the recorder follows it.
pub(super) fn new_plan(module: u32, moved: &Moved, actions: Vec<u32>) -> NewPlan {
    let fixups = moved.fixups.iter().map(|fixup| PlanFixup {
        target: fixup.target,
        kind: match fixup.kind {
            FixupKind::Distance => FIXUP_DISTANCE,
            FixupKind::Low => FIXUP_LOW,
            FixupKind::High => FIXUP_HIGH,
        },
        at: fixup.at,
        end: fixup.end,
    });
    let steps = moved.steps.iter().map(|step| PlanStep {
        original: step.original,
        at: step.at,
        pushed: step.pushed,
        ..PlanStep::default()
    });
    NewPlan {
        module,
        at: moved.at,
        actions,
        original: moved.original.clone(),
        code: moved.code.clone(),
        fixups: fixups.collect(),
        steps: steps.collect(),
    }
}
