//! One run of a command: its times, its memory, and what the program in it says of itself.

#![expect(unsafe_code, reason = "std's wait gives no resource usage")]

use serde_json::{Value, json};
use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a run took.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// From the start of the command to its end, with everything that a tool does after the program.
    pub(crate) wall_ns: u64,
    /// CPU time of the command and of all its processes.
    pub(crate) cpu_ns: u64,
    /// Of the largest process.
    pub(crate) peak_rss_bytes: u64,
    /// What the program measured around its own loop, if it does.
    pub(crate) own: Option<Own>,
    /// Size of what the tool wrote.
    pub(crate) written_bytes: u64,
}

/// A program's own measurement, without its start and end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) pairs: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) wall_ns: u64,
}

impl Run {
    pub(crate) fn to_json(&self) -> Value {
        let own =
            self.own.map(|own| json!({"pairs": own.pairs, "cpu_ns": own.cpu_ns, "wall_ns": own.wall_ns}));
        json!({
            "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns,
            "peak_rss_bytes": self.peak_rss_bytes,
            "own": own,
            "written_bytes": self.written_bytes,
        })
    }
}

/// Runs `words` to its end, which must be a success.
pub(crate) fn run(words: &[String]) -> Result<Run, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    // NOTE: one after the other is enough: none of the programs fills a pipe with errors.
    let (mut output, mut errors) = (String::new(), String::new());
    if let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
        let read = stdout.read_to_string(&mut output).and_then(|_| stderr.read_to_string(&mut errors));
        read.map_err(|error| format!("cannot read what {program} says: {error}"))?;
    }
    let (status, usage) = wait(child.id())?;
    let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    if status != 0 {
        return Err(format!("{words:?} failed (wait status {status:#x})\n{output}{errors}"));
    }
    Ok(Run {
        wall_ns,
        cpu_ns: nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        own: output.lines().find_map(own),
        written_bytes: 0,
    })
}

/// Waits for the process and the processes that it waited for.
fn wait(pid: u32) -> Result<(i32, libc::rusage), String> {
    let pid = libc::pid_t::try_from(pid).map_err(|error| error.to_string())?;
    let (mut status, mut usage) = (0, MaybeUninit::uninit());
    // SAFETY: both places are writable and of the types that wait4 fills in.
    let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(format!("cannot wait: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: wait4 succeeded and has filled it in.
    Ok((status, unsafe { usage.assume_init() }))
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let micros = time.tv_sec * 1_000_000 + time.tv_usec;
    u64::try_from(micros).unwrap_or(0) * 1_000
}

/// The line of JSON in which `pairs` says what it measured.
fn own(line: &str) -> Option<Own> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value.get(name)?.as_u64();
    Some(Own { pairs: number("pairs")?, cpu_ns: number("cpu_ns")?, wall_ns: number("wall_ns")? })
}
