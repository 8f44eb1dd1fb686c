//! What the recorder needs of the kernel, tried out rather than concluded from the version.
#![expect(unsafe_code, reason = "maps memory and forks, to see what comes of it")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{c_int, c_void};
use rustix::fs::MemfdFlags;

use super::finding::{Finding, Level};

const PAGE: usize = 4096;
const MADV_WIPEONFORK: c_int = 18;
const MADV_POPULATE_WRITE: c_int = 23;

/// The forked child saw zero where its parent had written something else.
const CHILD_WIPED: c_int = 1;
/// The forked child opened its parent's file in memory.
const CHILD_OPENED: c_int = 2;

/// Looks at the kernel.
pub(crate) fn examine() -> Vec<Finding> {
    let mut findings = vec![version()];
    let file = match file_in_memory() {
        Ok(file) => file,
        Err(error) => {
            findings.push(Finding::problem(
                "memfd",
                format!("no file in memory can be made (memfd_create): {error}"),
                "use Linux 4.14 or later, and a sandbox that allows memfd_create",
            ));
            return findings;
        }
    };
    findings.push(Finding::ok("memfd", "files in memory can be made (memfd_create)"));
    findings.push(populate(&file));
    findings.extend(fork(&file));
    findings.push(ptrace());
    findings
}

/// What this kernel or sandbox refuses without which nothing is recorded, and what to do; `None`: it is not at fault.
pub(crate) fn obstacle() -> Option<String> {
    let finding = populate(&file_in_memory().ok()?);
    (finding.level == Level::Problem).then(|| finding.in_a_line())
}

fn version() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match release.trim() {
        "" => Finding::warning(
            "kernel",
            "its version cannot be read from /proc",
            "mount /proc: heaptally and its recorder read it",
        ),
        release => Finding::ok("kernel", format!("Linux {}", heaptally_report::escape::escape(release))),
    }
}

fn file_in_memory() -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("heaptally-doctor", MemfdFlags::CLOEXEC)?);
    file.set_len(PAGE as u64)?;
    Ok(file)
}

/// A page of this process's own, unmapped when dropped.
struct Page(*mut c_void);

impl Page {
    /// Maps a page: of a file, or a private one.
    fn map(file: Option<&File>) -> io::Result<Self> {
        let flags = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
        let descriptor = file.map_or(-1, File::as_raw_fd);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping wherever the kernel likes touches nothing that exists.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, protection, flags, descriptor, 0) };
        if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(page)) }
    }

    fn advise(&self, advice: c_int) -> io::Result<()> {
        // SAFETY: the page is ours, and neither advice used here changes what it holds in this process.
        let result = unsafe { libc::madvise(self.0, PAGE, advice) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn store(&self, value: u8) {
        // SAFETY: the page is mapped, writable and ours alone.
        unsafe { ptr::write_volatile(self.0.cast::<u8>(), value) };
    }

    fn load(&self) -> u8 {
        // SAFETY: the page is mapped and ours alone.
        unsafe { ptr::read_volatile(self.0.cast::<u8>()) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the page any more.
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

/// Whether the segment's pages can be made resident by a call that can fail, where a store would kill.
fn populate(file: &File) -> Finding {
    const CHECK: &str = "populate_write";
    let result = Page::map(Some(file)).and_then(|page| {
        page.advise(MADV_POPULATE_WRITE).map(|()| true).or_else(|error| match error.raw_os_error() {
            Some(libc::EINVAL | libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                copy_onto_itself(&page).map(|()| false)
            }
            _ => Err(error),
        })
    });
    match result {
        Ok(true) => {
            Finding::ok(CHECK, "pages of the segment can be made ready ahead of need (MADV_POPULATE_WRITE)")
        }
        Ok(false) => Finding::note(
            CHECK,
            "MADV_POPULATE_WRITE is missing (it came with Linux 5.14) or refused, and process_vm_writev stands in for it: slower",
        ),
        Err(error) => Finding::problem(
            CHECK,
            format!("neither MADV_POPULATE_WRITE nor process_vm_writev works: {error}"),
            "use Linux 5.14 or later, or a sandbox that allows process_vm_readv and process_vm_writev",
        ),
    }
}

/// What the recorder does where `MADV_POPULATE_WRITE` is missing.
fn copy_onto_itself(page: &Page) -> io::Result<()> {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: page.0, iov_len: 1 };
    // SAFETY: has no preconditions.
    let own = unsafe { libc::getpid() };
    // SAFETY: reads a byte of our own page into a local.
    if unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) } != 1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: writes that byte back where it was.
    if unsafe { libc::process_vm_writev(own, &raw const local, 1, &raw const remote, 1, 0) } != 1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What a child of ours can see: nothing of a page that is to be wiped, and the segment by its path.
fn fork(file: &File) -> Vec<Finding> {
    const ADVICE: &str = "forked children are found out another way; a child of a raw clone() may be counted with its \
                          parent: use Linux 4.14 or later";
    let wiped = Page::map(None).and_then(|page| {
        page.store(1);
        page.advise(MADV_WIPEONFORK).map(|()| page)
    });
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let seen =
        CString::new(path).map_err(io::Error::from).and_then(|path| child_sees(wiped.as_ref().ok(), &path));
    let is_seen = |bit: c_int| seen.as_ref().is_ok_and(|seen| seen & bit != 0);
    let wipe = match (&wiped, &seen) {
        (Ok(_), Ok(_)) if is_seen(CHILD_WIPED) => {
            Finding::ok("wipe_on_fork", "a page can be kept from forked children (MADV_WIPEONFORK)")
        }
        (Err(error), _) => {
            Finding::warning("wipe_on_fork", format!("MADV_WIPEONFORK does not work: {error}"), ADVICE)
        }
        (_, Err(error)) => {
            Finding::warning("wipe_on_fork", format!("no child could be forked: {error}"), ADVICE)
        }
        _ => Finding::warning("wipe_on_fork", "MADV_WIPEONFORK was taken and had no effect", ADVICE),
    };
    let opened = if is_seen(CHILD_OPENED) {
        Finding::ok("segment_path", "another process of ours opens a file in memory by its path in /proc")
    } else {
        Finding::warning(
            "segment_path",
            "another process of ours cannot open a file in memory by its path in /proc",
            "record with `heaptally run --segment-dir DIR`, DIR a folder that the program can write to",
        )
    };
    vec![wipe, opened]
}

/// Forks a child that looks, and says by its exit code what it saw.
fn child_sees(page: Option<&Page>, path: &CString) -> io::Result<c_int> {
    // SAFETY: the child calls only open and _exit, which may be called after a fork, and allocates nothing.
    let child = unsafe { libc::fork() };
    if child == -1 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let mut seen = 0;
        if page.is_some_and(|page| page.load() == 0) {
            seen |= CHILD_WIPED;
        }
        // SAFETY: the path is a C string.
        if unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) } >= 0 {
            seen |= CHILD_OPENED;
        }
        // SAFETY: ends the child at once, without what a normal exit runs.
        unsafe { libc::_exit(seen) };
    }
    let mut status = 0;
    loop {
        // SAFETY: writes to a place of the right type; the child is ours and not reaped yet.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(io::Error::other("a signal ended it"))
    }
}

fn ptrace() -> Finding {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let scope = scope.trim();
    let is_number = !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_digit());
    let scope = if is_number {
        format!(" (yama's ptrace_scope is {scope}, which does not matter)")
    } else {
        String::new()
    };
    Finding::ok("ptrace", format!("not needed, nor are other privileges{scope}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_for_populate_write_works() {
        let file = file_in_memory().unwrap();
        let page = Page::map(Some(&file)).unwrap();
        page.store(7);
        copy_onto_itself(&page).unwrap();
        assert_eq!(page.load(), 7);
    }

    #[test]
    fn a_child_tells_what_it_sees() {
        let file = file_in_memory().unwrap();
        let own = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let (own, nowhere) = (CString::new(own).unwrap(), CString::new("/nowhere/at/all").unwrap());
        let page = Page::map(None).unwrap();
        page.store(1);
        assert_eq!(child_sees(Some(&page), &nowhere).unwrap(), 0, "nothing was wiped, nothing is there");
        assert_eq!(child_sees(None, &own).unwrap(), CHILD_OPENED);
        page.advise(MADV_WIPEONFORK).unwrap();
        assert_eq!(child_sees(Some(&page), &nowhere).unwrap(), CHILD_WIPED);
        assert_eq!(page.load(), 1);
    }
}
