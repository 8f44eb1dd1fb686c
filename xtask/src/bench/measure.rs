//! One run of a command: its times, its memory, and what the program in it says of itself.

#![expect(unsafe_code, reason = "std's wait gives no resource usage")]

use super::watch;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Read;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// What is run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invocation {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, OsString)>,
    /// The program whose end is waited for inside of the command, if it is a process of its own.
    pub(crate) followed: Option<PathBuf>,
}

/// What a run took.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// From the start of the command to its end, with everything that a tool does after the program.
    pub(crate) wall_ns: u64,
    /// From the start of the command to the program's end; absent where it was not seen.
    pub(crate) program_ns: Option<u64>,
    /// What it took afterwards to show the result.
    pub(crate) report_ns: Option<u64>,
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
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) stacks: Option<u64>,
    pub(crate) peak_rss_bytes: Option<u64>,
}

impl Run {
    /// What is compared: the program's own time, else up to its end, else all.
    pub(crate) fn program_time_ns(&self) -> u64 {
        self.own.map(|own| own.wall_ns).or(self.program_ns).unwrap_or(self.wall_ns)
    }

    pub(crate) fn to_json(&self) -> Value {
        let own = self.own.map(|own| {
            json!({
                "wall_ns": own.wall_ns,
                "cpu_ns": own.cpu_ns,
                "stacks": own.stacks,
                "peak_rss_bytes": own.peak_rss_bytes,
            })
        });
        json!({
            "wall_ns": self.wall_ns,
            "program_ns": self.program_ns,
            "report_ns": self.report_ns,
            "cpu_ns": self.cpu_ns,
            "peak_rss_bytes": self.peak_rss_bytes,
            "own": own,
            "written_bytes": self.written_bytes,
        })
    }
}

/// Runs `words` to its end, which must be a success.
pub(crate) fn run(words: &[String]) -> Result<Run, String> {
    run_in(&Invocation { words: words.to_vec(), ..Invocation::default() })
}

/// Runs it to its end, which must be a success.
pub(crate) fn run_in(invocation: &Invocation) -> Result<Run, String> {
    let (program, arguments) = invocation.words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    let pid = child.id();
    let watcher = invocation.followed.clone().map(|program| thread::spawn(move || watch::end(pid, &program)));
    let errors = child.stderr.take();
    let errors = thread::spawn(move || read(errors));
    let output = read(child.stdout.take());
    let (status, usage) = wait(pid)?;
    let wall_ns = nanoseconds_since(start, Instant::now());
    // NOTE: a thread of ours does not panic; if one did, there would be nothing to show.
    let errors = errors.join().unwrap_or_default();
    let program_end = match watcher {
        Some(watcher) => watcher.join().ok().flatten(),
        None => None,
    };
    if status != 0 {
        return Err(format!("{:?} failed (wait status {status:#x})\n{output}{errors}", invocation.words));
    }
    Ok(Run {
        wall_ns,
        program_ns: program_end.map(|end| nanoseconds_since(start, end).min(wall_ns)),
        report_ns: None,
        cpu_ns: nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        own: output.lines().find_map(own),
        written_bytes: 0,
    })
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was read up to an error is what there is to show.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn nanoseconds_since(start: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
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

/// The line of JSON in which a program of ours says what it measured.
fn own(line: &str) -> Option<Own> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value.get(name)?.as_u64();
    Some(Own {
        wall_ns: number("wall_ns")?,
        cpu_ns: number("cpu_ns"),
        stacks: number("stacks"),
        peak_rss_bytes: number("peak_rss_bytes"),
    })
}
