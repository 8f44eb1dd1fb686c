//! The configuration: other defaults for options, from the environment and from the project's file.
//!
//! What is given on the command line wins over an environment variable, and that over `.config/heaptally.toml` in the
//! nearest folder above the working folder. Which keys there are, [`key`] says; [`document`] reads the file; [`value`]
//! puts the layers on each other and has clap check every value by its option's own parser; [`apply`] makes what is left
//! the defaults of clap's options. So a command sees no difference between a flag and a configured value, and does
//! nothing for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{Args, ValueHint};
use heaptally_profile::call_site::Rules;

pub(crate) mod apply;
pub(crate) mod document;
pub(crate) mod key;
mod place;
pub(crate) mod value;
mod window;

pub(crate) use value::{Config, Source};

/// Which configuration is used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Take defaults from this file, not from the nearest `.config/heaptally.toml` [env: HEAPTALLY_CONFIG].
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Take defaults from no file.
    #[arg(long, global = true, conflicts_with = "config")]
    no_config: bool,
}

/// What is no option but configured all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Where baselines are kept; `None`: beside what is built.
    pub(crate) baseline_folder: Option<PathBuf>,
    /// Where the recorder's library is unpacked; `None`: in the user's cache folder.
    pub(crate) cache_folder: Option<PathBuf>,
    /// More rules for call sites.
    pub(crate) rules: Rules,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Makes a configuration that of this process.
fn set(config: Config) {
    // A second one there is not: `apply::parse` is called once.
    let _first = CONFIG.set(config);
}

/// The configuration of this process.
pub(crate) fn current() -> &'static Config {
    CONFIG.get_or_init(Config::default)
}

/// Its settings.
pub(crate) fn settings() -> &'static Settings {
    &current().settings
}

/// The word that names the command: the first behind options of `heaptally` itself.
pub(crate) fn command_word<'w>(mut words: impl Iterator<Item = &'w OsString>) -> Option<&'w OsString> {
    while let Some(word) = words.next() {
        if word == "--config" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(word);
        }
    }
    None
}
