//! When a program that a tool has started ends, seen from outside of the tool.

#![expect(unsafe_code, reason = "std has no handle of a process that is not its child")]

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked for the program until it is there.
const INTERVAL: Duration = Duration::from_micros(500);

/// When the process below `tool` that executes `program` ended. None if the tool ended before it was seen.
pub(crate) fn end(tool: u32, program: &Path) -> Option<Instant> {
    let program = program.canonicalize().ok()?;
    let handle = loop {
        // NOTE: a zombie, which waits for this program's wait, has no executable.
        executable(tool)?;
        if let Some(pid) = below(tool).into_iter().find(|pid| executable(*pid).as_ref() == Some(&program)) {
            break open(pid)?;
        }
        thread::sleep(INTERVAL);
    };
    let mut wanted = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is writable and ours.
    let ready = unsafe { libc::poll(&raw mut wanted, 1, -1) };
    (ready == 1).then(Instant::now)
}

fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// All processes below `pid`, without itself.
fn below(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<u32> = children
            .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
            .collect();
        found.extend(&children);
        open.extend(children);
    }
    found
}

fn open(pid: u32) -> Option<OwnedFd> {
    // SAFETY: the call takes two numbers and changes no memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the kernel has just made the descriptor for us.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
