//! Commands on a terminal, which `script` of util-linux provides.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::command::heaptally;
use crate::scratch::Scratch;

/// What a terminal showed.
#[derive(Debug)]
pub struct Shown {
    /// The command's exit code.
    pub code: i32,
    /// All that was written to it, its escape codes and carriage returns included.
    pub text: String,
}

impl Shown {
    /// The lines, without escape codes.
    pub fn lines(&self) -> Vec<String> {
        without_escapes(&self.text).lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
    }
}

/// `script`, which runs `heaptally` with the shell words `arguments` on a terminal of `columns` columns.
pub fn script(scratch: &Scratch, columns: usize, arguments: &str) -> Command {
    script_behind(scratch, columns, Path::new(""), arguments)
}

/// As [`script`], but the command is started by the shell words `wrapper`.
pub fn script_behind(scratch: &Scratch, columns: usize, wrapper: &Path, arguments: &str) -> Command {
    let words = format!(
        "stty cols {columns} rows 50; {} '{}' {arguments}",
        wrapper.to_string_lossy(),
        heaptally().display()
    );
    let mut command = Command::new("script");
    command.args(["-qec", &words, "/dev/null"]).current_dir(scratch.folder());
    command.env("TERM", "xterm").env("SHELL", "/bin/sh");
    for name in ["NO_COLOR", "COLUMNS", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    command
}

/// Runs what [`script`] made, without input.
///
/// # Panics
/// When it does not start.
pub fn shown(mut command: Command) -> Shown {
    command.stdin(Stdio::null());
    wait(start(command))
}

/// Starts it: what is typed goes to its standard input.
///
/// # Panics
/// When it does not start.
pub fn start(mut command: Command) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    child.unwrap_or_else(|error| panic!("script does not start: {error}"))
}

/// Waits for its end.
///
/// # Panics
/// When that fails.
pub fn wait(child: Child) -> Shown {
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("script: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Shown { code: output.status.code().unwrap_or(-1), text }
}

/// Drops `ESC [ … letter`.
fn without_escapes(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        kept.push_str(before);
        let end = after.find(|character: char| character.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::without_escapes;

    #[test]
    fn escape_codes_are_dropped() {
        assert_eq!(without_escapes("a\x1b[1mb\x1b[0m\x1b[38;5;1mc"), "abc");
        assert_eq!(without_escapes("a\x1b[1"), "a");
    }
}
