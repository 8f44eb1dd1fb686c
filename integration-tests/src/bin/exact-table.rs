//! Prints how exactly the recorder saw programs of the system: `cargo run -p integration-tests --bin exact-table`.
//!
//! With arguments: only the programs whose names contain one of them.

use std::process::ExitCode;

use integration_tests::counter::Counter;
use integration_tests::exact::{Foreign, Measure, PROGRAMS, SameCalls};

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |program: &Foreign| {
        wanted.is_empty() || wanted.iter().any(|word| program.name.contains(word.as_str()))
    };
    let counter = Counter::build();
    println!(
        "| program | processes | events | stacks | complete | by frame pointer | counter equal | same calls as alone | \
         same output | lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut problems = Vec::new();
    for program in PROGRAMS.iter().filter(|program| is_wanted(program)) {
        let modes: &[bool] = if program.has_children { &[false, true] } else { &[false] };
        for follows in modes {
            let measure = program.is_there().then(|| program.measure(&counter, *follows)).flatten();
            let Some(measure) = measure else {
                println!("| {} | missing | | | | | | | | |", program.name);
                break;
            };
            println!("{}", line(&measure));
            let texts = measure.problems();
            problems.extend(texts.iter().map(|text| format!("{}: {text}", measure.name)));
        }
    }
    if problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", problems.join("\n"));
    ExitCode::FAILURE
}

fn line(measure: &Measure) -> String {
    let yes = |is: bool| if is { "yes" } else { "**no**" };
    let same_calls = match measure.same_calls {
        SameCalls::Same => "yes",
        SameCalls::Different => "**no**",
        SameCalls::Varies => "varies",
    };
    let processes =
        if measure.is_followed { measure.processes.to_string() } else { "its own alone".to_owned() };
    format!(
        "| {} | {processes} | {} | {} | {:.3} % | {} | {} | {same_calls} | {} | {} |",
        measure.name,
        measure.events,
        measure.stacks,
        100.0 * measure.complete_share(),
        measure.by_frame_pointer,
        yes(measure.miscounted.is_empty()),
        yes(measure.is_same_output),
        if measure.losses.is_empty() { "0" } else { &measure.losses },
    )
}
