//! What the programs are given to do that are one process.

use std::path::PathBuf;

use crate::scratch::Scratch;
use crate::tool;

pub(super) fn words<const N: usize>(first: PathBuf, rest: [&str; N]) -> Vec<String> {
    let mut words = vec![first.to_string_lossy().into_owned()];
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words
}

pub(super) fn python(scratch: &Scratch) -> Option<Vec<String>> {
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

pub(super) fn perl(scratch: &Scratch) -> Option<Vec<String>> {
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

pub(super) fn sqlite(scratch: &Scratch) -> Option<Vec<String>> {
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

pub(super) fn cc1(scratch: &Scratch) -> Option<Vec<String>> {
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

pub(super) fn cc1plus(scratch: &Scratch) -> Option<Vec<String>> {
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

/// Makes a repository of 50 commits; the path of git.
pub(super) fn repository(scratch: &Scratch) -> Option<PathBuf> {
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
    Some(program)
}

pub(super) fn git(scratch: &Scratch) -> Option<Vec<String>> {
    let program = repository(scratch)?;
    Some(words(program, ["-C", "repository", "--no-pager", "log", "-p", "--stat", "--no-color", "main"]))
}

pub(super) fn jq(scratch: &Scratch) -> Option<Vec<String>> {
    let records: Vec<String> = (0..3000)
        .map(|i| format!("{{\"id\":{i},\"name\":\"n{}\",\"list\":[{},{},{}]}}", i % 37, i, i * 2, i * 3))
        .collect();
    scratch.write("job.json", format!("[{}]", records.join(",")));
    let filter = "group_by(.name) | map({name: .[0].name, sum: (map(.list | add) | add)}) | sort_by(.sum)";
    Some(words(tool::system("jq")?, [filter, "job.json"]))
}

pub(super) fn xz(scratch: &Scratch) -> Option<Vec<String>> {
    let text: String = (0..60_000_u64).map(|i| format!("{} ", i.wrapping_mul(i) % 9973)).collect();
    scratch.write("job.txt", text);
    Some(words(tool::system("xz")?, ["-T1", "-6", "-k", "-c", "job.txt"]))
}

/// Its threads share the work by who comes first.
pub(super) fn pigz(scratch: &Scratch) -> Option<Vec<String>> {
    scratch.write("job.txt", numbers());
    Some(words(tool::system("pigz")?, ["-p4", "-k", "-c", "job.txt"]))
}

pub(super) fn zstd(scratch: &Scratch) -> Option<Vec<String>> {
    scratch.write("job.txt", numbers());
    Some(words(tool::system("zstd")?, ["-T4", "-q", "-k", "-c", "job.txt"]))
}

/// As many rounds as fit into a second.
pub(super) fn openssl(_: &Scratch) -> Option<Vec<String>> {
    let options = ["speed", "-seconds", "1", "-bytes", "64", "sha256", "aes-128-cbc"];
    Some(words(tool::system("openssl")?, options))
}

/// JavaScript that is compiled while it runs, and threads that help with it.
pub(super) fn node(scratch: &Scratch) -> Option<Vec<String>> {
    let script = "\
const zlib = require('zlib'), crypto = require('crypto');
let sum = 0;
for (let i = 0; i < 200; i++) {
  const text = JSON.stringify(Array.from({length: 300}, (_, k) => ({id: k * i, name: 'n' + (k % 37)})));
  sum += JSON.parse(text).length + zlib.gunzipSync(zlib.gzipSync(text)).length;
  sum += crypto.createHash('sha256').update(text).digest()[0];
}
zlib.gzip('x'.repeat(100000), (error, data) => console.log(sum, error, zlib.gunzipSync(data).length));
";
    scratch.write("job.js", script);
    Some(words(tool::system("node")?, ["job.js"]))
}

pub(super) fn convert(_: &Scratch) -> Option<Vec<String>> {
    let options = ["-size", "300x300", "gradient:red-blue", "-blur", "0x3", "-resize", "50%", "ppm:-"];
    Some(words(tool::system("convert")?, options))
}

pub(super) fn ffmpeg(_: &Scratch) -> Option<Vec<String>> {
    let options = "-v error -f lavfi -i testsrc=size=320x240:rate=25:duration=2 -c:v mpeg4 -f avi -fflags +bitexact \
                   -flags:v +bitexact -";
    let mut command = vec![tool::system("ffmpeg")?.to_string_lossy().into_owned()];
    command.extend(options.split_ascii_whitespace().map(str::to_owned));
    Some(command)
}

/// Some megabytes of text.
fn numbers() -> String {
    (0..400_000_u64).map(|i| format!("{} ", i.wrapping_mul(i) % 9973)).collect()
}
