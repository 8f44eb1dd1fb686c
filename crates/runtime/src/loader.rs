//! Sees libraries come and go.
//!
//! The loader calls an empty function, whose address it keeps for debuggers (`_r_debug.r_brk`), after it has mapped new
//! libraries and before it runs any of their code, and again when it has unmapped some. A jump written there tells
//! the recorder in time, under the loader's own lock. Where that page cannot be written, the loader's counts are looked
//! at after each `dlclose` that the recorder sees, and the area's flags say so.
#![expect(unsafe_code, reason = "writes a jump into the loader")]

use core::arch::naked_asm;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::local::{RECORDING, local};
use crate::namespace::{Debug, debug};
use crate::recorder::{Recorder, recorder};
use crate::sys;

const CONSISTENT: i32 = 0;

/// Whether libraries came or went in a forked child before it recorded.
static HAS_CHANGED_UNSEEN: AtomicBool = AtomicBool::new(false);

/// `jmp [rip]` and the target.
const JUMP_BYTES: usize = 14;
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const RET: u8 = 0xc3;

/// Starts to watch. False: this loader's function does not look as expected, or its page cannot be written.
///
/// To be called while the process has one thread.
pub(crate) fn watch(debug: &'static Debug) -> bool {
    let address = debug.break_address as usize;
    if address == 0 || !is_empty_function(address) {
        return false;
    }
    let page = address & !(sys::PAGE - 1);
    let bytes = (address + JUMP_BYTES - page).next_multiple_of(sys::PAGE);
    if !sys::set_code_writable(page, bytes, true) {
        return false;
    }
    let target = loader_changed as *const () as usize;
    // SAFETY: the bytes are those of an empty function and of the padding behind it, writable now; no other thread runs.
    unsafe {
        core::ptr::copy_nonoverlapping(JUMP.as_ptr(), address as *mut u8, JUMP.len());
        ((address + JUMP.len()) as *mut usize).write_unaligned(target);
    }
    sys::set_code_writable(page, bytes, false);
    true
}

/// Whether the function returns at once, and what follows up to the jump's length is padding.
fn is_empty_function(address: usize) -> bool {
    if !address.is_multiple_of(16) {
        return false;
    }
    // SAFETY: sixteen bytes of the loader's code, aligned, so that they lie in one page.
    let code = unsafe { (address as *const [u8; 16]).read() };
    let start = if code.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 };
    // `nop` in its one-byte and multi-byte forms, and `int3`.
    let is_padding =
        |byte: &u8| matches!(byte, 0x90 | 0xcc | 0x66 | 0x2e | 0x0f | 0x1f | 0x40 | 0x44 | 0x80 | 0x84 | 0);
    code[start] == RET && code[start + 1..JUMP_BYTES].iter().all(is_padding)
}

/// Stands in for the loader's empty function: keeps all registers that a call may change.
#[unsafe(naked)]
unsafe extern "C" fn loader_changed() {
    naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "push rcx",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push r8",
        ".cfi_adjust_cfa_offset 8",
        "push r9",
        ".cfi_adjust_cfa_offset 8",
        "push r10",
        ".cfi_adjust_cfa_offset 8",
        "push r11",
        ".cfi_adjust_cfa_offset 8",
        "call {update}",
        "pop r11",
        ".cfi_adjust_cfa_offset -8",
        "pop r10",
        ".cfi_adjust_cfa_offset -8",
        "pop r9",
        ".cfi_adjust_cfa_offset -8",
        "pop r8",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rcx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        update = sym on_loader_changed,
    );
}

extern "C" fn on_loader_changed() {
    let Some(recorder) = recorder() else {
        HAS_CHANGED_UNSEEN.store(true, Ordering::Release);
        return;
    };
    // Under the loader's lock: it called us. For a namespace of its own the state of the first one stays as it is.
    if debug().is_some_and(|debug| debug.state.load(Ordering::Relaxed) == CONSISTENT) {
        update(recorder, true);
    } else {
        // Something is about to come or go: what is there now is bound.
        recorder.modules.note_bypasses();
    }
}

/// Whether that was so, for once.
pub(crate) fn has_changed_unseen() -> bool {
    HAS_CHANGED_UNSEEN.swap(false, Ordering::AcqRel)
}

fn update(recorder: &Recorder, is_new: bool) {
    let local = local();
    let before = core::mem::replace(&mut local.busy, RECORDING);
    recorder.update_modules(is_new);
    local.busy = before;
}

/// After a `dlclose` that the recorder saw.
pub(crate) fn after_dlclose() {
    if let Some(recorder) = recorder()
        && recorder.is_loader_watched.load(Ordering::Relaxed) == 0
        && recorder.modules.is_stale()
    {
        update(recorder, false);
    }
}

/// Before a `dlclose` that the recorder sees, and at the program's end.
pub(crate) fn before_unload() {
    if let Some(recorder) = recorder() {
        let local = local();
        let before = core::mem::replace(&mut local.busy, RECORDING);
        recorder.look_around();
        local.busy = before;
    }
}
