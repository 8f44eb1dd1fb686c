//! The raw system call instruction, and the numbers that the recorder uses.
//!
//! Raw, not libc's functions: those set `errno`, may be interposed, and some can be cancelled.
#![expect(unsafe_code, reason = "the system call instruction")]

use core::arch::asm;

pub(crate) const READ: usize = 0;
pub(crate) const OPEN: usize = 2;
pub(crate) const CLOSE: usize = 3;
pub(crate) const POLL: usize = 7;
pub(crate) const MMAP: usize = 9;
pub(crate) const MPROTECT: usize = 10;
pub(crate) const MUNMAP: usize = 11;
pub(crate) const GETEUID: usize = 107;
pub(crate) const MREMAP: usize = 25;
pub(crate) const MADVISE: usize = 28;
pub(crate) const RT_SIGPROCMASK: usize = 14;
pub(crate) const IOCTL: usize = 16;
pub(crate) const FUTEX: usize = 202;
pub(crate) const GETPID: usize = 39;
pub(crate) const READLINK: usize = 89;
pub(crate) const PRCTL: usize = 157;
pub(crate) const GETTID: usize = 186;
pub(crate) const TGKILL: usize = 234;
pub(crate) const PRLIMIT64: usize = 302;
pub(crate) const PREAD64: usize = 17;
pub(crate) const OPENAT: usize = 257;
pub(crate) const TEE: usize = 276;
pub(crate) const PIPE2: usize = 293;
pub(crate) const PROCESS_VM_READV: usize = 310;
pub(crate) const PROCESS_VM_WRITEV: usize = 311;

/// Makes a system call. The result is the kernel's: a value, or minus an error number.
///
/// # Safety
/// The caller owes what that system call asks of its arguments.
#[inline]
pub(crate) unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel keeps all registers but rax, rcx and r11; memory may change, as the block says by default.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
