//! Whether Cargo has to be told to write debug information: only where nobody said what to do.
//!
//! Profiles inherit: `bench` from `release`, `test` from `dev`, others from what they name. `dev` has it by itself.

use std::env;

use toml_edit::Item;

use super::setting::{Settings, at};

/// As many as no chain of profiles is long.
const MOST_LEVELS: usize = 16;

/// What is to be done about debug information.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DebugSetting {
    /// The variable that is to be 1.
    pub(crate) variable: Option<String>,
    /// The profile that has the symbols stripped off.
    pub(crate) strips: Option<String>,
}

/// Looks at a profile, in the root manifest and the settings.
pub(crate) fn debug_setting(profile: &str, manifest: &Item, settings: &Settings) -> DebugSetting {
    decide(profile, manifest, settings, |name| env::var_os(name).is_some())
}

fn decide(
    profile: &str,
    manifest: &Item,
    settings: &Settings,
    is_set: impl Fn(&str) -> bool,
) -> DebugSetting {
    let get = |profile: &str, key: &str| {
        let keys = ["profile", profile, key];
        settings.get(&keys).or_else(|| at(manifest, &keys))
    };
    let mut setting = DebugSetting::default();
    let mut name = profile.to_owned();
    let mut is_stated = false;
    for _ in 0..MOST_LEVELS {
        is_stated |= is_set(&variable(&name, "DEBUG")) || get(&name, "debug").is_some();
        let strips = get(&name, "strip").is_some_and(|strip| {
            strip.as_bool() == Some(true) || strip.as_str().is_some_and(|strip| strip != "none")
        });
        if strips && setting.strips.is_none() {
            setting.strips = Some(name.clone());
        }
        let inherits = get(&name, "inherits").and_then(Item::as_str);
        name = match (name.as_str(), inherits) {
            ("bench", _) => "release".to_owned(),
            ("test", _) => "dev".to_owned(),
            ("dev", _) => return setting,
            (_, Some(inherits)) => inherits.to_owned(),
            _ => break,
        };
    }
    if !is_stated {
        setting.variable = Some(variable(profile, "DEBUG"));
    }
    setting
}

fn variable(profile: &str, key: &str) -> String {
    format!("CARGO_PROFILE_{}_{key}", profile.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml_edit::Document;

    use super::*;

    fn variable_of(profile: &str, manifest: &str, set: &str) -> Option<String> {
        let manifest: Document<String> = manifest.parse().unwrap();
        let settings = Settings::load(Path::new("/"));
        decide(profile, manifest.as_item(), &settings, |name| name == set).variable
    }

    #[test]
    fn what_nobody_said_is_asked_for() {
        let of = |profile, manifest| variable_of(profile, manifest, "");
        assert_eq!(of("bench", "").as_deref(), Some("CARGO_PROFILE_BENCH_DEBUG"));
        assert_eq!(of("release", "").as_deref(), Some("CARGO_PROFILE_RELEASE_DEBUG"));
        let own = "[profile.my-own]\ninherits = 'release'\n";
        assert_eq!(of("my-own", own).as_deref(), Some("CARGO_PROFILE_MY_OWN_DEBUG"));
        for profile in ["dev", "test"] {
            assert_eq!(of(profile, ""), None);
        }
    }

    #[test]
    fn what_the_user_said_stays() {
        assert_eq!(variable_of("bench", "[profile.bench]\ndebug = false\n", ""), None);
        assert_eq!(variable_of("bench", "[profile.release]\ndebug = 'line-tables-only'\n", ""), None);
        assert_eq!(variable_of("bench", "", "CARGO_PROFILE_RELEASE_DEBUG"), None);
        assert_eq!(variable_of("bench", "", "CARGO_PROFILE_BENCH_DEBUG"), None);
        let own = "[profile.own]\ninherits = 'dev'\n";
        assert_eq!(variable_of("own", own, ""), None);
    }

    #[test]
    fn a_profile_that_strips_is_named() {
        let strips = |manifest: &str| {
            let manifest: Document<String> = manifest.parse().unwrap();
            debug_setting("bench", manifest.as_item(), &Settings::load(Path::new("/"))).strips
        };
        assert_eq!(strips("[profile.release]\nstrip = true\n").as_deref(), Some("release"));
        assert_eq!(strips("[profile.release]\nstrip = 'symbols'\n").as_deref(), Some("release"));
        assert_eq!(strips("[profile.release]\nstrip = 'none'\n"), None);
    }
}
