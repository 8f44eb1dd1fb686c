//! heaptally: which call stack allocates inside the part of a program that you measure.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod check;
mod command;
mod convert;
mod doctor;
mod elf;
mod exit;
mod family;
mod library;
mod message;
mod output;
mod process;
mod program;
mod progress;
mod segment_file;
mod selection;
mod status;
mod terminal;
mod version;

/// Tells which call stack allocates inside the part of a program that you measure.
#[derive(Debug, Parser)]
#[command(
    name = "heaptally",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 a fault of heaptally's, 2 wrong usage, 3 a limit is broken (`check`) or profiles differ (`diff --exit-code`), 4 something could not be read, measured or written, 5 better than the limits (`check --exit-on-improvement`); `run` has its own."
)]
struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Run(command::run::Run),
    Report(command::report::Report),
    Diff(command::diff::Diff),
    Check(Box<command::check::Check>),
    Limits(command::limits::LimitsCommand),
    Demo(command::demo::Demo),
    Doctor(command::doctor::Doctor),
    Completions(command::completions::Completions),
    Man(command::man::Man),
}

/// The arguments; `None`: the command that lists them all was called.
fn parse() -> Result<Option<Arguments>, clap::Error> {
    let mut command = Arguments::command().subcommand(command::options::command());
    // PERF: made only where it may be printed, since it hashes the recorder.
    if std::env::args_os().any(|word| word == "--version") {
        command = command.long_version(version::long());
    }
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    if matches.subcommand_name() == Some(command::options::NAME) {
        return Ok(None);
    }
    let arguments = Arguments::from_arg_matches_mut(&mut matches);
    arguments.map(Some).map_err(|error| error.format(&mut command))
}

fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return end(command::options::run()),
        Err(error) => {
            let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
            // Help and version are no errors. The codes of `run` below 125 are the program's.
            let code = match (error.use_stderr(), is_run) {
                (false, _) => 0,
                (true, true) => exit::RECORDER,
                (true, false) => exit::USAGE,
            };
            let _closed = error.print();
            return ExitCode::from(code);
        }
    };
    let result = match arguments.command {
        Subcommands::Run(run) => run.run(),
        Subcommands::Report(report) => report.run(),
        Subcommands::Diff(diff) => diff.run(),
        Subcommands::Check(check) => check.run(),
        Subcommands::Limits(limits) => limits.run(),
        Subcommands::Demo(demo) => demo.run(),
        Subcommands::Doctor(doctor) => doctor.run(),
        Subcommands::Completions(completions) => completions.run(),
        Subcommands::Man(man) => man.run(),
    };
    end(result)
}

/// The exit code, after the message of an error.
fn end(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            message::print(&format!("{error:#}"));
            ExitCode::from(exit::code_of(&error))
        }
    }
}
