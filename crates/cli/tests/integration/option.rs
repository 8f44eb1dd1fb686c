//! Every option of every command has an effect. Which options there are, clap says: `heaptally options` lists them.
//!
//! **A new option** wants a row in the file of its command (`option/run.rs` and so on): the command, the option as
//! `heaptally options` prints it, and a function that calls the command with it and without it and checks what differs.
//! **A new command** wants a file with `ROWS`, which [`tables`] names. What every command has is in `option/every.rs`.

mod baseline;
mod cargo;
mod check;
mod config;
mod diff;
mod doctor;
mod every;
mod limits;
mod merge;
mod report;
mod run;
mod shell;
mod symbols;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::elf_copy;
use crate::sandbox::{Outcome, Sandbox};

/// An option, and how its effect is seen.
pub(super) struct Row {
    /// The command's words, without `heaptally`.
    pub(super) command: &'static str,
    /// `--long`, `-s`, or the value's name of an argument.
    pub(super) option: &'static str,
    /// Calls the command with it and without it.
    pub(super) check: fn(&Bench),
}

fn tables() -> Vec<&'static [Row]> {
    vec![
        run::ROWS,
        report::ROWS,
        diff::ROWS,
        merge::ROWS,
        check::ROWS,
        cargo::ROWS,
        limits::ROWS,
        doctor::ROWS,
        symbols::ROWS,
        shell::ROWS,
        baseline::ROWS,
        config::ROWS,
    ]
}

/// What a row has to work with: a sandbox of its own.
pub(super) struct Bench {
    pub(super) sandbox: Sandbox,
}

impl Bench {
    fn new() -> Self {
        Self { sandbox: Sandbox::new() }
    }

    /// Calls the command with these words.
    pub(super) fn call(&self, words: &[&str]) -> Outcome {
        self.sandbox.call(words)
    }

    /// The same, which must end with 0; what it printed.
    #[track_caller]
    pub(super) fn output(&self, words: &[&str]) -> String {
        let outcome = self.call(words);
        outcome.expect(0);
        outcome.output
    }

    /// A program that opens the windows `parse` and `look up`.
    pub(super) fn demo(&self) -> String {
        self.sandbox.demo().to_str().unwrap().to_owned()
    }

    /// A profile of that program.
    pub(super) fn profile(&self) -> &'static str {
        self.output(&["run", "--quiet", "-o", "demo.pb.gz", &self.demo()]);
        "demo.pb.gz"
    }

    /// A profile that is not whole: its program calls mimalloc by a name of its own, as far as heaptally can see.
    pub(super) fn incomplete_profile(&self) -> &'static str {
        let program = self.sandbox.write("by-passing", elf_copy::with_symbol("_rjem_malloc"), 0o755);
        self.output(&["run", "--quiet", "-o", "incomplete.pb.gz", program.to_str().unwrap()]);
        "incomplete.pb.gz"
    }

    /// What clap has, as (command, option).
    pub(super) fn options(&self) -> Vec<(String, String)> {
        let list = self.output(&["options"]);
        let pairs = list.lines().map(|line| line.split_once('\t').unwrap());
        pairs.map(|(command, option)| (command.to_owned(), option.to_owned())).collect()
    }

    /// The commands, `heaptally` itself first.
    pub(super) fn commands(&self) -> Vec<String> {
        let mut commands: Vec<String> = self.options().into_iter().map(|(command, _)| command).collect();
        commands.dedup();
        commands
    }
}

/// A row, or what every command has for one command.
struct Case {
    command: String,
    option: &'static str,
    check: Box<dyn Fn(&Bench)>,
}

/// All rows; those of every command once for each.
fn cases(commands: &[String]) -> Vec<Case> {
    let own = tables().into_iter().flatten().map(|row| Case {
        command: row.command.to_owned(),
        option: row.option,
        check: Box::new(row.check),
    });
    let shared = commands.iter().flat_map(|command| {
        every::ROWS.map(|(option, check)| {
            let of = command.clone();
            Case { command: command.clone(), option, check: Box::new(move |bench| check(bench, &of)) }
        })
    });
    own.chain(shared).collect()
}

#[test]
fn every_option_has_one_row() {
    let bench = Bench::new();
    let options = bench.options();
    let known: BTreeSet<_> = options.iter().cloned().collect();
    assert_eq!(known.len(), options.len(), "clap has an option twice: {options:#?}");
    let mut rows: Vec<(String, String)> =
        cases(&bench.commands()).into_iter().map(|case| (case.command, case.option.to_owned())).collect();
    let unknown: Vec<_> = rows.iter().filter(|row| !known.contains(*row)).collect();
    assert!(unknown.is_empty(), "rows of options that clap does not have: {unknown:?}");
    let without: Vec<_> = known.iter().filter(|option| !rows.contains(option)).collect();
    assert!(without.is_empty(), "options without a row in tests/integration/option/: {without:?}");
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), known.len(), "an option has two rows");
}

#[test]
fn every_option_has_an_effect() {
    let commands = Bench::new().commands();
    let failed: Vec<String> = cases(&commands)
        .into_iter()
        .filter_map(|case| {
            let name = format!("{} {}", case.command, case.option);
            println!("{name}");
            let outcome = catch_unwind(AssertUnwindSafe(|| (case.check)(&Bench::new())));
            outcome.is_err().then_some(name)
        })
        .collect();
    assert!(failed.is_empty(), "see above: {failed:?}");
}

#[test]
fn the_list_is_not_shown() {
    let bench = Bench::new();
    assert!(!bench.output(&["--help"]).contains("options  "), "the help shows the list's command");
    assert!(bench.commands().iter().all(|command| command != "options"));
}
