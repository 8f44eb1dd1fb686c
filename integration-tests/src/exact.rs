//! Programs of the system, which nobody wrote for these tests, and how exactly the recorder saw them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::counter::{Calls, Counter};
use crate::report::{Report, Row};
use crate::run::{Outcome, Run, report_json};
use crate::scratch::Scratch;
use crate::tool;

/// A program of the system with something to do.
#[derive(Debug)]
pub struct Foreign {
    /// The name in tests and tables.
    pub name: &'static str,
    /// What it needs to be there.
    needs: &'static [&'static str],
    /// The functions that it calls more or less often by the addresses that it gets: they tell nothing.
    varying: &'static [&'static str],
    /// Writes its input, and says how to call it.
    prepare: fn(&Scratch) -> Option<Vec<String>>,
}

/// What was measured of one.
#[derive(Debug)]
pub struct Measure {
    /// The name.
    pub name: &'static str,
    /// The calls that the recorder saw.
    pub events: u64,
    /// The rows of the window.
    pub stacks: usize,
    /// The calls whose stacks are complete.
    pub complete: u64,
    /// The calls that the witness saw behind the recorder.
    pub behind: Calls,
    /// The calls that the witness saw without the recorder.
    pub alone: Calls,
    /// Whether two runs without the recorder made the same calls, but for those that are known to vary.
    pub is_deterministic: bool,
    /// Whether the run under the recorder made the same calls too, but for those.
    pub is_same_calls: bool,
    /// Whether output and exit code were as without the recorder.
    pub is_same_output: bool,
    /// The losses as text; empty when nothing was lost.
    pub losses: String,
    /// Allocations from inside the recorder.
    pub reentrant: u64,
    /// The incomplete stacks, for messages.
    pub incomplete: String,
}

/// GCC has hash tables of pointers, whose growth depends on where the pointers point.
const HASHED: &[&str] = &["calloc", "free"];

/// All programs.
pub const PROGRAMS: [Foreign; 8] = [
    Foreign { name: "python3", needs: &["python3"], varying: &[], prepare: python },
    Foreign { name: "perl", needs: &["perl"], varying: &[], prepare: perl },
    Foreign { name: "sqlite3", needs: &["sqlite3"], varying: &[], prepare: sqlite },
    Foreign { name: "cc1", needs: &["gcc"], varying: HASHED, prepare: cc1 },
    Foreign { name: "cc1plus", needs: &["g++"], varying: HASHED, prepare: cc1plus },
    Foreign { name: "git", needs: &["git"], varying: &[], prepare: git },
    Foreign { name: "jq", needs: &["jq"], varying: &[], prepare: jq },
    Foreign { name: "xz", needs: &["xz"], varying: &[], prepare: xz },
];

impl Foreign {
    /// The program called `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn named(name: &str) -> &'static Self {
        PROGRAMS.iter().find(|program| program.name == name).unwrap_or_else(|| panic!("no program {name}"))
    }

    /// Its command line, once its input is written to `scratch`. `None` where the system has it not.
    pub fn prepare(&self, scratch: &Scratch) -> Option<Vec<String>> {
        if !tool::have(self.needs) {
            return None;
        }
        (self.prepare)(scratch)
    }

    /// A run of `command` in `scratch` which is as repeatable as the program allows.
    pub fn run(&self, scratch: &Scratch, command: &[String]) -> Run {
        Run::new(scratch, command)
            .environment("PYTHONHASHSEED", "0")
            .environment("PYTHONDONTWRITEBYTECODE", "1")
            .environment("PERL_HASH_SEED", "0")
            .environment("PERL_PERTURB_KEYS", "0")
            .environment("LC_ALL", "C")
            .environment("HOME", scratch.folder())
            .environment("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// Runs it twice alone and once under the recorder. `None` where the system has it not.
    pub fn measure(&self, counter: &Counter) -> Option<Measure> {
        let scratch = Scratch::new();
        let command = self.prepare(&scratch)?;
        let program = Path::new(&command[0]);
        let witness = |run: Run, name: &str| counter.witness(run, &format!("{}-{name}", self.name), program);
        let (_, again) = witness(self.run(&scratch, &command).unrecorded(), "first");
        let (plain, alone) = witness(self.run(&scratch, &command).unrecorded(), "second");
        let plain_file = compiled(&scratch);
        let (recorded, behind) = witness(self.run(&scratch, &command).without_frames(), "recorded");
        let report = recorded.report();
        let window = report.window("process");
        let is_whole = window.rows.iter().all(Row::is_complete);
        Some(Measure {
            name: self.name,
            events: window.calls(),
            stacks: window.rows.len(),
            complete: window.complete_calls(),
            is_deterministic: alone.without(self.varying) == again.without(self.varying),
            is_same_calls: behind.without(self.varying) == alone.without(self.varying),
            behind,
            alone,
            is_same_output: is_same(&plain, &recorded) && plain_file == compiled(&scratch),
            losses: report.losses_text(),
            reentrant: report.loss("reentrant"),
            incomplete: if is_whole { String::new() } else { incomplete(&recorded) },
        })
    }
}

impl Measure {
    /// Whether the recorder and the witness behind it saw the same number of calls.
    pub fn is_counted(&self) -> bool {
        self.events == self.behind.allocations()
    }

    /// The share of calls with complete stacks.
    pub fn complete_share(&self) -> f64 {
        let as_number = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
        if self.events == 0 { 0.0 } else { as_number(self.complete) / as_number(self.events) }
    }
}

fn is_same(plain: &Outcome, recorded: &Outcome) -> bool {
    plain.code == recorded.code && plain.stdout == recorded.stdout
}

/// Some of the incomplete stacks as text.
fn incomplete(outcome: &Outcome) -> String {
    let document = report_json(&outcome.profile);
    let report = Report::parse(&document).unwrap_or_else(|error| panic!("report: {error}"));
    let rows = report.window("process").rows.iter().filter(|row| !row.is_complete()).take(10);
    rows.map(Row::text).collect::<Vec<_>>().join("\n")
}

/// The file that the compilers write, where there is one. It is removed.
fn compiled(scratch: &Scratch) -> Option<Vec<u8>> {
    let path = scratch.path("job.s");
    let content = fs::read(&path).ok();
    // A run that writes none is not to find the one before.
    let _ = fs::remove_file(path);
    content
}

fn words<const N: usize>(first: PathBuf, rest: [&str; N]) -> Vec<String> {
    let mut words = vec![first.to_string_lossy().into_owned()];
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words
}

fn python(scratch: &Scratch) -> Option<Vec<String>> {
    let script = "\
import json, re, collections
def build(n):
    return {'k%d' % i: [{'id': i, 'name': 'x' * (i % 600), 'tags': list(range(i % 70))} for _ in range(3)] for i in range(n)}
total = 0
for round in range(12):
    text = json.dumps(build(300), indent=1)
    data = json.loads(text)
    words = collections.Counter(re.findall(r'[a-z]+', text))
    total += len(text) + sum(len(v) for v in data.values()) + words['name']
    big = bytearray(text.encode()) * 3
    big.extend(b'y' * 70000)
    total += len(bytes(big))
print(total)
";
    scratch.write("job.py", script);
    Some(words(tool::system("python3")?, ["-I", "-S", "job.py"]))
}

fn perl(scratch: &Scratch) -> Option<Vec<String>> {
    let script = "\
use strict; my %h; my $sum = 0;
for my $round (1..4) {
  for my $i (1..4000) { push @{$h{\"key\" . ($i % 500)}}, join(',', map { $_ * $i } 1..($i % 9)); }
  for my $k (sort keys %h) { for my $s (@{$h{$k}}) { my @p = split /,/, $s; $sum += scalar(@p); (my $t = $s) =~ s/(\\d)(\\d)/$2$1/g; $sum += length $t; } }
  delete @h{grep { /7$/ } keys %h};
}
print \"$sum\\n\";
";
    scratch.write("job.pl", script);
    Some(words(tool::system("perl")?, ["job.pl"]))
}

fn sqlite(scratch: &Scratch) -> Option<Vec<String>> {
    let script = "\
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, 'text ' || (i * 7919 % 10007), i / 3.0 from n;
create index tb on t(b);
select count(*), sum(a), max(b) from t;
select b, count(*) from t group by b having count(*) > 1 order by 2 desc, 1 limit 20;
select a, (select group_concat(b, '-') from t x where x.a between t.a and t.a + 5) from t where a % 97 = 0 limit 100;
update t set b = upper(b) where a % 3 = 0;
delete from t where a % 5 = 0;
select count(*) from t a join t b on a.a = b.a + 1;
";
    scratch.write("job.sql", script);
    Some(words(tool::system("sqlite3")?, ["-batch", "-init", "/dev/null", ":memory:", ".read job.sql"]))
}

fn cc1(scratch: &Scratch) -> Option<Vec<String>> {
    let mut source = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n#include <pthread.h>\n\
         #include <sys/socket.h>\n#include <netinet/in.h>\n#include <signal.h>\n#include <time.h>\n",
    );
    for number in 0..150 {
        source.push_str(&format!(
            "struct s{number} {{ int a[{}]; double d; }};\n\
             static double f{number}(struct s{number} *s, int n) {{ double r = 0; for (int i = 0; i < n; i++) {{ \
             if (i % 3 == 0) r += s->a[i % 4] * s->d; else switch (i & 7) {{ case 1: r -= sin(r); break; \
             case 2: r *= 2; default: r += (double)strlen(\"abc\"); }} }} return r; }}\n\
             double g{number}(int n) {{ struct s{number} s; memset(&s, 0, sizeof s); return f{number}(&s, n); }}\n",
            4 + number % 5
        ));
    }
    scratch.write("job.c", source);
    scratch.shell("gcc -E -o job.i job.c");
    Some(words(
        tool::compiler_part("cc1")?,
        ["-quiet", "-fpreprocessed", "-O2", "-g", "job.i", "-o", "job.s"],
    ))
}

fn cc1plus(scratch: &Scratch) -> Option<Vec<String>> {
    let source = "\
#include <vector>\n#include <map>\n#include <string>\n#include <iostream>\n#include <algorithm>\n#include <memory>\n\
std::map<std::string, std::vector<int>> table;\n\
int main() { for (int i = 0; i < 100; i++) table[std::to_string(i)].push_back(i);\n\
  for (auto &[name, list] : table) { std::sort(list.begin(), list.end()); std::cout << name << list.size() << '\\n'; }\n\
  auto p = std::make_shared<std::string>(\"x\"); std::cout << *p << std::endl; }\n";
    scratch.write("job.cpp", source);
    scratch.shell("g++ -E -o job.ii job.cpp");
    Some(words(tool::compiler_part("cc1plus")?, ["-quiet", "-fpreprocessed", "-O1", "job.ii", "-o", "job.s"]))
}

fn git(scratch: &Scratch) -> Option<Vec<String>> {
    let mut stream = String::new();
    for number in 0..50 {
        let text: String = (0..200)
            .map(|line| format!("line {line} {}\n", if line % 7 == number % 7 { number } else { 0 }))
            .collect();
        let message = format!("commit {number}\n");
        stream.push_str(&format!(
            "commit refs/heads/main\nmark :{}\nauthor A <a@example.org> {} +0000\ncommitter A <a@example.org> {} +0000\n\
             data {}\n{message}M 100644 inline file{}.txt\ndata {}\n{text}\n",
            number + 1,
            1_700_000_000 + number,
            1_700_000_000 + number,
            message.len(),
            number % 5,
            text.len()
        ));
    }
    scratch.write("stream", stream);
    let program = tool::system("git")?;
    scratch.shell(&format!(
        "HOME=$PWD GIT_CONFIG_NOSYSTEM=1; export HOME GIT_CONFIG_NOSYSTEM; git={}; $git init -q -b main repository && \
         cd repository && $git fast-import --quiet < ../stream",
        program.display()
    ));
    Some(words(program, ["-C", "repository", "--no-pager", "log", "-p", "--stat", "--no-color", "main"]))
}

fn jq(scratch: &Scratch) -> Option<Vec<String>> {
    let records: Vec<String> = (0..3000)
        .map(|i| format!("{{\"id\":{i},\"name\":\"n{}\",\"list\":[{},{},{}]}}", i % 37, i, i * 2, i * 3))
        .collect();
    scratch.write("job.json", format!("[{}]", records.join(",")));
    let filter = "group_by(.name) | map({name: .[0].name, sum: (map(.list | add) | add)}) | sort_by(.sum)";
    Some(words(tool::system("jq")?, [filter, "job.json"]))
}

fn xz(scratch: &Scratch) -> Option<Vec<String>> {
    let text: String = (0..60_000_u64).map(|i| format!("{} ", i.wrapping_mul(i) % 9973)).collect();
    scratch.write("job.txt", text);
    Some(words(tool::system("xz")?, ["-T1", "-6", "-k", "-c", "job.txt"]))
}
