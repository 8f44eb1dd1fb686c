//! `heaptally doctor`: each finding that it promises, on real programs and a machine with something changed.

use std::process::Command;

use serde_json::Value;

use crate::sandbox::{Outcome, Sandbox, outcome, skip};

mod debug_information;
mod machine;
mod output;
mod program;
#[path = "../../../report/tests/report/schema.rs"]
pub(crate) mod schema;

/// The exit code of what cannot be recorded.
const UNRECORDABLE: i32 = 4;

/// What `heaptally doctor --json` said.
#[derive(Debug)]
struct Diagnosis {
    outcome: Outcome,
    json: Value,
}

impl Diagnosis {
    /// Of a program, in the sandbox's working folder.
    #[track_caller]
    fn of(sandbox: &Sandbox, program: &str) -> Self {
        Self::by(&mut sandbox.command(["doctor", "--json", program]))
    }

    /// Of a call of the command.
    #[track_caller]
    fn by(command: &mut Command) -> Self {
        let outcome = outcome(command);
        assert!(!outcome.errors.contains("panicked"), "{outcome:#?}");
        let json: Value =
            serde_json::from_str(&outcome.output).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
        let code = if json["recordable"] == true { 0 } else { UNRECORDABLE };
        assert_eq!(outcome.code, Some(code), "exit code and verdict differ: {outcome:#?}");
        Self { outcome, json }
    }

    fn findings(&self) -> Vec<&Value> {
        let of_program = self.json["program"]["findings"].as_array();
        let machine = self.json["machine"].as_array().unwrap();
        machine.iter().chain(of_program.into_iter().flatten()).collect()
    }

    /// Checks that a check has a finding of this level that says all these words, in its finding or its advice.
    #[track_caller]
    fn has(&self, check: &str, level: &str, words: &[&str]) -> &Self {
        let of_check: Vec<&Value> =
            self.findings().into_iter().filter(|found| found["check"] == check).collect();
        let says = |found: &Value| {
            let text = format!(
                "{} {}",
                found["found"].as_str().unwrap(),
                found["advice"].as_str().unwrap_or_default()
            );
            words.iter().all(|word| text.contains(word))
        };
        assert!(
            of_check.iter().any(|found| found["level"] == level && says(found)),
            "no {level} of {check} says {words:?}: {of_check:#?}"
        );
        self
    }

    /// Checks that a check has no finding.
    #[track_caller]
    fn lacks(&self, check: &str) -> &Self {
        assert!(
            self.findings().iter().all(|found| found["check"] != check),
            "there is a finding of {check}: {self:#?}"
        );
        self
    }

    #[track_caller]
    fn recordable(&self, expected: bool) -> &Self {
        assert_eq!(self.json["recordable"], expected, "{self:#?}");
        self
    }
}

/// Builds a program in the working folder; false, and said: the compiler cannot.
fn build(sandbox: &Sandbox, compiler: &[&str], source: &str) -> bool {
    let (compiler, options) = compiler.split_first().unwrap();
    let ending = match *compiler {
        "g++" => "cc",
        "rustc" => "rs",
        _ => "c",
    };
    let file = format!("source.{ending}");
    sandbox.write(&file, source, 0o644);
    let mut command = Command::new(compiler);
    command.args(["-o", "program"]).args(options).arg(&file).current_dir(sandbox.work(""));
    // Libraries behind the source that needs them.
    let libraries: Vec<&&str> = options.iter().filter(|option| option.starts_with("-l")).collect();
    command.args(libraries);
    let is_built = command.output().is_ok_and(|output| output.status.success());
    if !is_built {
        skip(&format!("{compiler} {options:?} does not work"));
    }
    is_built
}

/// A program that allocates.
const PLAIN: &str =
    "#include <stdlib.h>\nint main(int argc, char **argv) { (void)argv; free(malloc(argc)); return 0; }\n";
