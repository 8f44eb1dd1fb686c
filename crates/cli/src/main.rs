//! heaptally: which call stack allocates inside the part of a program that you measure.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod baseline;
mod cargo;
mod check;
mod command;
mod config;
mod convert;
mod doctor;
mod elf;
mod exit;
mod family;
mod file_role;
mod function;
mod gungraun;
mod harness;
mod input;
mod large_stack;
mod library;
mod message;
mod other_allocator;
mod output;
mod process;
mod program;
mod progress;
mod proof;
mod recording;
mod script;
mod segment_file;
mod selection;
mod status;
mod terminal;
mod version;

use large_stack::on_enough_stack;

/// Tells which call stack allocates inside the part of a program that you measure.
#[derive(Debug, Parser)]
#[command(
    name = "heaptally",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 a fault of heaptally's, 2 wrong usage, 3 a limit is broken (`check`) or profiles differ (`diff --exit-code`), 4 something could not be read, measured or written, 5 better than the limits (`check --exit-on-improvement`); `run` has its own."
)]
struct Arguments {
    #[command(flatten)]
    config: config::ConfigArgs,
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Run(command::run::Run),
    Report(command::report::Report),
    Diff(command::diff::Diff),
    Merge(command::merge::Merge),
    Baseline(command::baseline::Baseline),
    Config(command::config::Config),
    Check(Box<command::check::Check>),
    Limits(command::limits::LimitsCommand),
    Cargo(Box<command::cargo::Cargo>),
    Demo(command::demo::Demo),
    Doctor(command::doctor::Doctor),
    Symbols(command::symbols::Symbols),
    Completions(command::completions::Completions),
    Man(command::man::Man),
}

/// The arguments; `None`: the command that lists them all was called.
fn parse(words: &[OsString]) -> Result<Option<Arguments>, config::apply::Error> {
    let mut command = Arguments::command().subcommand(command::options::command());
    // PERF: made only where it may be printed, since it hashes the recorder.
    if words.iter().any(|word| word == "--version") {
        command = command.long_version(version::long());
    }
    let (mut command, mut matches) = config::apply::parse(command, words)?;
    if matches.subcommand_name() == Some(command::options::NAME) {
        return Ok(None);
    }
    let arguments = Arguments::from_arg_matches_mut(&mut matches);
    Ok(Some(arguments.map_err(|error| error.format(&mut command))?))
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_run = config::command_word(words.iter().skip(1)).is_some_and(|word| word == "run");
    ExitCode::from(match (call(&words, is_run), is_run) {
        // The codes of `run` below 125 are the program's.
        (Code::Own(exit::USAGE), true) => exit::RECORDER,
        (Code::Own(code) | Code::Program(code), _) => code,
    })
}

/// An exit code: of this command, or perhaps of a program.
enum Code {
    Own(u8),
    Program(u8),
}

fn call(words: &[OsString], is_run: bool) -> Code {
    let parsed = match on_enough_stack(|| parse(words)) {
        Ok(parsed) => parsed,
        Err(failure) => return end(Err(failure.into())),
    };
    let arguments = match parsed {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return end(command::options::run()),
        Err(config::apply::Error::Config(failure)) => return end(Err(failure.into())),
        Err(config::apply::Error::Usage(error)) => {
            if error.use_stderr() {
                let _closed = error.print();
                return Code::Own(exit::USAGE);
            }
            // Help and version are no errors, unless they cannot be printed.
            let text = error.render();
            let has_color = std::io::stdout().is_terminal() && terminal::color();
            let text = if has_color { text.ansi().to_string() } else { text.to_string() };
            return match terminal::print(&text) {
                Ok(()) => Code::Own(0),
                Err(error) => match end(Err(error)) {
                    Code::Own(_) if is_run => Code::Own(exit::RECORDER),
                    code => code,
                },
            };
        }
    };
    let result = match arguments.command {
        Subcommands::Run(run) => run.run(),
        Subcommands::Report(report) => report.run(),
        Subcommands::Diff(diff) => diff.run(),
        Subcommands::Merge(merge) => merge.run(),
        Subcommands::Baseline(baseline) => baseline.run(),
        Subcommands::Config(config) => config.run(),
        Subcommands::Check(check) => check.run(),
        Subcommands::Limits(limits) => limits.run(),
        Subcommands::Cargo(cargo) => cargo.run(),
        Subcommands::Demo(demo) => demo.run(),
        Subcommands::Doctor(doctor) => doctor.run(),
        Subcommands::Symbols(symbols) => symbols.run(),
        Subcommands::Completions(completions) => completions.run(),
        Subcommands::Man(man) => man.run(),
    };
    end(result)
}

/// The exit code, after the message of an error.
fn end(result: anyhow::Result<u8>) -> Code {
    match result {
        Ok(code) => Code::Program(code),
        Err(error) => {
            message::print(&format!("{error:#}"));
            Code::Own(exit::code_of(&error))
        }
    }
}
