//! Asks the kernel whether memory can be read. The only system call of this crate.

#![expect(unsafe_code, reason = "a raw system call")]

use core::arch::asm;

const SYS_RT_SIGPROCMASK: u64 = 14;
const NO_SUCH_HOW: u64 = u64::MAX;
const EFAULT: i64 = -14;

/// Whether the 8 bytes at `address` can be read.
///
/// `rt_sigprocmask` reads its second argument before it looks at its first, and an unknown first one makes it fail
/// without a change: EFAULT if the memory is not there, EINVAL if it is. Programs may be forbidden other calls by
/// seccomp; this one all of them make.
pub fn is_readable(address: u64) -> bool {
    let result: i64;
    // SAFETY: the call fails in any case and changes nothing; rcx and r11 are what the instruction overwrites.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_RT_SIGPROCMASK => result,
            in("rdi") NO_SUCH_HOW,
            in("rsi") address,
            in("rdx") 0,
            in("r10") 8,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, readonly),
        );
    }
    result != EFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_mapped_from_unmapped() {
        let word = 5u64;
        assert!(is_readable(&raw const word as u64));
        assert!(is_readable(is_readable as *const () as u64));
        assert!(!is_readable(8));
        assert!(!is_readable(1 << 63));
    }
}
