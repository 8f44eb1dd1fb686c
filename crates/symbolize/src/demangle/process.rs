//! A demangler in a process of its own.
//!
//! Swift's ends the process at some names that no compiler makes, and takes time and memory without end at others; that
//! of C++ does where names nest deeply. Names come from any file, so a child process is forked for them, once for many:
//!
//! ```text
//! parent                            child
//! names ── fork ──────────────────▶ demangles one after the other
//! reads ◀── pipe: length, name … ── (dies: the name it was at stays mangled, a new child goes on behind it)
//! ```
//!
//! A length is 4 bytes, little-endian; 0: the name is not valid.
#![expect(unsafe_code, reason = "a process is forked")]

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// So much processor time a child may take, in seconds: tens of thousands of names take a part of one.
const MAX_SECONDS: libc::rlim_t = 2;
/// And so much time in all, on a machine that is busy with other things, too.
const MAX_WAIT_SECONDS: libc::c_uint = 20;
/// So much memory the child may take beyond what it has from its parent, in bytes.
const MAX_GROWTH_BYTES: libc::rlim_t = 512 << 20;
/// The stack for names that nest deeply; only what is used becomes resident.
const STACK_BYTES: usize = 256 << 20;
/// So many children may die in one call.
const MAX_DEATHS: u32 = 16;

/// One child at a time: another would keep the first one's pipe open.
static ONE_CHILD: Mutex<()> = Mutex::new(());

/// A demangler of one name without clone suffix; `None`: it is not valid.
pub(super) type Demangler = fn(&str) -> Option<String>;

/// Demangles names; `None` for those that are not valid or that the demangler cannot take.
pub(super) fn demangle(bases: &[&str], demangler: Demangler) -> Vec<Option<String>> {
    if bases.is_empty() {
        return Vec::new();
    }
    // A forked child goes on with the stack of the thread that forked it, so this one's is large. A thread that the child
    // makes for itself could wait for a lock of its parent's.
    thread::scope(|scope| {
        let forking = thread::Builder::new()
            .name("demangle".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || by_children(bases, demangler));
        match forking {
            Ok(thread) => thread.join().unwrap_or_else(|_| vec![None; bases.len()]),
            // A limited address space: names that nest deeply cost a child.
            Err(_) => by_children(bases, demangler),
        }
    })
}

/// Demangles names by one child after the other.
fn by_children(bases: &[&str], demangler: Demangler) -> Vec<Option<String>> {
    let _one = ONE_CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut names = Vec::with_capacity(bases.len());
    let mut deaths = 0;
    while names.len() < bases.len() && deaths < MAX_DEATHS {
        if by_child(&bases[names.len()..], demangler, &mut names).is_none() {
            break;
        }
        if names.len() < bases.len() {
            names.push(None);
            deaths += 1;
        }
    }
    names.resize(bases.len(), None);
    names
}

/// Adds what one child tells. `None`: there is none to be had.
fn by_child(bases: &[&str], demangler: Demangler, names: &mut Vec<Option<String>>) -> Option<()> {
    let (mut reader, writer) = io::pipe().ok()?;
    // Opened beforehand: a child of a process with threads should do as little as it can.
    let silence = File::options().write(true).open("/dev/null").ok()?;
    // SAFETY: the child goes on with this thread alone. It calls only what C's library has put in order for a forked
    // child: the allocator, whose locks fork takes, and system calls. It waits for no lock of another thread, and ends by
    // `_exit` without running anything of its parent's.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return None;
    }
    if pid == 0 {
        be_the_child(bases, demangler, writer, &silence);
    }
    drop(writer);
    while let Some(name) = read_name(&mut reader) {
        names.push(name);
    }
    // The pipe is at its end, so the child is, too.
    // How it ended does not matter: what it told tells how far it came.
    // SAFETY: no status is asked for, and the process is a child of ours that nobody else waits for.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    Some(())
}

/// Demangles, writes, and ends.
fn be_the_child(bases: &[&str], demangler: Demangler, mut writer: PipeWriter, silence: &File) -> ! {
    restrict(silence);
    for base in bases {
        // What unwound any further would run what the parent's code has to do after this.
        let name = panic::catch_unwind(|| demangler(base)).ok().flatten().unwrap_or_default();
        let length = u32::try_from(name.len()).unwrap_or(0);
        let mut message = Vec::with_capacity(4 + name.len());
        message.extend_from_slice(&length.to_le_bytes());
        message.extend_from_slice(name.as_bytes());
        if writer.write_all(&message).is_err() {
            break;
        }
    }
    // SAFETY: it ends the process, which owes nobody anything.
    unsafe { libc::_exit(0) }
}

/// No message, no core dump, no more time and memory than a name may take.
fn restrict(silence: &File) {
    let limit = |resource, amount| {
        let limit = libc::rlimit { rlim_cur: amount, rlim_max: amount };
        // SAFETY: it reads one `rlimit`, which is there. A refusal leaves the old limit.
        unsafe { libc::setrlimit(resource, &raw const limit) };
    };
    limit(libc::RLIMIT_CORE, 0);
    limit(libc::RLIMIT_CPU, MAX_SECONDS);
    // A lock that another thread of the parent's had when it forked is never given back: a child that waits for it ends.
    // SAFETY: the set is made before it is used; the default action ends the process, also where the parent blocks it.
    unsafe {
        let mut alarm: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut alarm);
        libc::sigaddset(&raw mut alarm, libc::SIGALRM);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alarm, std::ptr::null_mut());
        libc::alarm(MAX_WAIT_SECONDS);
    }
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes one `rlimit`, which is there.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut old) } == 0;
    if let Some(size) = address_space_bytes().filter(|_| is_known) {
        limit(libc::RLIMIT_AS, size.saturating_add(MAX_GROWTH_BYTES).min(old.rlim_cur));
    }
    // SAFETY: both are descriptors; whether 2 was open does not matter.
    unsafe { libc::dup2(silence.as_raw_fd(), libc::STDERR_FILENO) };
}

/// How much address space this process has, in bytes.
fn address_space_bytes() -> Option<libc::rlim_t> {
    const PAGE_BYTES: libc::rlim_t = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: libc::rlim_t = pages.split_whitespace().next()?.parse().ok()?;
    Some(pages.saturating_mul(PAGE_BYTES))
}

/// The next name that the child tells; `None` at the end or where it died.
fn read_name(reader: &mut impl Read) -> Option<Option<String>> {
    let mut length = [0; 4];
    reader.read_exact(&mut length).ok()?;
    let length = u32::from_le_bytes(length);
    if length == 0 {
        return Some(None);
    }
    let mut name = Vec::new();
    reader.take(length.into()).read_to_end(&mut name).ok()?;
    let is_whole = name.len() == usize::try_from(length).ok()?;
    is_whole.then(|| String::from_utf8(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_the_demangler_cost_only_themselves() {
        let demangler: Demangler = |name| match name {
            "abort" => std::process::abort(),
            "loop" => loop {
                std::hint::spin_loop();
            },
            "invalid" => None,
            name => Some(name.to_uppercase()),
        };
        let name = |text: &str| Some(text.to_owned());
        let names = demangle(&["a", "abort", "invalid", "loop", "b"], demangler);
        assert_eq!(names, [name("A"), None, None, None, name("B")]);
        assert!(demangle(&[], demangler).is_empty());
    }

    #[cfg(feature = "swift")]
    #[test]
    fn names_of_swift_that_end_the_demangler() {
        // The stack overflows; an assertion fails.
        let deep = format!("$s4main1fyy{}Si{}F", "Sa".repeat(100_000), "G".repeat(100_000));
        let names =
            ["$s4main1fyyF", "$s13S12_first_use6HolderCyACyxGfC", deep.as_str(), "$sx-", "$s4main1gyyF"];
        let name = |text: &str| Some(text.to_owned());
        let expected = [name("main.f() -> ()"), None, None, None, name("main.g() -> ()")];
        assert_eq!(demangle(&names, super::super::swift::demangle), expected);
    }
}
