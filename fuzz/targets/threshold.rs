//! Any text as a threshold file of Swift's package-benchmark; what stands before its first NUL is the benchmark's name.
#![no_main]

use heaptally_fuzz::seed;
use heaptally_profile::limit::threshold::{benchmark, read, update};
use heaptally_profile::limit::update::Measured;
use heaptally_profile::limit::{Metric, Per, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (name, text) = text.split_once('\0').unwrap_or(("Parse", &text));
    let _benchmark = benchmark(name);
    let limits = read(text, name, "f");
    let counts = Metric::ALL.map(|metric| (metric, Per::Iteration, Rate::new(7, 3))).to_vec();
    let measured = [Measured { window: name.to_owned(), counts }];
    for ratchet in [false, true] {
        let updated = update(Some(text), name, &measured, ratchet);
        let (new, edits) = match updated {
            Ok(updated) => updated,
            Err(error) => {
                let is_narrow = error.to_string().contains("cannot be moved to 2.33");
                assert!(limits.is_err() || is_narrow, "what is read is updated: {error}");
                continue;
            }
        };
        assert!(limits.is_ok(), "what is not read is not updated");
        assert!(!edits.is_empty() || new == text, "nothing was to change");
        let again = read(&new, name, "f").expect("what was written is read");
        let before = limits.as_ref().map_or(0, |limits| limits.gates.len());
        assert_eq!(again.gates.len(), before, "limits do not come or go");
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "Parse\0{\n  \"mallocCountTotal\" : 75,\n  \"syscalls\" : 12\n}",
        "look_up\0{\"mallocBytesCount\":{\"base\":100,\"tolerancePercentage\":4.5,\"min\":90,\"max\":110}}",
        "T.a b.p90.json\0{\"mallocFreeDelta\":{\"min\":1,\"max\":2},\"memoryLeakedBytes\":0,\"memoryLeaked\":9}",
        "x\0{\"mallocCountTotal\":1,\"mallocCountTotal\":{\"base\":1,\"tolerancePercentage\":1e-7}}",
        "\0[]",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
