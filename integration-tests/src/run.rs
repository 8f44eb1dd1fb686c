//! Runs a program under the recorder and collects everything that comes out.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::command::heaptally;
use crate::report::Report;
use crate::scratch::Scratch;

/// A program to run.
#[derive(Debug)]
pub struct Run {
    program: Vec<OsString>,
    options: Vec<OsString>,
    wrapper: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clear_environment: bool,
    folder: PathBuf,
    stdin: Option<PathBuf>,
    profile: Option<PathBuf>,
    timeout: Duration,
    recorded: bool,
    frames: bool,
    user: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code, or 128 + the signal's number.
    pub code: i32,
    /// What was printed to the standard output.
    pub stdout: Vec<u8>,
    /// What was printed to the standard error output, the command's own lines included.
    pub stderr: String,
    /// What `heaptally report --json` says of the profile; `None` where no profile was written.
    pub report: Option<Report>,
    /// What `--json-status` wrote; null where it wrote nothing.
    pub status: Value,
    /// The profile.
    pub profile: PathBuf,
    /// How long it took.
    pub elapsed: Duration,
    /// The folder of the profile, which lives as long as this does.
    _output: Scratch,
}

impl Outcome {
    /// The report.
    ///
    /// # Panics
    /// When there is none.
    pub fn report(&self) -> &Report {
        self.report
            .as_ref()
            .unwrap_or_else(|| panic!("no profile; exit code {}, stderr:\n{}", self.code, self.stderr))
    }

    /// What the report's document says of the window `name`, whole; null where it has none.
    ///
    /// # Panics
    /// When there is no profile.
    pub fn window_json(&self, name: &str) -> Value {
        let document: Value = serde_json::from_slice(&report_json(&self.profile)).unwrap_or_default();
        let windows = document["windows"].as_array().into_iter().flatten();
        windows.rev().find(|window| window["name"] == name).cloned().unwrap_or_default()
    }

    /// The command's own lines.
    pub fn messages(&self) -> String {
        let is_own = |line: &&str| line.starts_with("heaptally: ") || line.starts_with("  ");
        self.stderr.lines().filter(is_own).collect::<Vec<_>>().join("\n")
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: Scratch,
    profile: PathBuf,
    started: Instant,
    timeout: Duration,
    recorded: bool,
    frames: bool,
}

impl Run {
    /// `program` with its arguments, in the folder `scratch`.
    pub fn new<T: Into<OsString>>(scratch: &Scratch, program: impl IntoIterator<Item = T>) -> Self {
        Self {
            program: program.into_iter().map(Into::into).collect(),
            options: Vec::new(),
            wrapper: Vec::new(),
            environment: Vec::new(),
            clear_environment: false,
            folder: scratch.folder().to_owned(),
            stdin: None,
            profile: None,
            timeout: Duration::from_secs(120),
            recorded: true,
            frames: true,
            user: None,
        }
    }

    /// Adds options of `heaptally run`.
    pub fn options<T: Into<OsString>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Runs the command itself behind `words`, for instance `sh -c 'ulimit -f 1; exec "$@"' sh`.
    pub fn behind<T: Into<OsString>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.wrapper.extend(words.into_iter().map(Into::into));
        self
    }

    /// Runs the command itself behind a piece of shell that ends with `exec "$@"`.
    pub fn behind_shell(self, script: &str) -> Self {
        self.behind(["sh", "-c", script, "sh"])
    }

    /// Sets a variable for the command and the program.
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts with no environment, as `env -i` does.
    pub fn without_environment(mut self) -> Self {
        self.clear_environment = true;
        self
    }

    /// Reads the standard input from a file; else it is empty.
    pub fn stdin(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdin = Some(path.into());
        self
    }

    /// Writes the profile to `path`, not to a folder of the harness.
    pub fn profile(mut self, path: impl Into<PathBuf>) -> Self {
        self.profile = Some(path.into());
        self
    }

    /// Takes the run as hung after `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Leaves the frames out of the report: for very many stacks.
    pub fn without_frames(mut self) -> Self {
        self.frames = false;
        self
    }

    /// Runs the program by itself, without the recorder, for comparison.
    pub fn unrecorded(mut self) -> Self {
        self.recorded = false;
        self
    }

    /// Runs all of it as another user, who is given the folder. For root.
    pub fn by_user(mut self, name: &str) -> Self {
        self.user = Some(name.to_owned());
        self
    }

    /// Whether the recorder takes part.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started, or hangs.
    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(self) -> Running {
        let output = Scratch::new();
        let profile = self.profile.unwrap_or_else(|| output.path("profile.pb.gz"));
        let mut words = self.wrapper;
        if let Some(user) = &self.user {
            let options = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"];
            words.extend(options.map(OsString::from));
            for folder in [output.folder(), &self.folder] {
                let status =
                    Command::new("chown").arg("-R").arg(format!("{user}:{user}")).arg(folder).status();
                assert!(status.is_ok_and(|status| status.success()), "chown {user} {}", folder.display());
            }
        }
        if self.recorded {
            words.extend([heaptally().into(), "run".into(), "-o".into(), profile.clone().into()]);
            words.extend(["--json-status".into(), output.path("status.json").into()]);
            words.extend(self.options);
            words.push("--".into());
        }
        words.extend(self.program);
        let create =
            |name: &str| File::create(output.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut command = Command::new(&words[0]);
        if self.clear_environment {
            command.env_clear();
        }
        command
            .args(&words[1..])
            .current_dir(&self.folder)
            .env_remove("LD_PRELOAD")
            .env_remove("HEAPTALLY_SEGMENT")
            .envs(self.environment)
            .stdin(self.stdin.map_or_else(Stdio::null, |path| {
                File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
            }))
            // NOTE: files, not pipes: a grandchild may hold a pipe open for longer than the run.
            .stdout(create("stdout"))
            .stderr(create("stderr"))
            .process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{:?} does not start: {error}", words[0]));
        let (timeout, recorded, frames) = (self.timeout, self.recorded, self.frames);
        Running { child, output, profile, started: Instant::now(), timeout, recorded, frames }
    }
}

impl Running {
    /// Waits for its end.
    ///
    /// # Panics
    /// When it hangs.
    pub fn wait(mut self) -> Outcome {
        let status = self.wait_status();
        let elapsed = self.started.elapsed();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let report = (self.recorded && self.profile.exists()).then(|| report(&self.profile, self.frames));
        let read = |name: &str| fs::read(self.output.path(name)).unwrap_or_default();
        Outcome {
            code,
            stdout: read("stdout"),
            stderr: String::from_utf8_lossy(&read("stderr")).into_owned(),
            report,
            status: serde_json::from_slice(&read("status.json")).unwrap_or(Value::Null),
            profile: self.profile,
            elapsed,
            _output: self.output,
        }
    }

    /// The process id of the command.
    pub fn command_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the command a signal.
    ///
    /// # Panics
    /// When that fails.
    pub fn signal(&self, signal: Signal) {
        let command = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let command = command.unwrap_or_else(|| panic!("no process id: {}", self.child.id()));
        kill_process(command, signal).unwrap_or_else(|error| panic!("{signal:?}: {error}"));
    }

    /// The process id of the program, once it was started.
    pub fn program_id(&self) -> Option<Pid> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
    }

    fn wait_status(&mut self) -> ExitStatus {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) => {}
                Err(error) => panic!("wait: {error}"),
            }
            if self.started.elapsed() > self.timeout {
                let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
                if let Some(group) = group {
                    // It may have ended this moment.
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = self.child.wait();
                let stderr = fs::read_to_string(self.output.path("stderr")).unwrap_or_default();
                panic!("hangs: no end after {:?}; stderr:\n{stderr}", self.timeout);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

/// What `heaptally report --json` says of a profile.
///
/// # Panics
/// When the command fails, or prints something else than such a document.
fn report(profile: &Path, frames: bool) -> Report {
    let document = report_json(profile);
    let parsed = if frames { Report::parse(&document) } else { Report::parse_without_frames(&document) };
    parsed.unwrap_or_else(|error| panic!("heaptally report {}: {error}", profile.display()))
}

/// The document that `heaptally report --json` prints of a profile.
///
/// # Panics
/// When the command fails.
pub fn report_json(profile: &Path) -> Vec<u8> {
    let arguments =
        ["report".as_ref(), profile.as_os_str(), "--json".as_ref(), "--limit".as_ref(), "0".as_ref()];
    let (code, document, stderr) = heaptally_output(arguments);
    assert_eq!(code, 0, "heaptally report {}: {stderr}", profile.display());
    document
}

/// Runs the command with `arguments`: its exit code, output and error output.
///
/// # Panics
/// When it does not start.
pub fn heaptally_output<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> (i32, Vec<u8>, String) {
    let output = Command::new(heaptally())
        .args(arguments)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", heaptally().display()));
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    (code, output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}
