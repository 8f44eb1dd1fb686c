//! What the functions of all harnesses that `preload` stands in for have in common.

use core::sync::atomic::Ordering;

use heaptally_segment::layout::OPTION_NO_HARNESS;

use crate::child;
use crate::local::{Local, RECORDING, local};
use crate::recorder::{Recorder, recorder};

/// Runs in the recorder, where there is one and harnesses' loops are wanted.
pub(crate) fn in_recorder(run: impl FnOnce(&'static Recorder, &mut Local)) {
    let Some(recorder) = recorder() else { return };
    if child::head().is_none_or(|head| head.options & OPTION_NO_HARNESS != 0) {
        return;
    }
    let local = local();
    let Some(idle) = local.enter(RECORDING) else {
        recorder.tally.header().lost_window_calls.fetch_add(1, Ordering::Relaxed);
        return;
    };
    run(recorder, local);
    local.leave(idle);
}
