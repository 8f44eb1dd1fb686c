//! `merge`.
//!
//! The shards are the demonstration's profile, twice: their sum has each number twice, and twice the iterations.

use std::fs;

use heaptally_profile::model::Profile;
use heaptally_profile::pprof;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "merge", option: "FILE", check: file },
    Row { command: "merge", option: "--output", check: output },
    Row { command: "merge", option: "--quiet", check: quiet },
];

fn read(bench: &Bench, name: &str) -> Profile {
    pprof::read(&fs::read(bench.sandbox.work(name)).unwrap()).unwrap()
}

fn total(profile: &Profile) -> [u64; 3] {
    let of = |value: fn(&heaptally_profile::model::Counts) -> u64| {
        profile.rows.iter().map(|row| value(&row.counts)).sum()
    };
    let iterations = profile.windows.iter().map(|window| window.iterations).sum();
    [of(|counts| counts.allocations), of(|counts| counts.bytes), iterations]
}

fn file(bench: &Bench) {
    let shard = bench.profile();
    fs::copy(bench.sandbox.work(shard), bench.sandbox.work("other.pb.gz")).unwrap();
    bench.output(&["merge", shard, "-o", "one.pb.gz"]);
    bench.output(&["merge", shard, "other.pb.gz", shard, "-o", "three.pb.gz"]);
    let one = total(&read(bench, shard));
    assert_eq!(total(&read(bench, "one.pb.gz")), one);
    assert_eq!(total(&read(bench, "three.pb.gz")), one.map(|value| 3 * value));
    // Per iteration nothing differs.
    assert!(bench.output(&["diff", shard, "three.pb.gz"]).starts_with("no difference"));
    bench.call(&["merge", "-o", "none.pb.gz"]).expect(2);
    bench.call(&["merge", shard, "nowhere.pb.gz", "-o", "none.pb.gz"]).expect(4).says(&["`nowhere.pb.gz`"]);
    bench.output(&["run", "--quiet", "--no-lifetimes", "-o", "unlike.pb.gz", "true"]);
    let outcome = bench.call(&["merge", shard, "other.pb.gz", "unlike.pb.gz", "-o", "none.pb.gz"]);
    outcome.expect(4).says(&["cannot add `unlike.pb.gz` to `demo.pb.gz`", "whether blocks were followed"]);
    assert!(!bench.sandbox.work("none.pb.gz").exists());
}

fn output(bench: &Bench) {
    let shard = bench.profile();
    let before = fs::read(bench.sandbox.work(shard)).unwrap();
    std::os::unix::fs::symlink("demo.pb.gz", bench.sandbox.work("link.pb.gz")).unwrap();
    fs::hard_link(bench.sandbox.work(shard), bench.sandbox.work("same.pb.gz")).unwrap();
    for place in [shard, "./demo.pb.gz", "link.pb.gz", "same.pb.gz"] {
        let outcome = bench.call(&["merge", shard, "-o", place]);
        outcome.expect(2).says(&["it is one of the profiles to add", "name another file with -o"]);
    }
    assert_eq!(fs::read(bench.sandbox.work(shard)).unwrap(), before);
    bench.call(&["merge", shard, "-o", "no folder/sum.pb.gz"]).expect(4).says(&["cannot write the sum"]);
    bench.output(&["merge", shard, "-o", "sum.pb.gz"]);
    bench.output(&["merge", shard, "--output", "again.pb.gz"]);
    let sum = |name: &str| fs::read(bench.sandbox.work(name)).unwrap();
    assert_eq!(sum("sum.pb.gz"), sum("again.pb.gz"));
    bench.call(&["merge", shard]).expect(2);
}

fn quiet(bench: &Bench) {
    let shard = bench.profile();
    let outcome = bench.call(&["merge", shard, shard, "-o", "sum.pb.gz"]);
    outcome.expect(0).says(&["2 files: 2 windows, 3,000 allocations", "`sum.pb.gz`"]);
    assert_eq!(bench.call(&["merge", "--quiet", shard, "-o", "sum.pb.gz"]).expect(0).errors, "");
}
