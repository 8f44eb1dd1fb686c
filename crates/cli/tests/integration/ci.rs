//! What `docs/ci` and `action.yml` say is run here: the steps of the workflow, of the action and of GitLab's job, in a
//! repository with a change that allocates once more, and in one with a change that does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::sandbox::{HEAPTALLY, Outcome, Sandbox, outcome, skip};

const BENCH: &str = "\
#include <stdlib.h>
__attribute__((noinline)) void *keep(void *block) { __asm__ volatile(\"\" : : \"r\"(block) : \"memory\"); return block; }
__attribute__((noinline)) void parse_header(void) { free(keep(malloc(24))); }
__attribute__((noinline)) void parse_name(void) { EXTRA; __asm__ volatile(\"\"); }
int main(void) { for (int i = 0; i < 10; i++) { parse_header(); parse_name(); } return 0; }
";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn yaml(path: &str) -> Yaml {
    let text = fs::read_to_string(file(path)).unwrap();
    let mut documents = YamlLoader::load_from_str(&text).unwrap();
    assert_eq!(documents.len(), 1, "{path}");
    documents.remove(0)
}

fn text(yaml: &Yaml) -> String {
    match yaml {
        Yaml::Boolean(value) => value.to_string(),
        other => other.as_str().unwrap_or_else(|| panic!("no text: {other:?}")).to_owned(),
    }
}

/// A machine on which jobs run: what a runner has beside the repository.
struct Runner {
    sandbox: Sandbox,
    /// What expressions stand for.
    values: BTreeMap<String, String>,
    path: String,
}

impl Runner {
    /// With a repository whose change, merged into the base, has this instead of `EXTRA`.
    fn new(change: &str) -> Self {
        let sandbox = Sandbox::new();
        for folder in ["temp", "bin", "archive/x/bin"] {
            fs::create_dir_all(sandbox.path(folder)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(sandbox.path(name), text).unwrap();
        // As `gh` is called; its last word is the file.
        write(
            "bin/gh",
            "#!/bin/sh\necho \"$*\" >> \"$RUNNER_TEMP/gh\"\nfor last do :; done\ncp \"$last\" \"$RUNNER_TEMP/comment\"\n",
        );
        write("archive/x/bin/heaptally", &format!("#!/bin/sh\nexec '{HEAPTALLY}' \"$@\"\n"));
        write("work/Makefile", "bench: bench.c\n\tcc -g -O1 -o bench bench.c\n");
        write("work/bench.c", &BENCH.replace("EXTRA", ""));
        let script = format!(
            "chmod +x ../bin/gh ../archive/x/bin/heaptally && tar -czf ../heaptally.tar.gz -C ../archive x\n\
             git init -q -b main . && git config user.name x && git config user.email x@example.org\n\
             echo bench > .gitignore && git add . && git commit -qm base\n\
             git checkout -qb change && printf '%s' '{}' > bench.c && git commit -qam change --allow-empty\n\
             git checkout -q main && git merge -q --no-ff -m merge change",
            BENCH.replace("EXTRA", change)
        );
        let mut runner = Self { sandbox, values: BTreeMap::new(), path: String::new() };
        let inherited = std::env::var("PATH").unwrap();
        runner.path = format!("{}:{inherited}", runner.sandbox.path("bin").display());
        runner.bash(&script, &[]).expect(0);
        for (name, value) in [
            ("github.token", "token"),
            ("github.repository", "owner/name"),
            ("github.event.pull_request.number", "7"),
            ("github.event.pull_request.head.repo.full_name == github.repository", "true"),
            ("always()", "true"),
        ] {
            runner.values.insert(name.to_owned(), value.to_owned());
        }
        runner
    }

    fn archive(&self) -> PathBuf {
        self.sandbox.path("heaptally.tar.gz")
    }

    /// Runs a script as a runner does.
    fn bash(&self, script: &str, variables: &[(String, String)]) -> Outcome {
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        command.current_dir(self.sandbox.work("")).env("PATH", &self.path);
        command.env("HOME", self.sandbox.path("home")).env("XDG_CACHE_HOME", self.sandbox.path("cache"));
        for (name, file) in [
            ("RUNNER_TEMP", "temp"),
            ("GITHUB_PATH", "temp/github-path"),
            ("GITHUB_OUTPUT", "temp/github-output"),
            ("GITHUB_STEP_SUMMARY", "temp/summary"),
        ] {
            command.env(name, self.sandbox.path(file));
        }
        for name in ["HEAPTALLY_CONFIG", "CARGO_TARGET_DIR", "MAKEFLAGS"] {
            command.env_remove(name);
        }
        outcome(command.envs(variables.iter().cloned()))
    }

    /// A text with the values of its expressions.
    fn evaluated(&self, text: &str) -> String {
        let mut all = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${{") {
            let (expression, after) = behind.split_once("}}").unwrap();
            let value = self.values.get(expression.trim());
            all.push_str(before);
            all.push_str(value.unwrap_or_else(|| panic!("what is {expression:?}?")));
            rest = after;
        }
        all + rest
    }

    /// Runs the steps of the action with these inputs, and with the defaults of the others.
    fn act(&mut self, action: &Yaml, build: &str, program: &str, check_options: Option<&str>) -> Outcome {
        for (name, input) in action["inputs"].as_hash().unwrap() {
            let value = match name.as_str().unwrap() {
                "build" => build.to_owned(),
                "program" => program.to_owned(),
                "check-options" if check_options.is_some() => check_options.unwrap().to_owned(),
                "archive" => self.archive().display().to_string(),
                _ => self.evaluated(&text(&input["default"])),
            };
            self.values.insert(format!("inputs.{}", text(name)), value);
        }
        let comments =
            "inputs.comment == 'true' && github.event.pull_request.head.repo.full_name == github.repository";
        self.values.insert(comments.to_owned(), "true".to_owned());
        self.run(&action["runs"]["steps"], &[])
    }

    /// Runs the steps that are scripts, until one fails; those that always run, run all the same. Returns what became of
    /// the last one that failed, or else the last one.
    fn run(&mut self, steps: &Yaml, variables: &[(String, String)]) -> Outcome {
        let (mut last, mut has_failed) = (None, false);
        for step in steps.as_vec().unwrap() {
            let condition = step["if"].as_str().map(|condition| self.evaluated(condition));
            assert!(condition.as_deref().is_none_or(|value| value == "true"), "{condition:?}");
            let is_always = step["if"].as_str().is_some_and(|condition| condition.contains("always()"));
            let Some(script) = step["run"].as_str().filter(|_| !has_failed || is_always) else { continue };
            assert!(!script.contains("${{"), "an expression in a script runs what its value says: {script}");
            let mut variables = variables.to_vec();
            for (name, value) in step["env"].as_hash().into_iter().flatten() {
                let value = match name.as_str().unwrap() {
                    "ARCHIVE" if !text(value).contains("${{") => {
                        format!("file://{}", self.archive().display())
                    }
                    _ => self.evaluated(&text(value)),
                };
                variables.push((text(name), value));
            }
            for name in ["github-path", "github-output"] {
                fs::write(self.sandbox.path("temp").join(name), "").unwrap();
            }
            let done = self.bash(script, &variables);
            let said = |name| fs::read_to_string(self.sandbox.path("temp").join(name)).unwrap();
            for folder in said("github-path").lines() {
                self.path = format!("{folder}:{}", self.path);
            }
            for line in said("github-output").lines() {
                let (name, value) = line.split_once('=').unwrap();
                let name = format!("steps.{}.outputs.{name}", step["id"].as_str().unwrap());
                self.values.insert(name, value.to_owned());
            }
            has_failed |= done.code != Some(0);
            if !is_always {
                last = Some(done);
            }
        }
        last.unwrap()
    }

    fn temp(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path("temp").join(name)).unwrap()
    }
}

const ADDED: &str = "free(keep(malloc(8)))";

/// The comment names the line that was added.
#[track_caller]
fn names_the_line(runner: &Runner) {
    let comment = runner.temp("comment");
    for word in ["parse_name", "bench.c:4"] {
        assert!(comment.contains(word), "no {word:?} in {comment}");
    }
    assert_eq!(runner.temp("summary"), comment);
    assert!(runner.temp("gh").starts_with("pr comment 7 --edit-last --create-if-none --body-file "));
}

fn is_missing(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| Command::new(tool).arg("--version").output().is_err());
    missing.inspect(|tool| skip(&format!("there is no {tool}"))).is_some()
}

#[test]
fn the_workflow_names_the_line_that_was_added() {
    if is_missing(&["git", "make", "cc", "curl", "bash"]) {
        return;
    }
    let workflow = yaml("docs/ci/github.yml");
    let variables: Vec<(String, String)> =
        workflow["env"].as_hash().unwrap().iter().map(|(name, value)| (text(name), text(value))).collect();
    let steps = &workflow["jobs"]["compare"]["steps"];
    let mut runner = Runner::new(ADDED);
    runner.run(steps, &variables).expect(3);
    names_the_line(&runner);
    let mut runner = Runner::new("");
    runner.run(steps, &variables).expect(0);
    assert!(!runner.temp("comment").contains("parse_name"), "{}", runner.temp("comment"));
}

#[test]
fn the_action_names_the_line_that_was_added() {
    if is_missing(&["git", "make", "cc", "bash"]) {
        return;
    }
    let action = yaml("action.yml");
    for (change, code) in [(ADDED, 3), ("", 0)] {
        let mut runner = Runner::new(change);
        runner.act(&action, "make bench", "./bench 'two words'", None).expect(code);
        for (_, output) in action["outputs"].as_hash().unwrap() {
            assert!(!runner.evaluated(&text(&output["value"])).is_empty());
        }
        assert_eq!(runner.values["steps.check.outputs.code"], code.to_string());
        assert!(!runner.sandbox.path("temp/heaptally/base").exists(), "the base's folder was left behind");
        if code == 3 {
            names_the_line(&runner);
        }
    }
}

#[test]
fn the_action_fails_where_nothing_was_measured() {
    if is_missing(&["git", "make", "cc", "bash"]) {
        return;
    }
    let action = yaml("action.yml");
    for (build, program, code) in
        [("false", "./bench", 1), ("make bench", "./no-such-bench", 127), ("make bench", "false", 1)]
    {
        let mut runner = Runner::new(ADDED);
        runner.act(&action, build, program, None).expect(code);
        assert!(!runner.sandbox.path("temp/comment").exists());
    }
}

/// Nothing is commented then, and no report of an earlier check either: the job fails with the check's code.
#[test]
fn the_action_fails_with_the_checks_code_where_there_is_no_verdict() {
    if is_missing(&["git", "make", "cc", "bash"]) {
        return;
    }
    let action = yaml("action.yml");
    for (options, code) in [("--limits nowhere.toml", 4), ("--grow much", 2)] {
        let mut runner = Runner::new(ADDED);
        runner.act(&action, "make bench", "./bench", Some(options)).expect(code);
        assert!(!runner.sandbox.path("temp/comment").exists());
        assert_eq!(runner.values["steps.check.outputs.code"], code.to_string());
    }
    let mut runner = Runner::new(ADDED);
    fs::create_dir_all(runner.sandbox.path("temp/heaptally")).unwrap();
    fs::write(runner.sandbox.path("temp/heaptally/report.md"), "of an earlier one").unwrap();
    runner.act(&action, "make bench", "./bench", Some("--limits nowhere.toml")).expect(4);
    assert!(!runner.sandbox.path("temp/comment").exists());
    // A comment that cannot be made is said.
    let mut runner = Runner::new(ADDED);
    fs::write(runner.sandbox.path("bin/gh"), "#!/bin/sh\nexit 1\n").unwrap();
    runner.act(&action, "make bench", "./bench", None).expect(3);
}

#[test]
fn the_workflow_fails_with_the_checks_code_where_there_is_no_verdict() {
    if is_missing(&["git", "make", "cc", "curl", "bash"]) {
        return;
    }
    let workflow = yaml("docs/ci/github.yml");
    let mut variables: Vec<(String, String)> =
        workflow["env"].as_hash().unwrap().iter().map(|(name, value)| (text(name), text(value))).collect();
    // What was recorded is lost before it is checked.
    let lost = "./bench; echo lost > $RUNNER_TEMP/change.pb.gz".to_owned();
    variables
        .iter_mut()
        .filter(|(name, _)| name == "PROGRAM")
        .for_each(|(_, program)| program.clone_from(&lost));
    let mut runner = Runner::new(ADDED);
    runner.run(&workflow["jobs"]["compare"]["steps"], &variables).expect(4);
    assert!(!runner.sandbox.path("temp/comment").exists());
}

#[test]
fn the_job_of_gitlab_fails_for_the_line_that_was_added() {
    if is_missing(&["git", "make", "cc", "bash"]) {
        return;
    }
    let job = &yaml("docs/ci/gitlab.yml")["allocations"];
    let mut variables: Vec<(String, String)> =
        job["variables"].as_hash().unwrap().iter().map(|(name, value)| (text(name), text(value))).collect();
    let script: Vec<String> = job["script"].as_vec().unwrap().iter().map(text).collect();
    for (change, code) in [(ADDED, 3), ("", 0)] {
        let mut runner = Runner::new(change);
        runner.path = format!("{}:{}", runner.sandbox.path("archive/x/bin").display(), runner.path);
        let base = runner.bash("git rev-parse HEAD^1", &[]).output;
        variables.push(("CI_MERGE_REQUEST_DIFF_BASE_SHA".into(), base.trim().into()));
        variables.push(("CI_PROJECT_DIR".into(), runner.sandbox.work("").display().to_string()));
        let done = runner.bash(&script.join("\n"), &variables);
        assert_eq!(done.expect(code).output.contains("bench.c:4"), code == 3, "{done:#?}");
    }
}

#[test]
fn another_pid_namespace_needs_a_folder_for_the_segment() {
    let sandbox = Sandbox::new();
    let namespace = [&["unshare", "-pf", "--mount-proc"][..], &["unshare", "-Ur", "-pf", "--mount-proc"]];
    let may = |words: &&&[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("true");
        command.output().is_ok_and(|output| output.status.success())
    };
    let Some(namespace) = namespace.iter().find(may) else {
        // Containers often may not; that is no tool that could be installed.
        println!("skipped: no pid namespace can be made");
        return;
    };
    let script = ["sh", "-c", "exit 0"];
    let run = |options: &[&str]| {
        let words = ["run", "--follow-children"].iter().chain(options).chain(&["--"]);
        sandbox.call(words.chain(*namespace).chain(&script))
    };
    run(&[]).expect(0).says(&["1 process recorded", "could not be recorded (sh)", "--segment-dir"]);
    fs::create_dir(sandbox.work("segments")).unwrap();
    run(&["--segment-dir", "segments"]).expect(0).says(&["2 processes recorded"]);

    // With the command inside nothing is special.
    let mut command = Command::new(namespace[0]);
    command.args(&namespace[1..]).arg(HEAPTALLY).args(["run", "--strict", "-q", "-o", "a.pb.gz", "true"]);
    command.current_dir(sandbox.work("")).env("XDG_CACHE_HOME", sandbox.path("cache"));
    outcome(&mut command).expect(0);
}

#[test]
fn what_docs_name_is_there() {
    let docs = fs::read_to_string(file("docs/ci.md")).unwrap();
    for path in ["ci/github.yml", "ci/gitlab.yml", "../action.yml"] {
        assert!(docs.contains(&format!("]({path})")), "{path}");
        assert!(file("docs").join(path).is_file(), "{path}");
    }
    // An input that is documented is one, and the other way round.
    let action = yaml("action.yml");
    for (name, _) in action["inputs"].as_hash().unwrap() {
        assert!(docs.contains(&format!("| `{}` |", text(name))), "{name:?}");
    }
}
