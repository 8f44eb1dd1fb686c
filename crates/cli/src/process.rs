//! Starting the program and waiting for its end.
//!
//! The program starts with the signal mask, the ignored signals and the closed standard descriptors that this command
//! inherited, though the command itself changes all three: Rust's runtime ignores SIGPIPE and opens `/dev/null` for
//! closed descriptors before `main`, and the command has to survive what ends the program. So they are noted before the
//! runtime starts, and put back between fork and exec.
#![expect(unsafe_code, reason = "signals, and what is done between fork and exec")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use libc::{c_char, c_int, c_void, siginfo_t, sigset_t};
use rustix::process::{Resource, getrlimit};

/// Signals that are meant to end all this: they end the program and not this command.
const ENDING: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// All signals that go on to the program: whatever it does with them, this command would be ended by them.
const FORWARDED: [c_int; 13] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];
/// Further signals whose handling is not as it was inherited.
const CHANGED: [c_int; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

/// Bit n: signal n was ignored when this command started.
static IGNORED: AtomicU32 = AtomicU32::new(0);
/// Bit n: descriptor n was closed when this command started.
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// This command's process id, once its handlers are set.
static OWN: AtomicI32 = AtomicI32::new(0);
/// The latest signal that was meant to end all this, else 0.
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);
/// The program's process id while it runs, else 0.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// How the program ended: one of the two is `Some`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl End {
    /// The exit code, or 128 + the signal's number.
    pub(crate) fn code(self) -> u8 {
        let code = self.exit_code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(255);
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    /// The same, where a signal may have ended the runs: what was asked for is not all there then, whatever the program
    /// made of the signal.
    pub(crate) fn code_of_runs(self, interrupted: Option<i32>) -> u8 {
        match (self.code(), interrupted) {
            (0, Some(signal)) => Self { exit_code: None, signal: Some(signal) }.code(),
            (code, _) => code,
        }
    }
}

/// Runs before Rust's runtime, which changes what is noted here.
extern "C" fn note_inherited() {
    for signal in FORWARDED.into_iter().chain(CHANGED) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only reads the action, into a place of the right type.
        let is_known = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
        // SAFETY: zeroed or written; both are valid.
        if is_known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN {
            IGNORED.fetch_or(1 << signal, Ordering::Relaxed);
        }
    }
    for descriptor in 0..3 {
        // SAFETY: has no effect on the descriptor.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_inherited;

/// Handles SIGPIPE as it was inherited: for commands whose output is their purpose.
pub(crate) fn restore_broken_pipe() {
    restore(libc::SIGPIPE);
}

/// Whether the standard output was closed when this command started; what is written there is lost without an error.
pub(crate) fn is_output_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << libc::STDOUT_FILENO) != 0
}

/// From here on a file that may not grow is an error of the write, not the end of this command.
pub(crate) fn survive_file_limit() {
    set_action(libc::SIGXFSZ, libc::SIG_IGN, 0);
}

/// Makes do with a limited address space (`ulimit -v`): each thread's part of the C library's allocator reserves 64 MiB
/// of it, so all threads share one. Returns whether there is a limit.
pub(crate) fn make_do_with_limited_address_space() -> bool {
    let is_limited = getrlimit(Resource::As).current.is_some();
    if is_limited {
        // SAFETY: has no preconditions. A value that is refused changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
        let handler: extern "C" fn(c_int) = out_of_memory;
        set_action(libc::SIGABRT, handler as libc::sighandler_t, 0);
    }
    is_limited
}

/// Where memory is refused, Rust aborts; nothing else here does.
extern "C" fn out_of_memory(_signal: c_int) {
    const MESSAGE: &str = "heaptally: no memory to read what was recorded\n  raise the limit of the address space (ulimit -v)\n";
    // SAFETY: the message is as long as that; both functions may be called in a handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(c_int::from(crate::exit::RECORDER));
    }
}

/// The signal that this command survived, if one came: no further program is to be started. One that was ignored when
/// the command started does not count.
pub(crate) fn interrupted() -> Option<i32> {
    Some(INTERRUPTED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// The environment of this command, each entry as it stands there.
pub(crate) fn own_environment() -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    // SAFETY: this command has one thread that changes its environment: none.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            entries.push(CStr::from_ptr(*at).to_bytes().to_vec());
            at = at.add(1);
        }
    }
    entries
}

/// An array of C strings, with the strings.
struct Environment {
    pointers: Vec<*const c_char>,
    _entries: Vec<CString>,
}

// SAFETY: the pointers are to the entries, which nobody changes.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Environment {
    fn new(entries: Vec<CString>) -> Self {
        let pointers = entries.iter().map(|entry| entry.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _entries: entries }
    }

    /// Makes it the process's own, between fork and exec.
    fn install(&self) {
        // SAFETY: the process has one thread, and the array stays until it becomes the program.
        unsafe { environ = self.pointers.as_ptr() };
    }
}

/// Starts a thread of this command that gets no signals: they are for the one that waits for the program.
pub(crate) fn spawn_without_signals<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    const STACK_BYTES: usize = 8 << 20;
    let inherited = block(&FORWARDED);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    set_mask(&inherited);
    thread
}

/// Starts the program and waits for its end.
///
/// Signals that another process sends to this command go to the program; a terminal's reached it already.
///
/// `environment` is the program's, in its order. Not by [`Command::env`], which would sort it.
pub(crate) fn run(command: &mut Command, environment: Vec<CString>) -> io::Result<End> {
    let environment = Environment::new(environment);
    // SAFETY: has no preconditions.
    OWN.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    // Ignored, it would have the kernel forget how the program ended.
    set_action(libc::SIGCHLD, libc::SIG_DFL, 0);
    // Blocked until the program's number is known, so that none is lost.
    let inherited = block(&FORWARDED);
    for signal in FORWARDED {
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = forward;
        set_action(signal, handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_RESTART);
    }
    // SAFETY: the closure calls only functions that are safe between fork and exec, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            restore_all(&inherited);
            environment.install();
            Ok(())
        });
    }
    let started = command.spawn();
    if let Ok(child) = &started {
        CHILD.store(child.id().cast_signed(), Ordering::Relaxed);
    }
    set_mask(&inherited);
    let mut child = started?;

    await_end(child.id());
    // Not reaped yet, so the number was not used again.
    CHILD.store(0, Ordering::Relaxed);
    let status = child.wait()?;
    Ok(End { exit_code: status.code(), signal: status.signal() })
}

/// Waits until the program has ended, and leaves it to be reaped.
fn await_end(child: u32) {
    loop {
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: writes to a place of the right type.
        let result =
            unsafe { libc::waitid(libc::P_PID, child, info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) };
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

extern "C" fn forward(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the thread's own errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: has no preconditions.
    if unsafe { libc::getpid() } != OWN.load(Ordering::Relaxed) {
        // Between fork and exec: it was meant for the program.
        restore(signal);
        // SAFETY: has no preconditions.
        unsafe { libc::raise(signal) };
    } else {
        if ENDING.contains(&signal) && !is_ignored(signal) {
            INTERRUPTED.store(signal, Ordering::Relaxed);
        }
        let child = CHILD.load(Ordering::Relaxed);
        // SAFETY: the kernel passes a valid pointer to a handler with SA_SIGINFO.
        let origin = unsafe { (*info).si_code };
        let is_sent = matches!(origin, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
        // An alarm that was set before this command was started was to reach the program.
        if child > 0 && (is_sent || signal == libc::SIGALRM) {
            // SAFETY: the child is not reaped while its number stands there.
            unsafe { libc::kill(child, signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Between fork and exec: everything as this command inherited it.
fn restore_all(mask: &sigset_t) {
    for signal in FORWARDED.into_iter().chain(CHANGED) {
        restore(signal);
    }
    let closed = CLOSED.load(Ordering::Relaxed);
    for descriptor in 0..3 {
        if closed & (1 << descriptor) != 0 {
            // SAFETY: it is the /dev/null of Rust's runtime, in a process that is about to exec.
            unsafe { libc::close(descriptor) };
        }
    }
    set_mask(mask);
}

fn restore(signal: c_int) {
    set_action(signal, if is_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL }, 0);
}

fn is_ignored(signal: c_int) -> bool {
    IGNORED.load(Ordering::Relaxed) & (1 << signal) != 0
}

fn set_action(signal: c_int, handler: libc::sighandler_t, flags: c_int) {
    // SAFETY: all zero is a valid action.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the handler is one of this file, which is safe at any time, or SIG_DFL or SIG_IGN.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// Blocks signals; returns the mask before.
fn block(signals: &[c_int]) -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    let mut before = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: writes to a place of the right type.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set was made empty, the number is a signal's.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: both places are valid.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: zeroed or written; both are valid.
    unsafe { before.assume_init() }
}

fn set_mask(mask: &sigset_t) {
    // SAFETY: a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}
