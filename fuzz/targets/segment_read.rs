//! Any bytes as a segment.
#![no_main]

use std::cell::LazyCell;

use heaptally_fuzz::{seed, segment};
use heaptally_segment::read::read;
use libfuzzer_sys::fuzz_target;
use segment::SegmentFile;

thread_local! {
    static FILE: LazyCell<SegmentFile> =
        LazyCell::new(|| SegmentFile::new().expect("the system has files in memory"));
}

fuzz_target!(init: seed::plant(segment::inputs), |bytes: &[u8]| {
    FILE.with(|file| {
        let file = file.fill(bytes).expect("a file in memory can be written");
        if let Ok(snapshot) = read(file) {
            segment::check(&snapshot);
        }
    });
});
