//! heaptally: which call stack allocates inside the part of a program that you measure.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod command;
mod convert;
mod elf;
mod exit;
mod library;
mod message;
mod output;
mod process;
mod program;
mod segment_file;
mod status;

/// Tells which call stack allocates inside the part of a program that you measure.
#[derive(Debug, Parser)]
#[command(
    name = "heaptally",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 a fault of heaptally's, 2 wrong usage, 4 a file could not be read; `run` has its own."
)]
struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Run(command::run::Run),
    Report(command::report::Report),
    Demo(command::demo::Demo),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
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
        Subcommands::Demo(demo) => demo.run(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            message::print(&format!("{error:#}"));
            ExitCode::from(exit::code_of(&error))
        }
    }
}
