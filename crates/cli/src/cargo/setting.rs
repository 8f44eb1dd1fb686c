//! Cargo's settings, as far as they decide how programs are built and started: the environment before the files
//! `.cargo/config.toml` of the working folder and of those above it, and that of Cargo's home.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item};

/// The files, the nearest first.
#[derive(Debug)]
pub(crate) struct Settings {
    files: Vec<Document<String>>,
}

impl Settings {
    /// Reads them. What cannot be read is Cargo's to complain of, and it does.
    pub(crate) fn load(folder: &Path) -> Self {
        let home = env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        let folders = folder.ancestors().map(|folder| folder.join(".cargo")).chain(home);
        let file = |folder: PathBuf| {
            let names = ["config", "config.toml"].map(|name| folder.join(name));
            let text = names.iter().find_map(|path| fs::read_to_string(path).ok())?;
            text.parse().ok()
        };
        Self { files: folders.filter_map(file).collect() }
    }

    /// The value at a path of keys, of the nearest file that has it.
    pub(crate) fn get(&self, keys: &[&str]) -> Option<&Item> {
        self.files.iter().find_map(|file| at(file.as_item(), keys))
    }

    /// The program that starts a platform's programs, with its arguments.
    pub(crate) fn runner(&self, triple: &str, is_set: impl Fn(&str) -> bool) -> Vec<String> {
        let variable = format!("CARGO_TARGET_{}_RUNNER", triple.to_uppercase().replace(['-', '.'], "_"));
        if let Some(runner) = env::var(variable).ok().filter(|runner| !runner.trim().is_empty()) {
            return runner.split_whitespace().map(str::to_owned).collect();
        }
        if let Some(runner) = self.get(&["target", triple, "runner"]) {
            return words(runner);
        }
        let tables = self.files.iter().filter_map(|file| at(file.as_item(), &["target"])?.as_table_like());
        let of_cfg = tables.flat_map(|table| table.iter()).find(|(name, item)| {
            let cfg = name.strip_prefix("cfg(").and_then(|rest| rest.strip_suffix(')'));
            cfg.is_some_and(&is_set) && item.get("runner").is_some()
        });
        of_cfg.and_then(|(_, item)| item.get("runner")).map(words).unwrap_or_default()
    }
}

/// A value at a path of keys.
pub(crate) fn at<'i>(item: &'i Item, keys: &[&str]) -> Option<&'i Item> {
    keys.iter().try_fold(item, |item, key| item.get(key))
}

/// A list, or a text whose words are one.
fn words(item: &Item) -> Vec<String> {
    match (item.as_str(), item.as_array()) {
        (Some(text), _) => text.split_whitespace().map(str::to_owned).collect(),
        (_, Some(list)) => list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Settings {
        Settings { files: texts.iter().map(|text| text.parse().unwrap()).collect() }
    }

    #[test]
    fn the_nearest_file_decides() {
        let settings = of(&["[profile.bench]\ndebug = 2\n", "[profile.bench]\ndebug = 0\nlto = true\n"]);
        assert_eq!(settings.get(&["profile", "bench", "debug"]).and_then(Item::as_integer), Some(2));
        assert_eq!(settings.get(&["profile", "bench", "lto"]).and_then(Item::as_bool), Some(true));
        assert!(settings.get(&["profile", "dev", "debug"]).is_none());
    }

    #[test]
    fn a_runner_is_a_text_or_a_list() {
        let never = |_: &str| false;
        let settings = of(&["[target.no-such-triple]\nrunner = 'a -b'\n"]);
        assert_eq!(settings.runner("no-such-triple", never), ["a", "-b"]);
        let settings = of(&["[target.no-such-triple]\nrunner = ['a b', 'c']\n"]);
        assert_eq!(settings.runner("no-such-triple", never), ["a b", "c"]);
        assert_eq!(settings.runner("another-triple", never), [""; 0]);
        let settings = of(&["[target.'cfg(unix)']\nrunner = 'c'\n"]);
        assert_eq!(settings.runner("no-such-triple", |cfg| cfg == "unix"), ["c"]);
        assert_eq!(settings.runner("no-such-triple", never), [""; 0]);
    }
}
