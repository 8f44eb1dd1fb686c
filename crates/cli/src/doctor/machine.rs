//! Whether programs can be recorded on this machine at all.

use std::env;
use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::finding::{Finding, size};
use super::{glibc, kernel, recording};
use crate::message::quote;
use crate::program::preloaded_sanitizer;

/// The size that the recorder's tables take of a limited address space: one part in so many.
const TABLE_SHARE: u64 = 16;
/// Below this the tables are too small for a program of some size, in bytes.
const SMALL_ADDRESS_SPACE: u64 = 4 << 30;
/// Where distributions put separate debug files.
pub(crate) const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// Looks at the machine.
pub(crate) fn examine() -> Vec<Finding> {
    let mut findings = vec![architecture()];
    findings.extend(kernel::examine());
    findings.push(glibc::of_this_machine());
    findings.push(page_size());
    findings.extend(limits());
    findings.push(seccomp());
    findings.extend(environment());
    findings.push(debug_folder());
    findings.push(demanglers());
    findings.extend(recording::examine());
    findings
}

fn architecture() -> Finding {
    match env::consts::ARCH {
        "x86_64" => Finding::ok("architecture", "x86_64"),
        other => Finding::problem(
            "architecture",
            format!("{other} is not supported"),
            "record on an x86-64 machine, the only kind for now",
        ),
    }
}

fn page_size() -> Finding {
    match rustix::param::page_size() {
        4096 => Finding::ok("page_size", "4 KiB"),
        other => Finding::problem(
            "page_size",
            format!("pages have {other} bytes, and the segment's layout knows 4096 only"),
            "use a kernel with pages of 4 KiB",
        ),
    }
}

fn limits() -> Vec<Finding> {
    let address_space = match getrlimit(Resource::As).current {
        None => Finding::ok("address_space_limit", "none (ulimit -v)"),
        Some(limit) => {
            let found = format!(
                "{} (ulimit -v): the recorder's tables shrink to {}",
                size(limit),
                size(limit / TABLE_SHARE)
            );
            let advice =
                "raise it (ulimit -v unlimited), or see whether the report says that a table was full";
            if limit < SMALL_ADDRESS_SPACE {
                Finding::warning("address_space_limit", found, advice)
            } else {
                Finding::note("address_space_limit", found).advise(advice)
            }
        }
    };
    let locked = match getrlimit(Resource::Memlock).current {
        None => Finding::ok("locked_memory_limit", "none (ulimit -l)"),
        Some(limit) => Finding::ok(
            "locked_memory_limit",
            format!("{} (ulimit -l): matters only to a program that calls mlockall", size(limit)),
        ),
    };
    let file_size = match getrlimit(Resource::Fsize).current {
        None => Finding::ok("file_size_limit", "none (ulimit -f)"),
        // Whether the segment can be made with it, the recording of the demonstration shows.
        Some(limit) => Finding::note("file_size_limit", format!("{} (ulimit -f)", size(limit)))
            .advise("raise it (ulimit -f unlimited) if the segment cannot be made"),
    };
    vec![address_space, locked, file_size]
}

fn seccomp() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
    match mode {
        Some("0") => Finding::ok("seccomp", "no filter of system calls"),
        Some("2") => Finding::note(
            "seccomp",
            "system calls are filtered (a container or sandbox); what is needed was tried",
        ),
        Some(mode) => Finding::note("seccomp", format!("mode {mode:?}")),
        None => Finding::note("seccomp", "/proc/self/status does not tell whether system calls are filtered"),
    }
}

/// Variables that the loader heeds.
fn environment() -> Vec<Finding> {
    let value = |name| env::var_os(name).filter(|value| !value.is_empty());
    let list = value("LD_PRELOAD");
    let sanitizer = list.as_deref().and_then(preloaded_sanitizer);
    let preload = match (list.as_deref(), sanitizer) {
        (None, _) => Finding::ok("ld_preload", "LD_PRELOAD is not set"),
        (Some(_), Some((library, sanitizer))) => Finding::problem(
            "ld_preload",
            format!("LD_PRELOAD names {}, the library of {sanitizer}, which must come first", quote(library)),
            "take it out of LD_PRELOAD",
        ),
        (Some(list), None) => Finding::note(
            "ld_preload",
            format!("LD_PRELOAD is {}: the recorder is put before it", quote(list)),
        )
        .advise("unset LD_PRELOAD, unless the program needs it"),
    };
    let audit = match value("LD_AUDIT") {
        None => Finding::ok("ld_audit", "LD_AUDIT is not set"),
        Some(list) => Finding::warning(
            "ld_audit",
            format!("LD_AUDIT is {}: such a library can lead calls of malloc past the recorder", quote(list)),
            "unset LD_AUDIT",
        ),
    };
    vec![preload, audit]
}

fn debug_folder() -> Finding {
    let folder = Path::new(DEBUG_FOLDER);
    let has_entries = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if has_entries(&folder.join(".build-id")) {
        Finding::ok("debug_folder", format!("{DEBUG_FOLDER} has debug files by build-id"))
    } else if has_entries(folder) {
        Finding::note("debug_folder", format!("{DEBUG_FOLDER} is there, without debug files by build-id"))
            .advise("install debug packages (…-dbgsym, …-debuginfo) for the libraries whose lines you want to see")
    } else {
        Finding::note(
            "debug_folder",
            format!("{DEBUG_FOLDER} is not there or empty: libraries show functions, not lines"),
        )
        .advise(
            "install debug packages (…-dbgsym, …-debuginfo) for the libraries whose lines you want to see",
        )
    }
}

/// Which languages' mangled names become readable, tried with one name of each.
fn demanglers() -> Finding {
    const SAMPLES: [(&str, &str, &str); 4] = [
        ("Rust (legacy)", "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
        ("Rust (v0)", "_RNvCsdBezzDwma51_4name4main", "name::main"),
        ("C++", "_ZN3foo3barEi", "foo::bar"),
        ("Swift", "$s4name4mainyyF", "name.main"),
    ];
    let (known, unknown): (Vec<_>, Vec<_>) = SAMPLES
        .iter()
        .partition(|(_, mangled, name)| heaptally_symbolize::demangle(mangled).starts_with(name));
    let names = |samples: Vec<&(&'static str, &str, &str)>| {
        samples.into_iter().map(|(language, ..)| *language).collect::<Vec<_>>().join(", ")
    };
    let is_all = unknown.is_empty();
    let (known, unknown) = (names(known), names(unknown));
    if is_all {
        Finding::ok("demanglers", known)
    } else {
        Finding::note("demanglers", format!("{known}; without: {unknown}"))
    }
}
