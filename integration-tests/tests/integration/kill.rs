//! SIGKILL at any moment: what was recorded until then is there, and is right.

use std::fs;
use std::time::{Duration, Instant};

use integration_tests::program;
use integration_tests::random::Random;
use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use rustix::process::{Pid, Signal, kill_process};

/// Mallocs per entry of the window in `kill_loop.c`.
const PER_ENTRY: u64 = 7;

/// The two words of the program's page: its pid, its finished entries.
fn page(path: &std::path::Path) -> Option<(u64, u64)> {
    let bytes = fs::read(path).ok()?;
    let word = |at: usize| {
        bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes)
    };
    Some((word(0)?, word(1)?))
}

#[test]
fn killed_at_twenty_moments() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "kill_loop.c", "kill_loop", &["-O1"]);
    let mut random = Random::from_environment();
    for round in 0..20 {
        let counts = scratch.path(format!("counts{round}"));
        let running = Run::new(&scratch, ["./kill_loop".into(), counts.clone()]).start();
        let started = Instant::now();
        let process = loop {
            if let Some((pid @ 1.., _)) = page(&counts) {
                break Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
            }
            assert!(started.elapsed() < Duration::from_secs(30), "the program does not start");
            std::thread::sleep(Duration::from_micros(100));
        };
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        kill_process(process, Signal::KILL).expect("kill");
        let outcome = running.wait();
        assert_eq!(outcome.code, 137, "round {round}; stderr:\n{}", outcome.stderr);
        let (_, finished) = page(&counts).expect("the program's page");
        let report = outcome.report();
        assert_eq!(report.lost().collect::<Vec<_>>(), [""; 0], "round {round}");
        // The row is counted before the thread: the kill may come in between.
        for mismatch in &report.sum_mismatches {
            assert!(
                mismatch.rows.abs_diff(mismatch.threads) <= 1 || mismatch.sum.ends_with("bytes"),
                "{mismatch:?}"
            );
        }
        if finished == 0 && !report.has_window("w") {
            continue;
        }
        let window = report.window("w");
        assert!(
            (finished..=finished + 1).contains(&window.entries),
            "round {round}: {} entries, the program finished {finished}",
            window.entries
        );
        let calls = window.calls_with("entry_work");
        assert!(
            (finished * PER_ENTRY..=(finished + 1) * PER_ENTRY).contains(&calls),
            "round {round}: {calls} calls, the program finished {finished} entries of {PER_ENTRY}\n{}",
            window.text()
        );
        assert_eq!(calls, window.calls(), "round {round}:\n{}", window.text());
        assert_eq!(window.complete_calls(), calls, "round {round}:\n{}", window.text());
    }
}
