//! Where all islands call: keeps the whole state of the patched function's caller, and runs the handler.
//!
//! ```text
//! island   push id                      stack   [rsp + 16]  the function's own return address
//!          call [trampoline]                    [rsp + 8]   id
//!          moved instructions …                 [rsp]       into the island
//! ```
//!
//! No register may change, not even one that a call may change by the psABI: compilers that see a function's code call it
//! with less (`-fipa-ra`). The recorder's own code uses the lower 128 bits of sixteen vector registers and leaves the rest
//! alone; functions of the C library do not. What calls those goes through [`keep_vectors`].
//!
//! PERF: to save the whole state, or to ask the processor whether it is in use, took 130 ns and 13 ns of each entry; what is
//! saved here takes 5 ns.
#![expect(unsafe_code, reason = "saves all registers by hand")]

use core::arch::{asm, naked_asm};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU8, Ordering};

/// Not 0: there are vector registers of more than 128 bits.
static HAS_WIDE: AtomicU8 = AtomicU8::new(0);

/// What the processor has. To be called before the first island is written.
pub(crate) fn prepare() {
    const XSAVE_IS_ON: u32 = 1 << 27;
    const AVX: u32 = 1 << 28;
    let features = features();
    let has_wide = features & XSAVE_IS_ON != 0 && features & AVX != 0 && enabled() & 4 != 0;
    HAS_WIDE.store(u8::from(has_wide), Ordering::Release);
}

/// What the processor says of itself by leaf 1, in ecx.
///
/// NOTE: not by the standard library, of which some versions want `unsafe` for that and others refuse it.
fn features() -> u32 {
    let features: u32;
    // SAFETY: every processor of 64 bits has the instruction; the register that the compiler keeps to itself is kept.
    unsafe {
        asm!("push rbx", "cpuid", "pop rbx", inout("eax") 1 => _, inout("ecx") 0 => features, out("edx") _);
    }
    features
}

/// Which parts of the state the system has enabled.
fn enabled() -> u32 {
    let low: u32;
    // SAFETY: the processor has the instruction, since the system has enabled XSAVE.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    low
}

/// Runs with all vector registers kept.
pub(crate) fn keep_vectors<F: FnMut()>(mut run: F) {
    extern "C" fn call<F: FnMut()>(run: *mut c_void) {
        // SAFETY: it is the closure below, which nobody else uses meanwhile.
        unsafe { (*run.cast::<F>())() }
    }
    // SAFETY: the function is called once, with that pointer, before this returns.
    unsafe { keep(call::<F>, (&raw mut run).cast()) }
}

/// SSE, AVX and AVX-512 in the standard form, whose header has to be zero at first.
#[unsafe(naked)]
unsafe extern "C" fn keep(call: extern "C" fn(*mut c_void), context: *mut c_void) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov r8, rdi",
        "mov rdi, rsi",
        "cmp byte ptr [rip + {has_wide}], 0",
        "je 2f",
        "and rsp, -64",
        "sub rsp, 2752",
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "xor edx, edx",
        "mov eax, 0xe6",
        "xsave64 [rsp]",
        "call r8",
        "xor edx, edx",
        "mov eax, 0xe6",
        "xrstor64 [rsp]",
        "jmp 3f",
        "2:",
        "call r8",
        "3:",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        has_wide = sym HAS_WIDE,
    );
}

/// How far below the return address of the patched function the trampoline keeps rdx, the third argument.
pub(crate) const THIRD_BELOW: u64 = 24 + 32;

/// What an island calls. For an unwinder the function's caller called it: the two words above the return address into
/// the island are part of its frame.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entered() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_def_cfa_offset 24",
        "push rbp",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset rbp, -32",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rax",
        "lahf",
        "seto al",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        // Ten words below rbp.
        "and rsp, -16",
        "sub rsp, 256",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "movaps [rsp + 128], xmm8",
        "movaps [rsp + 144], xmm9",
        "movaps [rsp + 160], xmm10",
        "movaps [rsp + 176], xmm11",
        "movaps [rsp + 192], xmm12",
        "movaps [rsp + 208], xmm13",
        "movaps [rsp + 224], xmm14",
        "movaps [rsp + 240], xmm15",
        "mov rcx, rdi",
        "mov r8, rsi",
        "mov edi, [rbp + 16]",
        "lea rsi, [rbp + 24]",
        "mov rdx, [rbp]",
        "mov r9, r14",
        "call {handler}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "movaps xmm8, [rsp + 128]",
        "movaps xmm9, [rsp + 144]",
        "movaps xmm10, [rsp + 160]",
        "movaps xmm11, [rsp + 176]",
        "movaps xmm12, [rsp + 192]",
        "movaps xmm13, [rsp + 208]",
        "movaps xmm14, [rsp + 224]",
        "movaps xmm15, [rsp + 240]",
        "lea rsp, [rbp - 80]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "add al, 127",
        "sahf",
        "pop rax",
        "pop rbp",
        ".cfi_def_cfa rsp, 24",
        ".cfi_restore rbp",
        "ret 8",
        ".cfi_endproc",
        handler = sym crate::patch::on_entry,
    );
}
