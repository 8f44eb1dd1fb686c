//! Where all islands call: keeps the whole state of the patched function's caller, and runs the handler.
//!
//! ```text
//! island   push id                      stack   [rsp + 16]  the function's own return address
//!          call [trampoline]                    [rsp + 8]   id
//!          moved instructions …                 [rsp]       into the island
//! ```
//!
//! No register may change, not even one that a call may change by the psABI: compilers that see a function's code call it
//! with less (`-fipa-ra`). The vector registers' upper parts are kept only where the processor says that they are in use.
#![expect(unsafe_code, reason = "saves all registers by hand")]

use core::arch::{asm, naked_asm, x86_64::__cpuid_count};
use core::sync::atomic::{AtomicU8, Ordering};

/// No vector register is wider than 128 bits.
const NARROW: u8 = 0;
/// Some are, and the processor says whether their upper parts are in use.
const ASKABLE: u8 = 1;
/// Some are, and it does not say.
const WIDE: u8 = 2;

static VECTORS: AtomicU8 = AtomicU8::new(NARROW);

/// What the processor has. To be called before the first island is written.
pub(crate) fn prepare() {
    const XSAVE_IS_ON: u32 = 1 << 27;
    const AVX: u32 = 1 << 28;
    const XGETBV_1: u32 = 1 << 2;
    let features = __cpuid_count(1, 0).ecx;
    let kind = if features & XSAVE_IS_ON == 0 || features & AVX == 0 || enabled() & 4 == 0 {
        NARROW
    } else if __cpuid_count(13, 1).eax & XGETBV_1 != 0 {
        ASKABLE
    } else {
        WIDE
    };
    VECTORS.store(kind, Ordering::Release);
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
        "cmp byte ptr [rip + {vectors}], 1",
        "jb 2f",
        "ja 3f",
        "mov ecx, 1",
        "xgetbv",
        // The upper parts by AVX, and the three states of AVX-512.
        "test al, 0xe4",
        "jnz 3f",
        "2:",
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
        "mov edi, [rbp + 16]",
        "lea rsi, [rbp + 24]",
        "mov rdx, [rbp]",
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
        "4:",
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
        ".cfi_def_cfa rbp, 32",
        ".cfi_offset rbp, -32",
        // SSE, AVX and AVX-512, in the standard form; its header has to be zero at first.
        "3:",
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
        "mov edi, [rbp + 16]",
        "lea rsi, [rbp + 24]",
        "mov rdx, [rbp]",
        "call {handler}",
        "xor edx, edx",
        "mov eax, 0xe6",
        "xrstor64 [rsp]",
        "jmp 4b",
        ".cfi_endproc",
        vectors = sym VECTORS,
        handler = sym crate::patch::on_entry,
    );
}
