//! Any text as a file of limits: what is read says where it stands, and an update of it is read again with what it wrote.
#![no_main]

use heaptally_fuzz::seed;
use heaptally_profile::limit::read::read;
use heaptally_profile::limit::update::{Measured, Update, update};
use heaptally_profile::limit::{Metric, Origin, Per, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(limits) = read(&text, "limits.toml") else { return };
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    for gate in &limits.gates {
        let Origin::File { line, .. } = &gate.origin else { panic!("a limit of a file says where it stands") };
        assert!((1..=lines).contains(&(*line as usize)), "line {line} of {lines}");
        let _fits = gate.window.fits("parse header");
    }
    let counts = |number| {
        Metric::ALL.into_iter().flat_map(|metric| [Per::Iteration, Per::Run].map(|per| (metric, per, number))).collect()
    };
    let measured = [
        Measured { window: "parse".into(), counts: counts(Rate::new(7, 3)) },
        Measured { window: "look up \"x\"".into(), counts: counts(Rate::new(12, 1)) },
    ];
    for ratchet in [false, true] {
        let how = Update { ratchet, metrics: vec![Metric::Allocs, Metric::Bytes] };
        let Ok((new, edits)) = update(&text, &measured, &how) else { continue };
        read(&new, "limits.toml").expect("what was written is read");
        if edits.is_empty() {
            assert_eq!(new, text, "nothing was to change");
        }
        let (again, none) = update(&new, &measured, &how).expect("it is updated again");
        assert!(none.is_empty() && again == new, "an update that is made again changes nothing");
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "# reviewed\n[window.\"pars*\"] # of Bea\nallocs = 75 # tight\nbytes = { max = 4_114, soft_grow = \"10 %\" }\n\
         live.min = 0\ntotal.allocs = { max = 75000 }\nunstable = true\n",
        "[window.parse]\nstacks = { new = \"fail\", soft_grow = 0.5, under = \"^parse\", root = [\"a\", \"b\"] }\n",
        "[measurement]\nlost = \"0 %\"\ncut = \"0.5 %\"\n\n[[ignore]]\nwindow = \"*\"\nstack = [\"a\"]\nreason = \"r\"\n\
         until = 2027-01-31\n",
        "window = { b = { allocs = 9, live_bytes = \"1.5\" } }\n",
        "[window]\na.allocs = 0x10\n\"b\\u0020\".temporary.shrink = '3%'\r\n",
        "",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
