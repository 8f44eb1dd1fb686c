//! How programs end, in words.

/// The signals of Linux on x86-64 that end programs, by their numbers (signal(7)).
const SIGNALS: [(i32, &str); 16] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// An exit code, with the signal that it stands for in a shell: `137 (128 + 9, SIGKILL)`. A program may exit with such a code,
/// too.
pub fn code(code: i32) -> String {
    match SIGNALS.iter().find(|(number, _)| code == 128 + number) {
        Some((number, name)) => format!("{code} (128 + {number}, {name})"),
        None => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn a_signal_is_named() {
        assert_eq!([code(137), code(139)], ["137 (128 + 9, SIGKILL)", "139 (128 + 11, SIGSEGV)"]);
        assert_eq!([code(0), code(3), code(128), code(255)], ["0", "3", "128", "255"]);
    }
}
