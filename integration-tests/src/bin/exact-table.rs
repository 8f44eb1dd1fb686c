//! Prints how exactly the recorder saw programs of the system: `cargo run -p integration-tests --bin exact-table`.

use std::process::ExitCode;

use integration_tests::counter::Counter;
use integration_tests::exact::PROGRAMS;

fn main() -> ExitCode {
    let counter = Counter::build();
    println!("| program | events | stacks | complete | counter equal | same calls as alone | lost |");
    println!("|---|---|---|---|---|---|---|");
    let mut all_equal = true;
    for program in &PROGRAMS {
        let Some(measure) = program.measure(&counter) else { continue };
        let yes = |is: bool| if is { "yes" } else { "**no**" };
        let same_calls = match (measure.is_same_calls, measure.is_deterministic) {
            (true, _) => "yes",
            (false, true) => "**no**",
            (false, false) => "varies by itself",
        };
        println!(
            "| {} | {} | {} | {:.3} % | {} | {same_calls} | {} |",
            measure.name,
            measure.events,
            measure.stacks,
            100.0 * measure.complete_share(),
            yes(measure.is_counted()),
            if measure.losses.is_empty() { "0" } else { &measure.losses },
        );
        all_equal &= measure.is_counted();
    }
    if all_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
