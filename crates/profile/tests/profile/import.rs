//! Files that other tools wrote, their totals as these tools print them.
//!
//! One program (`prog.c` in its comment below) ran under heaptrack 1.4.0, valgrind 3.19, gperftools 2.10 and jemalloc
//! 5.3.0; others under Go 1.19 and dhat-rs 0.3. bpftrace's and dtrace's texts are written by hand as these print them.

#![expect(clippy::unwrap_used, reason = "what its tests share unwraps as they do")]

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use heaptally_profile::Error;
use heaptally_profile::frame::frames;
use heaptally_profile::import::{Addresses, Imported, importers, read};
use heaptally_profile::model::{Counts, Metric, Profile};
use heaptally_profile::pprof;
use proptest::prelude::*;

/// Every file that can be read.
const FIXTURES: [&str; 18] = [
    "bpftrace.txt",
    "bpftrace_keys.txt",
    "dhat_rs.json.gz",
    "dhat_valgrind.json.gz",
    "dtrace.txt",
    "go.pb.gz",
    "go.txt.gz",
    "gperftools.heap.gz",
    "gperftools.pb.gz",
    "heaptrack.folded.gz",
    "heaptrack.gz",
    "heaptrack.zst",
    "heaptrack_print.txt.gz",
    "heaptrack_print_whole.txt.gz",
    "heaptrack_raw.zst",
    "jemalloc.heap.gz",
    "jemalloc_live.heap.gz",
    "jemalloc_sampled.heap.gz",
];

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture").join(name)).unwrap()
}

/// The file as it is before it is packed.
fn unpacked(name: &str) -> Vec<u8> {
    let packed = fixture(name);
    let mut content = Vec::new();
    match name {
        // The content of the other one: it is the same recording.
        "heaptrack.zst" => return unpacked("heaptrack.gz"),
        _ if packed.starts_with(&[0x1f, 0x8b]) => {
            GzDecoder::new(packed.as_slice()).read_to_end(&mut content).unwrap();
        }
        _ => content = packed,
    }
    content
}

#[track_caller]
fn import(name: &str) -> Imported {
    let imported = read(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    imported.profile.validate().unwrap();
    imported
}

fn total(profile: &Profile) -> Counts {
    profile.window_counts()[0]
}

/// Allocations, bytes, live blocks and live bytes.
fn totals(profile: &Profile) -> [u64; 4] {
    let total = total(profile);
    [total.allocations, total.bytes, total.live(), total.live_bytes()]
}

/// A stack as `leaf:line ← caller:line`, and its counts.
fn stacks(profile: &Profile) -> Vec<(String, Counts)> {
    let text = |row: &heaptally_profile::model::Row| {
        let names: Vec<String> = frames(profile, &profile.stacks[row.stack])
            .map(|frame| match frame.line {
                0 => frame.name().unwrap_or("?").to_owned(),
                line => format!("{}:{line}", frame.name().unwrap_or("?")),
            })
            .collect();
        (names.join(" < "), row.counts)
    };
    profile.rows.iter().map(text).collect()
}

/// The allocations of stacks of which a part is this.
fn found(profile: &Profile, part: &str) -> u64 {
    stacks(profile)
        .iter()
        .filter(|(stack, _)| stack.contains(part))
        .map(|(_, counts)| counts.allocations)
        .sum()
}

fn format(profile: &Profile) -> &str {
    &profile.environment.origin.as_ref().unwrap().format
}

#[test]
fn a_heaptrack_recording_has_what_heaptrack_print_prints() {
    // calls to allocation functions: 260, leaked allocations: 22, total memory leaked: 13.00K, peak heap memory
    // consumption: 85.70K. valgrind: 62,795 B in 259 blocks; the library that heaptrack brings along allocates 72,704 B.
    for name in ["heaptrack.zst", "heaptrack.gz", "heaptrack_raw.zst"] {
        let profile = import(name).profile;
        let [allocations, bytes, live, live_bytes] = totals(&profile);
        assert_eq!((allocations, live), (260, 22), "{name}");
        assert_eq!((bytes, live_bytes), (62_795 + 72_704, 12_996), "{name}");
        assert_eq!(profile.windows[0].peak_bytes, Some(85_700), "{name}");
        assert!(profile.environment.lifetimes && profile.environment.knows(Metric::Bytes));
        assert_eq!(profile.environment.command, ["./prog"]);
        assert_eq!(format(&profile), "heaptrack recording");
    }
    let named = import("heaptrack.zst").profile;
    assert_eq!(import("heaptrack.zst").needs_symbols, Addresses::Named);
    let stacks = stacks(&named);
    let (_, leaf) =
        stacks.iter().find(|(stack, _)| stack.starts_with("leaf:6 < branch:7 < main:10 < ")).unwrap();
    assert_eq!((leaf.allocations, leaf.bytes, leaf.live()), (200, 39_900, 20));
    assert_eq!(found(&named, "grow:8 < main:10"), 50);
    assert_eq!(found(&named, "call_init:26 < "), 1, "inlined frames stand apart");
}

#[test]
fn a_raw_heaptrack_recording_has_addresses_in_its_modules() {
    let raw = import("heaptrack_raw.zst");
    assert_eq!(raw.needs_symbols, Addresses::Svma);
    let profile = raw.profile;
    let program = profile.modules.iter().position(|module| module.path == "/tmp/import-files/prog").unwrap();
    // `leaf` calls malloc at 0x11c1; `objdump` shows the return address 0x11c6.
    let leaf = |location: &heaptally_profile::model::Location| {
        location.module == Some(program) && location.address == 0x11c6
    };
    assert!(profile.locations.iter().any(leaf));
    assert!(profile.locations.iter().all(|location| location.module.is_some()));
}

#[test]
fn the_text_of_heaptrack_print_is_what_it_lists() {
    let whole = import("heaptrack_print_whole.txt.gz").profile;
    let merged = import("heaptrack_print.txt.gz").profile;
    for (profile, lost) in [(&whole, 0), (&merged, 2)] {
        assert_eq!(total(profile).allocations + profile.windows[0].lost, 260);
        assert_eq!(profile.windows[0].lost, lost);
        assert_eq!(found(profile, "leaf:6 < branch:7 < main:10"), 200);
        assert_eq!(found(profile, "grow:8 < main:10"), 50);
        assert!(!profile.environment.knows(Metric::Bytes) && !profile.environment.lifetimes);
        assert_eq!(total(profile).bytes, 0);
    }
}

#[test]
fn folded_stacks_are_those_of_heaptrack() {
    let profile = import("heaptrack.folded.gz").profile;
    assert_eq!(total(&profile).allocations, 260);
    assert_eq!(found(&profile, "leaf < branch < main"), 200);
    assert!(profile.functions.iter().any(|function| function.name == "leaf" && function.file == "prog.c"));
}

#[test]
fn dhat_has_what_valgrind_and_dhat_rs_print() {
    // Total: 62,795 bytes in 259 blocks; at t-gmax 12,996 bytes in 22; at t-end 8,900 bytes in 21.
    let profile = import("dhat_valgrind.json.gz").profile;
    assert_eq!(totals(&profile), [259, 62_795, 21, 8_900]);
    assert_eq!(profile.windows[0].peak_bytes, Some(12_996));
    assert_eq!(found(&profile, "malloc < leaf:6 < branch:7 < main:10"), 200);
    // Total: 505 bytes in 31 blocks; at t-gmax 315 bytes in 12 blocks; at t-end 295 bytes in 11 blocks.
    let profile = import("dhat_rs.json.gz").profile;
    assert_eq!(totals(&profile), [31, 505, 11, 295]);
    assert_eq!(profile.windows[0].peak_bytes, Some(315));
    assert_eq!(found(&profile, "dhr::main"), 31);
}

#[test]
fn go_profiles_have_what_go_tool_pprof_prints() {
    // -sample_index=alloc_objects, alloc_space, inuse_objects, inuse_space; the same for both forms.
    for name in ["go.pb.gz", "go.txt.gz"] {
        let imported = import(name);
        assert_eq!(totals(&imported.profile), [40_225, 8_167_989, 1_613, 5_545_805], "{name}");
        assert_eq!(imported.needs_symbols, Addresses::Named, "{name}");
        let origin = imported.profile.environment.origin.clone().unwrap();
        assert_eq!(origin.sampling, "one sample in 524288 bytes on average", "{name}");
        // fmt.Sprintf is flat 5,844.
        assert_eq!(
            found(&imported.profile, "fmt.Sprintf:220 < main.churn:9 < main.main:11"),
            5_844,
            "{name}"
        );
        assert_eq!(found(&imported.profile, "runtime.doInit:6306 < runtime.doInit:6306"), 293, "{name}");
    }
}

#[test]
fn gperftools_has_what_its_header_says() {
    // heap profile: 22: 12996 [259: 62795], in both forms.
    for name in ["gperftools.heap.gz", "gperftools.pb.gz"] {
        let imported = import(name);
        assert_eq!(totals(&imported.profile), [259, 62_795, 22, 12_996], "{name}");
        assert_eq!(imported.profile.environment.origin.unwrap().sampling, "", "{name}");
        assert_eq!(imported.profile.windows[0].lost, 0);
    }
    assert_eq!(import("gperftools.heap.gz").needs_symbols, Addresses::Mapped);
    let profile = import("gperftools.heap.gz").profile;
    assert!(
        profile
            .modules
            .iter()
            .any(|module| module.path == "/tmp/import-files/prog" && module.text_offset == 0x1000)
    );
}

#[test]
fn jemalloc_has_what_jeprof_prints() {
    let all = import("jemalloc.heap.gz").profile;
    assert_eq!(totals(&all), [260, 150_040, 23, 95_424]);
    assert_eq!(all.environment.origin.as_ref().unwrap().sampling, "");
    // jeprof adds up fractions, and rounds at the end: 247 and 17 objects, 151,753 B and 93,456 B.
    let sampled = import("jemalloc_sampled.heap.gz").profile;
    let near = |found: [u64; 4], expected: [u64; 4]| {
        found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 1 + expected / 100)
    };
    assert!(near(totals(&sampled), [247, 151_753, 17, 93_456]), "{:?}", totals(&sampled));
    assert_eq!(sampled.environment.origin.as_ref().unwrap().sampling, "one sample in 1024 bytes on average");
    // Without prof_accum: 25 objects, 95,436 B.
    let live = import("jemalloc_live.heap.gz").profile;
    assert!(live.environment.origin.as_ref().unwrap().live_only && !live.environment.lifetimes);
    assert!(near(totals(&live), [25, 95_436, 25, 95_436]), "{:?}", totals(&live));
}

#[test]
fn maps_of_bpftrace_are_joined_by_stack() {
    let profile = import("bpftrace.txt").profile;
    assert_eq!(totals(&profile)[..2], [251, 58_650]);
    assert_eq!(found(&profile, "malloc < leaf < branch < main"), 200);
    assert!(profile.environment.knows(Metric::Bytes) && !profile.environment.lifetimes);
    let keys = import("bpftrace_keys.txt").profile;
    assert_eq!((total(&keys).allocations, keys.windows[0].lost), (203, 5));
    assert_eq!(found(&keys, "malloc < leaf < ?"), 200);
    assert_eq!(found(&keys, "malloc < ? < Parser::name(int)"), 3);
    assert!(keys.modules.iter().any(|module| module.path == "/tmp/prog"));
}

#[test]
fn an_aggregation_of_dtrace() {
    let profile = import("dtrace.txt").profile;
    assert_eq!(total(&profile).allocations, 208);
    assert_eq!(found(&profile, "malloc < leaf < branch < main < _start"), 200);
    assert_eq!(found(&profile, "malloc < strdup < Parser::name(int, char) < ?"), 7);
    assert!(!profile.environment.knows(Metric::Bytes));
}

#[test]
fn every_profile_goes_through_heaptallys_own_file() {
    for name in FIXTURES {
        let imported = import(name);
        assert!(!imported.profile.environment.knows(Metric::Windows));
        let again = read(&pprof::write(&imported.profile)).unwrap();
        assert_eq!(again.profile, imported.profile, "{name}");
        assert_eq!(again.needs_symbols, Addresses::Named);
    }
}

#[test]
fn each_format_is_told_by_its_content_alone() {
    for name in FIXTURES {
        let content = unpacked(name);
        let sniffed: Vec<&str> = importers()
            .iter()
            .filter(|importer| (importer.sniff)(&content))
            .map(|importer| importer.name)
            .collect();
        if name.ends_with(".zst") && name != "heaptrack.zst" {
            continue;
        }
        assert_eq!(sniffed, [format(&import(name).profile)], "{name}");
    }
}

#[test]
fn what_is_nothing_of_all_is_said() {
    for bytes in [&b""[..], b"text\n", b"{}", b"1 2 3\n", b"a;b\n", b"\x7fELF\x02\x01"] {
        let error = read(bytes).unwrap_err();
        assert!(matches!(error, Error::Unrecognized { .. }), "{error}");
        assert!(error.to_string().contains("not a profile"), "{error}");
    }
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, words: &str) {
    let error = read(bytes.as_ref()).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn damage_is_told_with_its_place() {
    let edited = |name: &str, from: &str, to: &str| {
        let text = String::from_utf8(unpacked(name)).unwrap();
        assert!(text.contains(from), "{name}");
        text.replacen(from, to, 1)
    };
    refused(
        edited("heaptrack.gz", "\n+ 1\n", "\n+ zz\n"),
        "line 50: its allocation: \"zz\" is no hexadecimal number",
    );
    refused(edited("heaptrack.gz", "\nt 2 1\n", "\nt 2 ff\n"), "its parent trace is number 255");
    refused(edited("heaptrack.gz", "\n- 2\n", "\n- 1\n- 1\n"), "line 54: a free of a block that is not live");
    refused(edited("heaptrack.gz", "\ns 4 main\n", "\ns 44 main\n"), "its text is shorter than it says");
    refused(edited("heaptrack.gz", "v 10400 3", "v 10400 9"), "of format 9");
    refused(edited("dhat_valgrind.json.gz", "\"tb\":39900", "\"tb\":-1"), "line 11 column");
    refused(edited("dhat_valgrind.json.gz", "\"tbk\":200", "\"tbk\":2"), "program point 0: more is live");
    refused(
        edited("dhat_valgrind.json.gz", "\"fs\":[1,2,3,4]", "\"fs\":[1,2,3,4000]"),
        "program point 0: frame 4000 of 26",
    );
    refused(
        edited("dhat_valgrind.json.gz", "\"mode\":\"heap\"", "\"mode\":\"copy\""),
        "does not count allocations",
    );
    refused(
        edited("gperftools.heap.gz", "20:     3900 [", "20:     x900 ["),
        "line 4: \"x900\" is no number",
    );
    refused(edited("gperftools.heap.gz", "@ heapprofile", "@ growthz/1"), "line 1: \"growthz/1\"");
    refused(edited("jemalloc.heap.gz", "t0: 23:", "q: 23:"), "line 3: \"q\" is no thread");
    refused(
        edited("heaptrack_print.txt.gz", "\n200 calls with", "\n299 calls with"),
        "line 6: stacks of 300 calls among 201",
    );
    refused(edited("heaptrack_print.txt.gz", "calls to allocation functions: 260", "calls"), "cut short");
    refused(edited("bpftrace.txt", "]: 39900", "]: -39900"), "line 10: \"-39900\" is no number");
    refused(edited("bpftrace.txt", "]: 39900", "]:\n[1, 2) 3 |@@@|"), "line 10: expected a number");
    refused(edited("bpftrace.txt", "]: 39900", ""), "line 5: the key that begins here has no end");
    refused(edited("bpftrace.txt", "@calls", "@call_sizes").replace("@calls", "@sizes"), "bytes only");
    refused(edited("dtrace.txt", "                7\n", "\n"), "line 16: expected another frame");
    refused(edited("dtrace.txt", "              200\n", "99999999999999999999999\n"), "line 24: ");
    refused(fixture("go_cpu.pb.gz"), "samples/count, cpu/nanoseconds, and tells no number of allocations");
    refused("a;b 1\n".repeat(20) + "a;c x\n", "line 21: \"x\" is no number");
    refused("a;b 1\na;c x\na;b 1\n", "line 2: \"x\" is no number");
    refused("a;b 1\na\na;b 1\n", "line 2: expected a stack");
}

#[test]
fn a_number_that_is_too_large_is_said() {
    refused("a;b 99999999999999999999\na;b 1\n", "line 1: \"99999999999999999999\" is too large");
    refused(
        "a;b 1\n\n".repeat(30) + "a;b 18446744073709551616\n",
        "line 61: \"18446744073709551616\" is too large",
    );
}

#[test]
fn a_sum_that_is_too_large_is_said() {
    let too_much = "add up to more than 18446744073709551615";
    // Of one stack, of two, of an event that is lost; bytes of a map, of a recording, the peak.
    for text in [
        "a;b 18446744073709551614\na;b 7\n",
        "a;b 18446744073709551614\na;c 7\n",
        "a;b 18446744073709551614\n; 7\n",
        "@a[\n  f\n]: 1\n@bytes[\n  f\n]: 18446744073709551614\n@bytes[\n  f\n]: 7\n",
        "v 10400 3\ns 1 f\ni 1 0 1\nt 1 0\na fffffffffffffffe 1\na 7 1\n+ 0\n+ 1\n",
    ] {
        refused(text, too_much);
    }
    let profile = read(b"a;b 18446744073709551607\na;b 7\n").unwrap().profile;
    assert_eq!(total(&profile).allocations, u64::MAX - 1);
}

#[test]
fn stacks_of_one_frame_are_stacks() {
    let profile = read(b"main 40\nstd::thread::Inner::run 2\n").unwrap().profile;
    assert_eq!((total(&profile).allocations, found(&profile, "main")), (42, 40));
    for other in ["main 40\nand so on\n", "1 2\n3 4\n", "main\n"] {
        refused(other, "not a profile");
    }
}

#[test]
fn the_folded_form_of_a_comparison_is_told_as_such() {
    for text in ["main;f 1 2\nmain;g 0 7\nmain 3 3\n", "main;f 1 2\nmain;g 0 7\nmain;g 1\n", "main 1 2\n"] {
        refused(text, "each line has two numbers, those of a base and of a change");
    }
    // A function may end in a number.
    assert_eq!(found(&read(b"main;step 1 5\nmain;f 4\nmain;g 4\n").unwrap().profile, "step 1"), 5);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    for name in ["bpftrace.txt", "dhat_rs.json.gz", "go.txt.gz", "heaptrack.folded.gz", "heaptrack.gz"] {
        let marked = [b"\xef\xbb\xbf", unpacked(name).as_slice()].concat();
        assert_eq!(read(&marked).unwrap().profile, import(name).profile, "{name}");
    }
}

#[test]
fn other_packers_are_told_by_name() {
    for (magic, command) in [
        (&b"\xfd7zXZ\0\0\x04"[..], "xz -d"),
        (b"BZh91AY&SYxy", "bzip2 -d"),
        (b"BZh11AY&SYxy", "bzip2 -d"),
        (b"\x04\"M\x18dp", "lz4 -d"),
        (b"PK\x03\x04\x14", "unzip"),
        (b"7z\xbc\xaf'\x1c\0", "7z x"),
    ] {
        refused(magic, &format!("unpack it first: {command}"));
    }
    refused(b"BZh", "not a profile");
}

#[test]
fn damage_in_packed_files_is_told_with_its_byte() {
    for name in ["go.pb.gz", "heaptrack.zst"] {
        let whole = fixture(name);
        let len = whole.len();
        for cut in [len / 2, len - 5] {
            refused(&whole[..cut], &format!("at byte {cut} of {cut}: "));
        }
        let mut damaged = whole.clone();
        damaged[len / 2..len / 2 + 8].fill(0xff);
        let error = read(&damaged).unwrap_err().to_string();
        let (_, at) = error.split_once("at byte ").unwrap_or_else(|| panic!("{name}: {error}"));
        let at: usize = at.split(' ').next().unwrap().parse().unwrap();
        assert!((len / 2..=len).contains(&at), "{name}: {error}");
    }
}

#[test]
fn damage_in_an_unpacked_pprof_is_told_with_its_byte() {
    let whole = unpacked("go.pb.gz");
    for cut in [whole.len() / 10, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..cut], "protobuf: at byte ");
    }
    // A text that is no UTF-8, in a field whose place is known from its bytes.
    let name = b"main.churn";
    let at = whole.windows(name.len()).position(|bytes| bytes == name).unwrap();
    assert_eq!(whole[at - 2..at], [0x32, name.len() as u8]);
    let mut damaged = whole;
    damaged[at] = 0xff;
    refused(&damaged, &format!("protobuf: at byte {}: ", at - 2));
}

#[test]
fn cut_packed_files_are_damaged() {
    for name in ["heaptrack.zst", "heaptrack.gz", "go.pb.gz"] {
        let whole = fixture(name);
        for len in [4, 20, whole.len() / 2, whole.len() - 5] {
            let error = read(&whole[..len]).unwrap_err().to_string();
            assert!(error.contains("gzip") || error.contains("zstd"), "{name} {len}: {error}");
        }
    }
}

#[test]
fn a_file_that_tells_endless_stacks_is_too_large() {
    let mut text = "v 10400 3\ns 1 f\ni 1 0 1\nt 1 0\n".to_owned();
    for at in 1..20_000 {
        text.push_str(&format!("t 1 {at:x}\na 1 {at:x}\n+ {:x}\n", at - 1));
    }
    assert!(matches!(read(text.as_bytes()), Err(Error::TooLarge { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever becomes of a file, it is read or refused, and what is read is whole.
    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0..FIXTURES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any::<u8>()), 1..6),
    ) {
        let mut content = unpacked(FIXTURES[which]);
        for (at, kind, byte) in edits {
            if content.is_empty() { break; }
            let at = at.index(content.len());
            match kind {
                0 => content[at] = byte,
                1 => content.truncate(at),
                2 => { content.remove(at); }
                3 => content.splice(at..at, *b"99999999999999999999").for_each(drop),
                _ => {
                    let end = content.len().min(at + 40);
                    let part = content[at..end].to_vec();
                    content.splice(at..at, part).for_each(drop);
                }
            }
        }
        if let Ok(imported) = read(&content) {
            let profile = imported.profile;
            prop_assert!(profile.validate().is_ok());
            prop_assert_eq!(read(&pprof::write(&profile)).map(|own| own.profile.rows.len()), Ok(profile.rows.len()));
        }
        // Also where the beginning is that of another format.
        for importer in importers() {
            let _ = (importer.read)(&content);
        }
    }
}
