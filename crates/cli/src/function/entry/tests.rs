#![expect(unsafe_code, reason = "runs moved instructions beside the original ones")]

use std::ptr;

use super::*;
use crate::function::module::Module;

const BASE: u64 = 0x1000;

fn code(bytes: &[u8]) -> Code {
    Code::new(vec![(BASE, bytes.to_vec())], [BASE])
}

/// Moves the entry of a function that is all of the bytes.
fn moved(bytes: &[u8]) -> Result<Moved, Refusal> {
    move_entry(&code(bytes), (BASE, BASE + bytes.len() as u64))
}

fn distances(moved: &Moved) -> Vec<u64> {
    moved.fixups.iter().filter(|fixup| fixup.kind == FixupKind::Distance).map(|fixup| fixup.target).collect()
}

#[test]
fn whole_instructions_are_copied() {
    // push rbp; mov rbp, rsp; push r15; ret
    let found = moved(&[0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xc3]).unwrap();
    assert_eq!(found.at, BASE);
    assert_eq!(found.original, [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57]);
    assert_eq!(found.code, [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xe9, 0, 0, 0, 0]);
    assert_eq!(distances(&found), [BASE + 6]);
    let steps: Vec<_> = found.steps.iter().map(|step| (step.at, step.original - BASE)).collect();
    assert_eq!(steps, [(0, 0), (1, 1), (4, 4), (6, 6)]);
}

#[test]
fn the_mark_of_an_indirect_branch_stays() {
    let found = moved(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x18, 0x31, 0xc0, 0xc3]).unwrap();
    assert_eq!((found.at, found.original.len()), (BASE + 4, 6));
    // endbr64; xor eax, eax; ret: no room behind the mark, so it moves.
    let found = moved(&[0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3]).unwrap();
    assert_eq!((found.at, found.original.len()), (BASE, 6));
}

#[test]
fn operands_relative_to_the_instruction_pointer() {
    // lea rax, [rip+0x10]; ret
    let found = moved(&[0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3]).unwrap();
    assert_eq!(found.code[..7], [0x48, 0x8d, 0x05, 0, 0, 0, 0]);
    let fixup = found.fixups[0];
    assert_eq!((fixup.at, fixup.end, fixup.target), (3, 7, BASE + 7 + 0x10));
    // cmp dword [rip+0x20], 5: a number follows the distance.
    let found = moved(&[0x83, 0x3d, 0x20, 0, 0, 0, 0x05, 0xc3]).unwrap();
    assert_eq!((found.fixups[0].at, found.fixups[0].end), (2, 7));
    assert_eq!(found.fixups[0].target, BASE + 7 + 0x20);
}

#[test]
fn short_jumps_become_near_ones() {
    // test edi, edi; je +6; xor eax, eax; nop; nop …; ret
    let found = moved(&[0x85, 0xff, 0x74, 0x06, 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0xc3]).unwrap();
    assert_eq!(found.code[..8], [0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0]);
    assert_eq!(distances(&found), [BASE + 10, BASE + 6]);
    // jrcxz +6
    let found = moved(&[0xe3, 0x06, 0x48, 0x89, 0xf8, 0x90, 0x90, 0x90, 0xc3]).unwrap();
    assert_eq!(found.code[..9], [0xe3, 0x02, 0xeb, 0x05, 0xe9, 0, 0, 0, 0]);
    // jmp behind: nothing comes back.
    let found = moved(&[0xe9, 0x10, 0, 0, 0]).unwrap();
    assert_eq!((found.code.len(), distances(&found)), (5, vec![BASE + 5 + 0x10]));
}

#[test]
fn a_call_pushes_the_address_that_it_pushed_before() {
    // push rax; call +0x100; pop rcx; ret
    let found = moved(&[0x50, 0xe8, 0, 1, 0, 0, 0x59, 0xc3]).unwrap();
    let kinds: Vec<_> = found.fixups.iter().map(|fixup| (fixup.kind, fixup.target - BASE)).collect();
    assert_eq!(
        kinds,
        [(FixupKind::Low, 6), (FixupKind::High, 6), (FixupKind::Distance, 0x106), (FixupKind::Distance, 6)]
    );
    assert!(found.steps.iter().any(|step| step.pushed == 1 && step.original == BASE + 1));
    // call [rip+8]
    let found = moved(&[0xff, 0x15, 8, 0, 0, 0, 0xc3]).unwrap();
    assert!(found.code.windows(2).any(|pair| pair == [0xff, 0x25]), "{:x?}", found.code);
}

#[test]
fn what_cannot_be_moved_is_refused() {
    let refusal = |bytes: &[u8]| moved(bytes).unwrap_err();
    assert_eq!(refusal(&[0xc3]), Refusal::TooShort(1));
    assert_eq!(refusal(&[0xff, 0xd0, 0x31, 0xc0, 0x90, 0xc3]), Refusal::ShortCall);
    assert_eq!(refusal(&[0x50, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08, 0xc3]), Refusal::StackCall);
    assert_eq!(refusal(&[0xc7, 0xf8, 0, 0, 0, 0, 0xc3]), Refusal::Transaction);
    assert_eq!(refusal(&[0x06, 0x90, 0x90, 0x90, 0x90, 0xc3]), Refusal::Unknown(BASE));
    // inc eax; cmp eax, edi; jne to the second instruction, then to the first.
    let into = [0x89, 0xf0, 0xff, 0xc0, 0x39, 0xf8, 0x75, 0xfa, 0xc3];
    assert_eq!(refusal(&into), Refusal::JumpedInto { from: BASE + 6, to: BASE + 2 });
    let head = [0xff, 0xc0, 0x39, 0xf8, 0x90, 0x75, 0xf9, 0xc3];
    assert_eq!(refusal(&head), Refusal::Loop(BASE + 5));
    assert_eq!(move_entry(&code(&[0x90]), (0x9000, 0x9010)), Err(Refusal::NoCode));
}

#[test]
fn a_jump_from_a_part_elsewhere_is_seen() {
    let mut bytes = vec![0x89, 0xf0, 0xff, 0xc0, 0x01, 0xf8, 0xc3];
    bytes.resize(64, 0xcc);
    // The part jumps back behind the first instruction.
    bytes.extend([0xe9, 0xbd, 0xff, 0xff, 0xff]);
    let code = Code::new(vec![(BASE, bytes)], [BASE, BASE + 64]);
    let refusal = move_entry(&code, (BASE, BASE + 7)).unwrap_err();
    assert_eq!(refusal, Refusal::JumpedInto { from: BASE + 64, to: BASE + 2 });
}

#[test]
fn a_tail_call_to_the_entry_is_no_obstacle() {
    let mut bytes = vec![0x89, 0xf0, 0xff, 0xc0, 0x01, 0xf8, 0xc3];
    bytes.resize(64, 0xcc);
    bytes.extend([0xe9, 0xbb, 0xff, 0xff, 0xff]);
    let code = Code::new(vec![(BASE, bytes)], [BASE, BASE + 64]);
    assert!(move_entry(&code, (BASE, BASE + 7)).is_ok());
}

#[test]
fn padding_behind_a_short_function_gives_room() {
    let mut bytes = vec![0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00];
    bytes.resize(16, 0x90);
    let code = |starts: &[u64]| Code::new(vec![(BASE, bytes.clone())], starts.iter().copied());
    let found = move_entry(&code(&[BASE, BASE + 16]), (BASE, BASE + 3)).unwrap();
    assert_eq!(found.code, [0x31, 0xc0, 0xc3]);
    assert_eq!(move_entry(&code(&[BASE, BASE + 4]), (BASE, BASE + 3)), Err(Refusal::TooShort(3)));
}

/// Executable memory in which a function and its island lie.
struct Pages(*mut u8);

const PAGES_BYTES: usize = 8192;
const ISLAND: usize = 4096;

impl Pages {
    fn new() -> Self {
        let (all, private) =
            (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the kernel likes.
        let memory = unsafe { libc::mmap(ptr::null_mut(), PAGES_BYTES, all, private, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Self(memory.cast())
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= PAGES_BYTES);
        // SAFETY: the range lies in the mapping, which nobody else uses.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(at), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.0.cast(), PAGES_BYTES) };
    }
}

/// The moved code at its place, and the jump to it.
fn patch(pages: &Pages, moved: &Moved) {
    let (base, island) = (pages.0 as u64, pages.0 as u64 + ISLAND as u64);
    let mut code = moved.code.clone();
    for fixup in &moved.fixups {
        let target = fixup.target - BASE + base;
        let value = match fixup.kind {
            FixupKind::Distance => target.wrapping_sub(island + u64::from(fixup.end)) as u32,
            FixupKind::Low => target as u32,
            FixupKind::High => (target >> 32) as u32,
        };
        code[usize::from(fixup.at)..usize::from(fixup.at) + 4].copy_from_slice(&value.to_le_bytes());
    }
    pages.put(ISLAND, &code);
    let at = (moved.at - BASE) as usize;
    let distance = (ISLAND - at - 5) as u32;
    pages.put(at, &[&[0xe9], &distance.to_le_bytes()[..]].concat());
}

/// Instructions that can stand anywhere in a function of (rdi, rsi), by what they do to rax; `K` stands for a place
/// relative to the instruction pointer that holds a constant, `F` for a function, `J` for the end.
const PIECES: [&[u8]; 14] = [
    &[0x48, 0x89, 0xf8],
    &[0x48, 0x01, 0xf0],
    &[0x48, 0x83, 0xc0, 0x05],
    &[0x48, 0x8d, 0x04, 0x3e],
    &[0x90],
    &[0x50, 0x58],
    &[0x48, 0x35, 0x44, 0x33, 0x22, 0x11],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    b"\x48\x03\x05KKKK",
    b"\x48\x8b\x05KKKK",
    b"\xe8FFFF",
    b"\xff\x15GGGG",
    b"\x48\x85\xff\x74J",
    b"\x48\x83\xff\x03\x7dJ",
];

const CONSTANT: usize = 0x200;
const POINTER: usize = 0x208;
const CALLEE: usize = 0x210;
const END: usize = 0x78;

/// A function of such pieces.
fn function(pieces: &[usize]) -> Option<Vec<u8>> {
    let mut bytes = vec![0x48, 0x31, 0xc0];
    if pieces.first().is_some_and(|first| first % 2 == 1) {
        bytes.clear();
    }
    for piece in pieces {
        let piece = PIECES[piece % PIECES.len()];
        let end = bytes.len() + piece.len();
        let target = match piece.last() {
            Some(b'K') => Some(CONSTANT),
            Some(b'G') => Some(POINTER),
            Some(b'F') => Some(CALLEE),
            _ => None,
        };
        if let Some(target) = target {
            bytes.extend(&piece[..piece.len() - 4]);
            bytes.extend(((target - end) as u32).to_le_bytes());
        } else if piece.last() == Some(&b'J') {
            bytes.extend(&piece[..piece.len() - 1]);
            bytes.push(u8::try_from(END.checked_sub(end)?).ok()?);
        } else {
            bytes.extend(piece);
        }
    }
    if bytes.len() > END {
        return None;
    }
    bytes.resize(END, 0x90);
    bytes.push(0xc3);
    Some(bytes)
}

#[test]
fn moved_instructions_do_what_the_original_ones_did() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut patched, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let pieces: Vec<usize> = (0..1 + random() % 6).map(|_| random() as usize).collect();
        let Some(bytes) = function(&pieces) else { continue };
        let pages = Pages::new();
        pages.put(0, &bytes);
        pages.put(CONSTANT, &0x1234_5678_u64.to_le_bytes());
        pages.put(POINTER, &(pages.0 as u64 + CALLEE as u64).to_le_bytes());
        // lea rax, [rax+rax*2+1]; xor rax, [rsp]; ret: the return address is part of the result.
        pages.put(CALLEE, &[0x48, 0x8d, 0x44, 0x40, 0x01, 0x48, 0x33, 0x04, 0x24, 0xc3]);
        let arguments = [0, 1, 2, 3, 4, u64::MAX, 1 << 40];
        // rax is what it was where a function does not set it first.
        let before: Vec<u64> = arguments.iter().map(|argument| zeroed(&pages, *argument)).collect();
        match moved(&bytes) {
            Ok(moved) => {
                patch(&pages, &moved);
                let after: Vec<u64> = arguments.iter().map(|argument| zeroed(&pages, *argument)).collect();
                assert_eq!(before, after, "{bytes:x?} {moved:x?}");
                patched += 1;
            }
            Err(refusal) => {
                assert_eq!(refusal, Refusal::ShortCall, "{bytes:x?}");
                refused += 1;
            }
        }
    }
    assert!(patched > 4_000 && refused < 200, "{patched} patched, {refused} refused");
}

/// Calls with rax 0.
fn zeroed(pages: &Pages, argument: u64) -> u64 {
    let result;
    // SAFETY: the function at the begin has this type, keeps what a call has to keep, and rax is told.
    unsafe {
        std::arch::asm!(
            "call {function}",
            function = in(reg) pages.0,
            inout("rax") 0_u64 => result,
            in("rdi") argument,
            in("rsi") 7_u64,
            clobber_abi("C"),
        );
    }
    result
}

/// A table of jumps leads behind the first instruction: in a program for any address, packed or not, and for a fixed one.
#[test]
fn a_table_of_addresses_into_the_first_bytes() {
    const SOURCE: &str = r#"
        .globl table_jump
        .type table_jump, @function
        table_jump: xorl %eax, %eax
        again: addl $1, %eax
        cmpl $4, %eax
        jae 2f
        leaq table(%rip), %rdx
        jmp *(%rdx)
        2: ret
        .size table_jump, . - table_jump
        .globl main
        .type main, @function
        main: call table_jump
        xorl %eax, %eax
        ret
        .size main, . - main
        .section .data.rel.ro, "aw"
        .p2align 3
        table: .quad again, table_jump
        .section .note.GNU-stack, "", @progbits
    "#;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("table.s");
    std::fs::write(&source, SOURCE).unwrap();
    let flag_sets: [&[&str]; 4] =
        [&["-pie"], &["-no-pie"], &["-pie", "-Wl,-z,pack-relative-relocs"], &["-pie", "-s"]];
    for flags in flag_sets {
        let program = folder.path().join("table");
        let built =
            std::process::Command::new("gcc").args(flags).arg("-o").arg(&program).arg(&source).output();
        let Ok(built) = built else { return };
        if !built.status.success() {
            // An older linker knows no packed relocations.
            assert!(flags.len() == 2 && flags[1] != "-s", "{}", String::from_utf8_lossy(&built.stderr));
            continue;
        }
        // The bytes of the function, wherever the linker put it.
        let whole = Code::read(&program, []).unwrap();
        let begin = [0x31, 0xc0, 0x83, 0xc0, 0x01, 0x83, 0xf8, 0x04];
        let start = (0x1000..0x0050_0000)
            .find(|at| whole.from(*at).starts_with(&begin))
            .expect("the function is in the program");
        let code = Code::read(&program, [start]).unwrap();
        let refusal = move_entry(&code, (start, start + 26)).unwrap_err();
        assert!(
            matches!(refusal, Refusal::PointedInto { to, .. } if to == start + 2),
            "{flags:?}: {refusal:?}"
        );
    }
}

/// Functions into which something leads, and some that only look so. Each name ends with the word of its refusal.
const LED_INTO: &str = r#"
    .macro function name
    .globl \name
    .type \name, @function
    .p2align 4
    \name:
    .endm
    .macro over name
    .size \name, . - \name
    .endm

    # Another function takes the address of a label and jumps there.
    function label_pointed_into
    xorl %eax, %eax
    .Llabel: addl $1, %eax
    ret
    over label_pointed_into
    function jumper_ok
    leaq .Llabel(%rip), %rdx
    jmp *%rdx
    over jumper_ok

    # Distances from the table.
    function switch_pointed_into
    xorl %eax, %eax
    .Lagain: addl $1, %eax
    leaq .Ldistances(%rip), %rdx
    movslq (%rdx, %rdi, 4), %rcx
    addq %rdx, %rcx
    jmp *%rcx
    .Lbehind: ret
    over switch_pointed_into

    # Distances from the first label, which is the function itself.
    function goto_loop
    addl $1, %eax
    incl %ecx
    leaq .Lfrom_label(%rip), %rdx
    leaq goto_loop(%rip), %rsi
    movslq (%rdx, %rdi, 4), %rcx
    addq %rsi, %rcx
    jmp *%rcx
    .Llast: ret
    over goto_loop

    # Addresses of labels, of which the first is the function itself.
    function labels_loop
    addl $1, %eax
    leaq .Llabels(%rip), %rdx
    jmp *(%rdx, %rdi, 8)
    .Lend: ret
    over labels_loop

    # A switch as compilers write it: it leads behind its test.
    function switch_ok
    cmpl $1, %edi
    ja .Lcase_two
    leaq .Lcases(%rip), %rdx
    movslq (%rdx, %rdi, 4), %rcx
    addq %rdx, %rcx
    jmp *%rcx
    .Lcase_one: movl $1, %eax
    .Lcase_two: ret
    over switch_ok

    # It hands itself on, and jumps to what it was given.
    function callback_ok
    leaq callback_ok(%rip), %rdi
    leaq .Lnumbers(%rip), %rax
    jmp *%rsi
    over callback_ok
    # A method, beside others in a table.
    function method_ok
    movl $7, %eax
    ret
    over method_ok

    function ud2_trap
    ud2
    movl $7, %eax
    ret
    over ud2_trap
    function int3_trap
    int3
    movl $7, %eax
    ret
    over int3_trap

    # Another way in, behind the first instruction.
    function late_overlapped
    xorl %edi, %edi
    .globl inner
    .type inner, @function
    inner: leal 5(%rdi), %eax
    ret
    over late_overlapped

    function main
    xorl %eax, %eax
    ret
    over main
    .section .rodata
    .p2align 3
    .Ldistances: .long .Lbehind - .Ldistances, .Lagain - .Ldistances
    .long 0x7fffffff
    .Lfrom_label: .long goto_loop - goto_loop, .Llast - goto_loop
    .long 0x7fffffff
    .Lcases: .long .Lcase_one - .Lcases, .Lcase_two - .Lcases
    .long 0x7fffffff
    .Lnumbers: .quad 0
    .section .data.rel.ro, "aw"
    .p2align 3
    .Llabels: .quad labels_loop, .Lend
    .quad 0
    .Ltable: .quad method_ok, callback_ok, switch_ok
    .section .note.GNU-stack, "", @progbits
"#;

#[test]
fn labels_that_code_and_tables_of_distances_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("led.s");
    std::fs::write(&source, LED_INTO).unwrap();
    for flag in ["-pie", "-no-pie"] {
        let program = folder.path().join("led");
        let built = std::process::Command::new("gcc").arg(flag).arg("-o").arg(&program).arg(&source).output();
        let Ok(built) = built else { return };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let module = Module::read(&program).unwrap();
        let mut seen = 0;
        for function in &module.list.functions {
            let words = ["pointed_into", "loop", "trap", "overlapped", "ok"];
            let Some(expected) = words.iter().find(|word| function.name.ends_with(&format!("_{word}")))
            else {
                continue;
            };
            let word = module.entry(function).map_or_else(Refusal::word, |_| "ok");
            assert_eq!(word, *expected, "{flag} {}: {:?}", function.name, module.entry(function));
            seen += 1;
        }
        assert_eq!(seen, 11);
    }
}
