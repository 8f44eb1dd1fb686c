//! Allocations planted in programs that nobody here wrote, and whether `heaptally diff` names them in its first line.
//!
//! ```text
//! cargo xtask planted [--seed N] [--plants N] [--only SUBJECT] [--heaptally PATH]
//! ```
//!
//! Each subject is a crate, or a C++ library of Debian's, with a small driver in `xtask/planted`. The base is its source as
//! it was published. The change has other lines, in Rust also another form (rustfmt) and another order of items, lies in
//! another folder and is built with another optimisation. First the change is compared as it is, built as the base is and
//! with the other optimisation: nothing may differ. Then
//! one allocation at a time is planted into a function drawn from all that the driver comes by, at every second time from
//! those that lie ten frames or more below the driver; a build that counts calls says which these are. The library that
//! counts for the integration tests proves each plant; what the compiler deleted is rejected and said. A plant is found if
//! the first line names its line; without debug information, if it names the function that holds it: the innermost one that
//! has a symbol. The four pairs of optimisations are those of the subjects in turn.
//!
//! What was built stays in `target/planted`, the profiles of those that were missed in `<subject>/missed`. `N` plants are made for each subject (8).

mod build;
mod judge;
mod plant;
mod random;
mod source;
mod subject;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use build::{Build, Information, Optimisation};
use plant::{Place, kinds};
use random::Random;
use source::Language;
use subject::{SUBJECTS, Subject};

use crate::counter::Counter;
use crate::process::{build_heaptally, in_workspace, succeed};

const USAGE: &str = "usage: cargo xtask planted [--seed N] [--plants N] [--only SUBJECT] [--heaptally PATH]";
/// From so many frames on a function lies deep.
const DEEP: u64 = 10;

const RUST: [[Optimisation; 2]; 4] = [
    ["opt-level = 2", "opt-level = 3; codegen-units = 1"],
    ["opt-level = 3", "opt-level = 2; codegen-units = 1"],
    ["opt-level = 2; codegen-units = 1", "opt-level = 3; lto = \"thin\""],
    ["opt-level = 3; lto = \"thin\"", "opt-level = 3; codegen-units = 16"],
];
const CPP: [[Optimisation; 2]; 4] =
    [["-O2", "-O3"], ["-O3", "-O2 -fno-inline-small-functions"], ["-O2", "-O3 -flto"], ["-O3", "-O1"]];

#[derive(Debug)]
struct Options {
    seed: u64,
    plants: usize,
    only: Option<String>,
    heaptally: Option<PathBuf>,
}

/// What became of the plants of a subject, or of all.
#[derive(Clone, Debug, Default)]
struct Score {
    plants: usize,
    deep: usize,
    rejected: usize,
    /// Found with debug information, and with symbols only.
    found: [usize; 2],
    /// Pairs without a plant, built in the same way, and with another optimisation.
    unchanged: [Unchanged; 2],
}

/// Pairs without a plant.
#[derive(Clone, Copy, Debug, Default)]
struct Unchanged {
    pairs: usize,
    /// Those that differ, and those with something new or gone.
    differing: usize,
    new_or_gone: usize,
}

struct Bench {
    heaptally: PathBuf,
    counter: Counter,
    folder: PathBuf,
    seed: u64,
    plants: usize,
}

/// Runs the task.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let options = parse(words)?;
    let folder = in_workspace("target/planted");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let heaptally = match options.heaptally {
        Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?,
        None => build_heaptally()?,
    };
    let bench = Bench {
        heaptally,
        counter: Counter::build(&folder)?,
        folder,
        seed: options.seed,
        plants: options.plants,
    };
    let wanted =
        |subject: &Subject| options.only.as_ref().map_or(!subject.is_known, |name| subject.name == name);
    println!("seed {}, {} plants for each subject\n", bench.seed, bench.plants);
    let mut scores: Vec<(&str, Score)> = Vec::new();
    let mut failures = Vec::new();
    for (nth, subject) in SUBJECTS.iter().enumerate().filter(|(_, subject)| wanted(subject)) {
        match bench.subject(subject, nth) {
            Ok(score) => scores.push((subject.name, score)),
            Err(error) => failures.push(format!("{}: {error}", subject.name)),
        }
    }
    let mut all = Score::default();
    for (_, score) in &scores {
        all.add(score);
    }
    scores.push(("all", all));
    println!(
        "\n| subject | plants | of them deep | rejected | line, with debug information | function, with symbols only \
         | unchanged and built alike | unchanged, built otherwise |\n|---|--:|--:|--:|--:|--:|---|---|"
    );
    for (name, score) in &scores {
        let Score { plants, deep, rejected, found: [debug, symbols], unchanged } = score;
        let [alike, otherwise] = unchanged.each_ref().map(|of| {
            format!("{} pairs, {} differ, {} with new or gone", of.pairs, of.differing, of.new_or_gone)
        });
        println!("| {name} | {plants} | {deep} | {rejected} | {debug} | {symbols} | {alike} | {otherwise} |");
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { seed: 1, plants: 8, only: None, heaptally: None };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--seed" => options.seed = value.parse().map_err(|_| USAGE)?,
            "--plants" => options.plants = value.parse().map_err(|_| USAGE)?,
            "--only" => options.only = Some(value),
            "--heaptally" => options.heaptally = Some(value.into()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

impl Score {
    fn add(&mut self, other: &Self) {
        self.plants += other.plants;
        self.deep += other.deep;
        self.rejected += other.rejected;
        self.found.iter_mut().zip(other.found).for_each(|(sum, found)| *sum += found);
        for (sum, of) in self.unchanged.iter_mut().zip(other.unchanged) {
            sum.pairs += of.pairs;
            sum.differing += of.differing;
            sum.new_or_gone += of.new_or_gone;
        }
    }
}

/// Base and change, built in one pair of ways and recorded.
struct Pair<'s> {
    how: [Optimisation; 2],
    change: Build<'s>,
    base_profiles: [PathBuf; 2],
    /// Calls that allocate in the change without a plant.
    calls: u64,
}

impl Bench {
    fn subject(&self, subject: &Subject, nth: usize) -> Result<Score, String> {
        let folder = self.folder.join(subject.name);
        let base = folder.join("base/subject");
        build::copy(&subject.fetch(&folder)?, &base)?;
        let change = folder.join("change/subject");
        build::copy(&base, &change)?;
        build::rearrange(subject, &change, self.seed)?;
        let unoptimised = match subject.language {
            Language::Rust => "opt-level = 0",
            Language::Cpp => "-O0",
        };
        let probing = Build::new(subject, folder.join("probe"), &change, unoptimised)?;
        let (places, left_out) = plant::places(&probing, &change)?;
        let deep = places.iter().filter(|place| place.depth >= DEEP).count();
        println!(
            "{} ({}): the driver comes by {} functions, {deep} of them deep; {left_out} could not be asked",
            subject.name,
            subject.version,
            places.len()
        );
        let mut score = Score::default();
        let pair = self.pair(subject, &folder, nth % RUST.len(), [&base, &change], &mut score)?;
        let mut random = Random::new(self.seed, &[subject.name, "plants"]);
        let mut drawn: Vec<&Place> = places.iter().collect();
        random.shuffle(&mut drawn);
        let kinds = kinds(subject.language);
        let mut tried: usize = 0;
        while score.plants < self.plants && !drawn.is_empty() {
            let is_deep = |place: &&Place| place.depth >= DEEP;
            let wants_deep = score.deep * 2 <= score.plants;
            let at = drawn.iter().position(|place| !wants_deep || is_deep(place)).unwrap_or(0);
            let place = drawn.remove(at);
            let kind = kinds[random.below(kinds.len())];
            self.plant(&pair, &change, place, kind, &mut score)?;
            tried += 1;
        }
        println!("  {} of {tried} plants are real", score.plants);
        Ok(score)
    }

    fn pair<'s>(
        &self,
        subject: &'s Subject,
        folder: &Path,
        at: usize,
        [base, change]: [&Path; 2],
        score: &mut Score,
    ) -> Result<Pair<'s>, String> {
        let how = match subject.language {
            Language::Rust => RUST[at],
            Language::Cpp => CPP[at],
        };
        let base = Build::new(subject, folder.join(format!("base-{at}")), base, how[0])?;
        let alike = Build::new(subject, folder.join(format!("alike-{at}")), change, how[0])?;
        let change = Build::new(subject, folder.join(format!("change-{at}")), change, how[1])?;
        let base_program = base.program("")?;
        let base_profiles = base.record(&self.heaptally, &base_program)?;
        let said = succeed(&mut Command::new(&base_program))?;
        let base_calls = self.counter.allocations(&[base_program.display().to_string()])?;
        let mut calls = base_calls;
        for (build, how, at) in [(&alike, [how[0], how[0]], 0), (&change, how, 1)] {
            let program = build.program("")?;
            if succeed(&mut Command::new(&program))? != said {
                return Err("base and change say different things".to_owned());
            }
            let profiles = build.record(&self.heaptally, &program)?;
            calls = self.counter.allocations(&[program.display().to_string()])?;
            if calls != base_calls {
                println!(
                    "  built with {}, it calls {calls} times where the base calls {base_calls} times",
                    how[1]
                );
            }
            self.compare_unchanged(how, [&base_profiles, &profiles], &mut score.unchanged[at])?;
        }
        Ok(Pair { how, change, base_profiles, calls })
    }

    fn compare_unchanged(
        &self,
        how: [Optimisation; 2],
        profiles: [&[PathBuf; 2]; 2],
        unchanged: &mut Unchanged,
    ) -> Result<(), String> {
        for information in Information::ALL {
            let [base, change] =
                profiles.map(|profiles| &profiles[usize::from(information == Information::Symbols)]);
            let answer = judge::answer(&self.heaptally, base, change)?;
            unchanged.pairs += 1;
            unchanged.differing += usize::from(answer.entries > 0);
            unchanged.new_or_gone += usize::from(answer.new_or_gone > 0);
            if answer.entries > 0 {
                println!(
                    "  unchanged, {} | {}, {}: {} entries, {} of them new or gone: {}",
                    how[0],
                    how[1],
                    information.name(),
                    answer.entries,
                    answer.new_or_gone,
                    answer.line
                );
            }
        }
        Ok(())
    }

    fn plant(
        &self,
        pair: &Pair<'_>,
        source: &Path,
        place: &Place,
        (kind, text): (&str, &str),
        score: &mut Score,
    ) -> Result<(), String> {
        let file = place.file.to_string_lossy().into_owned();
        let line = plant::plant(&pair.change, source, place, text)? as u64;
        let what = format!(
            "{kind} in {} ({file}:{line}, depth {}, {} calls)",
            place.function, place.depth, place.calls
        );
        let built = pair.change.program("");
        let outcome = built.and_then(|program| {
            let calls = self.counter.allocations(&[program.display().to_string()])?;
            Ok((program, calls))
        });
        let reject = |why: &str, score: &mut Score| {
            println!("  rejected: {what}: {why}");
            score.rejected += 1;
        };
        match outcome {
            Err(error) => {
                let first = error.lines().find(|line| line.starts_with("error") || line.contains(" error: "));
                reject(&format!("no program: {}", first.unwrap_or("it failed")), score);
            }
            Ok((_, calls)) if calls <= pair.calls => reject("the compiler deleted it", score),
            Ok((program, calls)) => {
                let profiles = pair.change.record(&self.heaptally, &program)?;
                let holders = judge::holders(&self.heaptally, &profiles[0], &file, line)?;
                score.plants += 1;
                score.deep += usize::from(place.depth >= DEEP);
                self.judge(pair, &profiles, (&file, line), &holders, &what, calls - pair.calls, score)?;
            }
        }
        plant::restore(&pair.change, source, place)
    }

    /// Keeps two profiles that the next plant would replace; the folder.
    fn keep(&self, pair: &Pair<'_>, profiles: [&PathBuf; 2]) -> Result<PathBuf, String> {
        let missed = self.folder.join(pair.change.subject.name).join("missed");
        let folder = (1_usize..).map(|nth| missed.join(nth.to_string())).find(|folder| !folder.exists());
        let folder = folder.unwrap_or(missed);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for (profile, name) in profiles.into_iter().zip(["base.pb.gz", "change.pb.gz"]) {
            let to = folder.join(name);
            fs::copy(profile, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(folder)
    }

    #[expect(clippy::too_many_arguments, reason = "what a verdict on one plant is made of")]
    fn judge(
        &self,
        pair: &Pair<'_>,
        profiles: &[PathBuf; 2],
        (file, line): (&str, u64),
        holders: &BTreeSet<String>,
        what: &str,
        more: u64,
        score: &mut Score,
    ) -> Result<(), String> {
        for information in Information::ALL {
            let at = usize::from(information == Information::Symbols);
            let answer = judge::answer(&self.heaptally, &pair.base_profiles[at], &profiles[at])?;
            let is_found = match information {
                Information::Debug => answer.is_line(file, line),
                Information::Symbols => answer.is_function(holders),
            };
            if is_found {
                score.found[at] += 1;
                continue;
            }
            println!(
                "  missed, {} | {}, {}: {what}, {more} allocations",
                pair.how[0],
                pair.how[1],
                information.name()
            );
            println!("    said: {}", answer.line);
            println!(
                "    profiles: {}",
                self.keep(pair, [&pair.base_profiles[at], &profiles[at]])?.display()
            );
            if information == Information::Symbols {
                println!("    held by: {}", holders.iter().cloned().collect::<Vec<_>>().join(", "));
            }
        }
        Ok(())
    }
}
