//! The keys that the configuration can hold: one table, in which a test looks up every option of every command.
//!
//! A key has the name of its option, without the dashes. It stands in the table of its command, `[run]`, or at the top
//! of the file, and is then of every command that has it. **A new option** goes into [`CONFIGURABLE`] or, with the
//! reason, into [`LEFT_OUT`].

/// Options that can have another default, by their commands' words.
pub(crate) const CONFIGURABLE: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "window",
            "repeat",
            "follow-children",
            "window-at",
            "window-in",
            "window-pause",
            "window-resume",
            "window-restart",
            "window-harness",
            "harness",
            "no-lifetimes",
            "task-origins",
            "segment-dir",
            "strict",
            "json-status",
            "quiet",
        ],
    ),
    (
        "report",
        &[
            "window", "under", "filter", "exclude", "root", "rules", "sort", "by", "tree", "limit", "min",
            "full", "width", "format", "strict",
        ],
    ),
    (
        "diff",
        &[
            "window",
            "under",
            "filter",
            "exclude",
            "root",
            "rules",
            "stack",
            "fold-recursion",
            "fold-generics",
            "sort",
            "tree",
            "explain",
            "limit",
            "min",
            "full",
            "width",
            "format",
            "same-environment",
            "exit-code",
        ],
    ),
    ("merge", &["quiet"]),
    (
        "check",
        &[
            "baseline",
            "limits",
            "grow",
            "per-stack",
            "unstable",
            "max-lost",
            "max-cut",
            "same-environment",
            "accept-failed",
            "accept-incomplete",
            "strict",
            "exit-on-improvement",
            "fold-recursion",
            "fold-generics",
            "window",
            "under",
            "filter",
            "exclude",
            "root",
            "rules",
            "format",
            "report",
            "full",
            "width",
            "repeat",
            "follow-children",
            "window-at",
            "window-in",
            "window-pause",
            "window-resume",
            "window-restart",
            "window-harness",
            "harness",
            "no-lifetimes",
            "task-origins",
            "segment-dir",
        ],
    ),
    (
        "cargo",
        &[
            "baseline",
            "limits",
            "grow",
            "per-stack",
            "unstable",
            "max-lost",
            "max-cut",
            "same-environment",
            "accept-failed",
            "accept-incomplete",
            "strict",
            "exit-on-improvement",
            "fold-recursion",
            "fold-generics",
            "window",
            "under",
            "filter",
            "exclude",
            "root",
            "rules",
            "report",
            "full",
            "width",
            "repeat",
            "follow-children",
            "window-at",
            "window-in",
            "window-pause",
            "window-resume",
            "window-restart",
            "window-harness",
            "harness",
            "no-lifetimes",
            "task-origins",
            "segment-dir",
            "no-fail-fast",
            "show-output",
        ],
    ),
    ("limits update", &["metric", "window", "under", "filter", "exclude", "root", "rules"]),
];

/// Why what is built is not configured here.
const OF_CARGO: &str = "it is Cargo's option, which Cargo's own configuration is for";
/// Why a form of the report is not.
const OF_REPORT: &str = "a check has none of it; [report] is for `heaptally report`";

/// Options that cannot, and why. Those of every command stand in [`LEFT_OUT_OF_ALL`].
pub(crate) const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("run", "save-baseline", "what is saved is replaced: that is asked for each time"),
    ("run", "output", "each program's profile has a name of its own"),
    ("report", "json", "it is short for `format = \"json\"`"),
    ("diff", "json", "it is short for `format = \"json\"`"),
    ("merge", "output", "the sum is named each time"),
    ("check", "json", "it is short for `format = \"json\"`"),
    ("check", "write", "its files are of one call"),
    ("check", "save-baseline", "what is saved is replaced: that is asked for each time"),
    ("check", "output", "each program's profile has a name of its own"),
    ("check", "self-test", "it is another task"),
    ("cargo", "save-baseline", "what is saved is replaced: that is asked for each time"),
    ("cargo", "output", "each program's profile has a name of its own"),
    ("cargo", "write", "its files are of one call"),
    ("cargo", "sort", OF_REPORT),
    ("cargo", "by", OF_REPORT),
    ("cargo", "tree", OF_REPORT),
    ("cargo", "limit", OF_REPORT),
    ("cargo", "min", OF_REPORT),
    ("cargo", "format", OF_REPORT),
    ("cargo", "json", OF_REPORT),
    ("cargo", "package", OF_CARGO),
    ("cargo", "workspace", OF_CARGO),
    ("cargo", "exclude-package", OF_CARGO),
    ("cargo", "lib", OF_CARGO),
    ("cargo", "bin", OF_CARGO),
    ("cargo", "bins", OF_CARGO),
    ("cargo", "example", OF_CARGO),
    ("cargo", "examples", OF_CARGO),
    ("cargo", "test", OF_CARGO),
    ("cargo", "tests", OF_CARGO),
    ("cargo", "bench", OF_CARGO),
    ("cargo", "benches", OF_CARGO),
    ("cargo", "all-targets", OF_CARGO),
    ("cargo", "features", OF_CARGO),
    ("cargo", "all-features", OF_CARGO),
    ("cargo", "no-default-features", OF_CARGO),
    ("cargo", "profile", OF_CARGO),
    ("cargo", "release", OF_CARGO),
    ("cargo", "target", OF_CARGO),
    ("cargo", "target-dir", OF_CARGO),
    ("cargo", "manifest-path", OF_CARGO),
    ("cargo", "jobs", OF_CARGO),
    ("cargo", "locked", OF_CARGO),
    ("cargo", "offline", OF_CARGO),
    ("cargo", "frozen", OF_CARGO),
    ("limits update", "limits", "what is written is named each time"),
    ("limits update", "ratchet", "it is another task"),
    ("limits update", "dry-run", "it is another task"),
    ("limits show", "profile", "it is what is looked at"),
    ("doctor", "json", "it is a form for programs, which ask for it"),
    ("symbols", "json", "it is a form for programs, which ask for it"),
    ("baseline list", "json", "it is a form for programs, which ask for it"),
    ("baseline show", "json", "it is a form for programs, which ask for it"),
    ("man", "dir", "where the pages go is of one call"),
    ("config show", "json", "it is a form for programs, which ask for it"),
];

/// Options of every command that cannot be configured, and why.
pub(crate) const LEFT_OUT_OF_ALL: &[(&str, &str)] = &[
    ("help", "it is no setting"),
    ("version", "it is no setting"),
    ("config", "it names the configuration itself"),
    ("no-config", "it is about the configuration itself"),
];

/// Options of `cargo` that only a report has.
const OF_A_REPORT: &[&str] = &["sort", "by", "tree", "limit", "min", "format", "json"];

/// A configured option that gives way to others which were given, or to an argument by its id, though clap lets both
/// stand: (command, option, given).
pub(crate) const GIVES_WAY: &[(&str, &str, &[&str])] = &[
    ("report", "by", &["format", "json", "full"]),
    ("report", "tree", &["format", "json"]),
    ("report", "full", &["format", "json", "by"]),
    ("report", "min", &["format", "json"]),
    ("report", "format", &["by", "tree", "full", "min"]),
    // A report is asked for, and no check.
    ("cargo", "baseline", OF_A_REPORT),
    ("cargo", "limits", OF_A_REPORT),
    ("cargo", "full", &["format", "json", "by"]),
    // A profile is not recorded.
    ("check", "repeat", &["change"]),
    ("check", "follow-children", &["change"]),
    ("check", "no-lifetimes", &["change"]),
    ("check", "task-origins", &["change"]),
    ("check", "segment-dir", &["change"]),
    ("check", "window-at", &["change"]),
    ("check", "window-in", &["change"]),
    ("check", "window-pause", &["change"]),
    ("check", "window-resume", &["change"]),
    ("check", "window-restart", &["change"]),
    ("check", "window-harness", &["change"]),
    ("check", "harness", &["change"]),
];

/// Keys at the top of the file that are no option, and what they say.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("baseline-folder", "where baselines are kept"),
    ("cache-folder", "where the recorder's library is unpacked"),
];

/// The table of rules for call sites.
pub(crate) const CALL_SITE: &str = "call-site";
/// Its keys: the sections of a rule file.
pub(crate) const CALL_SITE_KEYS: &[&str] = &[
    "module",
    "file",
    "file name",
    "symbol",
    "function",
    "allocation",
    "function rust",
    "function c++",
    "function swift",
    "module swift",
    "function go",
];

/// The configurable options of a command.
pub(crate) fn options(command: &str) -> Option<&'static [&'static str]> {
    CONFIGURABLE.iter().find(|(name, _)| *name == command).map(|(_, options)| *options)
}

/// Why an option of a command, or of any if that is empty, cannot be configured.
pub(crate) fn left_out(command: &str, option: &str) -> Option<&'static str> {
    let of_command = LEFT_OUT
        .iter()
        .find(|(of, name, _)| (command.is_empty() || *of == command) && *name == option)
        .map(|(_, _, why)| *why);
    of_command.or_else(|| LEFT_OUT_OF_ALL.iter().find(|(name, _)| *name == option).map(|(_, why)| *why))
}

/// The variable of a key; that of every command has no command's name in it.
pub(crate) fn variable(command: &str, key: &str) -> String {
    let words = ["heaptally", command, key];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join("_").replace(['-', ' '], "_").to_uppercase()
}

/// Variables of heaptally's that are no keys.
pub(crate) const OTHER_VARIABLES: &[&str] = &[
    "HEAPTALLY_CONFIG",
    "HEAPTALLY_PRELOAD",
    "HEAPTALLY_SEGMENT",
    "HEAPTALLY_ORACLE",
    "HEAPTALLY_MUTATION",
    "HEAPTALLY_TESTS_REQUIRE_TOOLS",
    "HEAPTALLY_SWIFT_PROGRAMS",
    "HEAPTALLY_BIN",
    "HEAPTALLY_BLESS",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// Every long option of a command and of those below it, as (command's words, option).
    fn collect(command: &clap::Command, path: &str, found: &mut BTreeSet<(String, String)>) {
        for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
            let name = argument.get_long().map(str::to_owned);
            found.insert((path.to_owned(), name.unwrap_or_else(|| argument.get_id().to_string())));
        }
        for inner in command.get_subcommands() {
            collect(inner, format!("{path} {}", inner.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_option_is_configurable_or_left_out_for_a_reason() {
        let mut tree = crate::Arguments::command().disable_help_subcommand(true);
        tree.build();
        let mut known = BTreeSet::new();
        collect(&tree, "", &mut known);

        let configurable = CONFIGURABLE.iter().flat_map(|(command, options)| {
            options.iter().map(|option| ((*command).to_owned(), (*option).to_owned()))
        });
        let left_out = LEFT_OUT.iter().map(|(command, option, why)| {
            assert!(!why.is_empty());
            ((*command).to_owned(), (*option).to_owned())
        });
        let listed: Vec<_> = configurable.chain(left_out).collect();
        let set: BTreeSet<_> = listed.iter().cloned().collect();
        assert_eq!(set.len(), listed.len(), "an option stands in the tables twice");
        let unknown: Vec<_> = set.difference(&known).collect();
        assert!(unknown.is_empty(), "options that clap does not have: {unknown:?}");
        let is_of_all = |option: &str| LEFT_OUT_OF_ALL.iter().any(|(name, _)| *name == option);
        let missing: Vec<_> = known.difference(&set).filter(|(_, option)| !is_of_all(option)).collect();
        assert!(missing.is_empty(), "options that are neither CONFIGURABLE nor LEFT_OUT: {missing:?}");
        for (command, option, given) in GIVES_WAY {
            let of = tree.find_subcommand(command).unwrap();
            for option in [option].into_iter().chain(*given) {
                let is_there = |argument: &clap::Arg| {
                    argument.get_long().unwrap_or(argument.get_id().as_str()) == *option
                };
                assert!(of.get_arguments().any(is_there), "{command} {option}");
            }
        }
    }

    #[test]
    fn a_key_at_the_top_is_no_setting_and_no_table() {
        for (_, options) in CONFIGURABLE {
            for option in *options {
                assert!(SETTINGS.iter().all(|(name, _)| name != option), "{option}");
                assert_ne!(*option, CALL_SITE);
            }
        }
        let known: Vec<String> = CONFIGURABLE
            .iter()
            .flat_map(|(command, options)| {
                options.iter().flat_map(|option| [variable(command, option), variable("", option)])
            })
            .collect();
        assert!(OTHER_VARIABLES.iter().all(|name| known.iter().all(|known| known != name)));
        assert_eq!(variable("limits update", "no-x"), "HEAPTALLY_LIMITS_UPDATE_NO_X");
    }

    #[test]
    fn every_section_of_a_rule_file_is_a_key() {
        let of_keys: Vec<String> = CALL_SITE_KEYS.iter().map(|key| format!("[{key}]")).collect();
        let sections: Vec<&str> = heaptally_profile::call_site::Rules::sections().collect();
        assert_eq!(sections, of_keys);
    }
}
