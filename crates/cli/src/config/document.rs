//! The configuration's file: found, read, and taken apart into entries that know where they stand.
//!
//! ```toml
//! window = ["parse"]              # at the top: of every command that has --window
//! baseline-folder = "perf"
//!
//! [run]
//! repeat = 3                      # as `run --repeat 3`
//! strict = true
//!
//! [[window]]                      # as --window-at and its like
//! name = "request"
//! at = "begin .. end"
//!
//! [call-site]
//! function = ["mine::alloc_*"]    # as the section of a rule file
//! ```

use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptally_profile::call_site::Rules;
use heaptally_profile::path_text::escape_path;
use heaptally_report::escape::escape;
use toml_edit::{Document as Toml, Item, TableLike, Value};

use super::key::{CALL_SITE, CALL_SITE_KEYS, CONFIGURABLE, SETTINGS, left_out, options};
use super::place::{Place, nearest};
use super::window::{self, WINDOW};
use crate::exit::{Failure, USAGE};
use crate::message::{quote, quote_bytes};

/// Where a project keeps it.
pub(crate) const FOLDER: &str = ".config";
/// Its name there.
pub(crate) const NAME: &str = "heaptally.toml";
/// More than anyone writes.
const MAX_BYTES: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its path, as messages name it.
    pub(crate) shown: String,
    /// The folder to which the paths in it are relative: that which holds `.config`, or else the file.
    pub(crate) folder: PathBuf,
    /// What it says of options and settings, in its order.
    pub(crate) entries: Vec<Entry>,
    /// More rules for call sites.
    pub(crate) rules: Rules,
    /// Where these stand: of each key.
    pub(crate) rule_keys: Vec<(String, Place)>,
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The command's words; empty: all that have the key.
    pub(crate) command: String,
    pub(crate) key: String,
    pub(crate) given: Given,
    /// Where the value stands.
    pub(crate) place: Place,
}

/// A value as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Switch(bool),
    One(String),
    Many(Vec<String>),
}

/// The nearest file above a folder, the folder itself included.
pub(crate) fn find(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(FOLDER).join(NAME)).find(|path| {
        // What is there and cannot be read is an error, not a reason to look further up.
        !matches!(
            path.symlink_metadata().map_err(|error| error.kind()),
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
        )
    })
}

impl Document {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = shown(path);
        let refuse = |why: &str| {
            Failure::new(
                USAGE,
                format!("cannot read the configuration {shown}: {why}\nmend it, or call with --no-config"),
            )
        };
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| refuse(&error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refuse(&format!("it has more than {MAX_BYTES} bytes")));
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let beside = absolute.parent().unwrap_or(Path::new("/"));
        let is_in_folder = beside.file_name().is_some_and(|name| name == FOLDER);
        let folder = if is_in_folder { beside.parent().unwrap_or(beside) } else { beside };
        Self::parse(&bytes, shown, folder)
    }

    fn parse(bytes: &[u8], shown: String, folder: &Path) -> Result<Self, Failure> {
        let text = str::from_utf8(bytes).map_err(|error| {
            refuse(&shown, Place::of(bytes, error.valid_up_to()), "this is not UTF-8", "save it as UTF-8")
        })?;
        let toml = Toml::parse(text).map_err(|error| {
            let what = error.message().lines().collect::<Vec<_>>().join("; ");
            let what = format!("this is not TOML: {}", escape(&what));
            refuse(&shown, Place::of_span(text, error.span()), &what, "see https://toml.io")
        })?;
        let mut document = Self {
            shown,
            folder: folder.to_owned(),
            entries: Vec::new(),
            rules: Rules::default(),
            rule_keys: Vec::new(),
        };
        document.walk(text, toml.as_table(), "")?;
        Ok(document)
    }

    /// Takes a table apart: that of a command, or the top.
    fn walk(&mut self, text: &str, table: &dyn TableLike, command: &str) -> Result<(), Failure> {
        let mut windows = Vec::new();
        for (key, item) in table.iter() {
            let name_span = table.get_key_value(key).and_then(|(key, _)| key.span());
            let name_place = Place::of_span(text, name_span);
            if command.is_empty() && key == CALL_SITE {
                self.call_site(text, item, name_place)?;
                continue;
            }
            if let Some(tables) = item.as_array_of_tables().filter(|_| command.is_empty() && key == WINDOW) {
                let entries = window::entries(text, tables)
                    .map_err(|(place, what, next)| self.refuse(place, &what, &next))?;
                windows.extend(entries);
                continue;
            }
            if let Some(inner) = item.as_table_like() {
                let inner_command = format!("{command} {key}").trim_start().to_owned();
                if !is_table(&inner_command) {
                    return Err(self.unknown(name_place, command, key));
                }
                self.walk(text, inner, &inner_command)?;
                continue;
            }
            if !is_key(command, key) {
                return Err(self.unknown(name_place, command, key));
            }
            let place = item.span().map_or(name_place, |span| Place::of_span(text, Some(span)));
            let given = given(item).ok_or_else(|| {
                self.refuse(
                    place,
                    &format!("{} cannot be {}", quote(key), item.type_name()),
                    "it takes a string, a number, true or false, or a list of strings and numbers",
                )
            })?;
            self.entries.push(Entry { command: command.to_owned(), key: key.to_owned(), given, place });
        }
        windows.into_iter().for_each(|entry| self.add_to(entry));
        Ok(())
    }

    /// Adds what a `[[window]]` says to what the option's own key at the top says.
    fn add_to(&mut self, entry: Entry) {
        let is_it = |known: &&mut Entry| known.command == entry.command && known.key == entry.key;
        let Some(known) = self.entries.iter_mut().find(is_it) else { return self.entries.push(entry) };
        let mut values = match std::mem::replace(&mut known.given, Given::Many(Vec::new())) {
            Given::Many(values) => values,
            Given::One(value) => vec![value],
            // No value of such an option: it is refused with its place.
            Given::Switch(value) => vec![value.to_string()],
        };
        if let Given::Many(more) = entry.given {
            values.extend(more);
        }
        known.given = Given::Many(values);
    }

    /// Rules for call sites, by the sections of a rule file.
    fn call_site(&mut self, text: &str, item: &Item, place: Place) -> Result<(), Failure> {
        let Some(table) = item.as_table_like() else {
            return Err(self.refuse(place, &format!("{} is a table", quote(CALL_SITE)), "write [call-site]"));
        };
        for (key, item) in table.iter() {
            let name_place = Place::of_span(text, table.get_key_value(key).and_then(|(key, _)| key.span()));
            if !CALL_SITE_KEYS.contains(&key) {
                return Err(self.unknown(name_place, CALL_SITE, key));
            }
            let place = item.span().map_or(name_place, |span| Place::of_span(text, Some(span)));
            let patterns = match given(item) {
                Some(Given::One(pattern)) => vec![pattern],
                Some(Given::Many(patterns)) => patterns,
                _ => {
                    let what = format!("{} is a list of patterns", quote(key));
                    return Err(self.refuse(place, &what, "write [\"pattern\", …]"));
                }
            };
            let mut rules = format!("[{key}]\n");
            for pattern in patterns {
                // As the rule file reads a line; what it would not take for a pattern would vanish.
                let line = pattern.trim();
                if line.is_empty() || line.starts_with('#') || line.contains('\n') {
                    let what = format!("{} is no pattern", quote(&pattern));
                    return Err(self.refuse(place, &what, "a pattern is one line, and no comment"));
                }
                rules.push_str(line);
                rules.push('\n');
            }
            let rules = Rules::parse(&rules)
                .map_err(|error| self.refuse(place, &error.to_string(), "see `rules` of the report"))?;
            self.rules.extend(&rules);
            self.rule_keys.push((key.to_owned(), place));
        }
        Ok(())
    }

    /// An error at a place of this file.
    pub(crate) fn refuse(&self, place: Place, what: &str, next: &str) -> Failure {
        refuse(&self.shown, place, what, next)
    }

    fn unknown(&self, place: Place, command: &str, key: &str) -> Failure {
        let of_table = if command.is_empty() { String::new() } else { format!(" in [{}]", dotted(command)) };
        let what = format!("unknown key {}{of_table}", quote(key));
        if let Some(why) = left_out(command, key) {
            return self.refuse(
                place,
                &format!("{} cannot be configured: {why}", quote(key)),
                "leave it out",
            );
        }
        let others: Vec<&str> = CONFIGURABLE
            .iter()
            .filter(|(_, options)| options.contains(&key))
            .map(|(command, _)| *command)
            .collect();
        let next = if let Some(other) = others.first() {
            format!("it is a key of [{}], or of the top of the file", dotted(other))
        } else {
            let near = nearest(key, names(command));
            // What is written in the wrong table is at times misspelt, too.
            let near = near.or_else(|| nearest(key, names("")));
            near.map_or_else(
                || "`heaptally config show` lists all keys".to_owned(),
                |name| format!("the nearest is {name}; `heaptally config show` lists all keys"),
            )
        };
        self.refuse(place, &what, &next)
    }
}

fn refuse(shown: &str, place: Place, what: &str, next: &str) -> Failure {
    Failure::new(USAGE, format!("{shown}:{place}: {what}\n{next}"))
}

/// A command's words as the name of a table.
pub(crate) fn dotted(command: &str) -> String {
    command.replace(' ', ".")
}

/// The path as it is shown: relative where it is below the working folder.
pub(crate) fn shown(path: &Path) -> String {
    let relative = env::current_dir().ok().and_then(|folder| path.strip_prefix(folder).ok());
    escape(&escape_path(relative.unwrap_or(path).as_os_str().as_bytes())).into_owned()
}

/// Whether a command has a table, or one below it.
fn is_table(command: &str) -> bool {
    CONFIGURABLE.iter().any(|(name, _)| {
        name.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn is_key(command: &str, key: &str) -> bool {
    if command.is_empty() {
        return SETTINGS.iter().any(|(name, _)| *name == key)
            || CONFIGURABLE.iter().any(|(_, options)| options.contains(&key));
    }
    options(command).is_some_and(|options| options.contains(&key))
}

/// The names that a table knows, sorted.
fn names(command: &str) -> BTreeSet<&'static str> {
    if command == CALL_SITE {
        return CALL_SITE_KEYS.iter().copied().collect();
    }
    if !command.is_empty() {
        return options(command).unwrap_or_default().iter().copied().collect();
    }
    let commands =
        CONFIGURABLE.iter().flat_map(|(name, options)| options.iter().copied().chain(name.split(' ').next()));
    commands.chain(SETTINGS.iter().map(|(name, _)| *name)).chain([CALL_SITE]).collect()
}

/// A value that an option can have; `None` for others.
pub(super) fn given(item: &Item) -> Option<Given> {
    match item.as_value()? {
        Value::Boolean(value) => Some(Given::Switch(*value.value())),
        Value::Array(list) => list.iter().map(word).collect::<Option<_>>().map(Given::Many),
        value => word(value).map(Given::One),
    }
}

/// A value that can be a word of a command line.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.value().contains('\0') => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        _ => None,
    }
}

impl Given {
    /// For messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Switch(value) => format!("`{value}`"),
            Self::One(value) => quote_bytes(value.as_bytes()),
            Self::Many(values) => {
                values.iter().map(|value| quote_bytes(value.as_bytes())).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, String> {
        Document::parse(text.as_bytes(), "h.toml".to_owned(), Path::new("/p")).map_err(|failure| {
            assert_eq!(failure.code, USAGE);
            failure.message
        })
    }

    #[test]
    fn entries_know_where_they_stand() {
        let document = parse(
            "limit = 3\nwindow = ['a', 'b']\n\n[run]\n  strict = true\n[call-site]\nfunction = 'mine::*'\n",
        )
        .unwrap();
        let entries: Vec<_> = document
            .entries
            .iter()
            .map(|entry| format!("{}|{}|{}|{}", entry.command, entry.key, entry.given.shown(), entry.place))
            .collect();
        assert_eq!(entries, ["|limit|`3`|1:9", "|window|`a`, `b`|2:10", "run|strict|`true`|5:12"]);
        assert_eq!(document.rules, Rules::parse("[function]\nmine::*\n").unwrap());
        assert_eq!(document.rule_keys, [("function".to_owned(), Place { line: 7, column: 12 })]);
        assert!(parse("").unwrap().entries.is_empty());
    }

    #[test]
    fn windows_are_the_options_that_they_stand_for() {
        let document = parse(
            "window-in = 'x=one'\n[[window]]\nname = 'w'\nat = 'a .. b'\npause = ['c', 'd']\nresume = 'e'\nrestart = true\n\
             harness = 're:^h'\n[[window]]\nname = 'in'\nin = 'f'\nrestart = false\n",
        )
        .unwrap();
        let entries: Vec<_> = document
            .entries
            .iter()
            .map(|entry| format!("{}|{}|{}", entry.key, entry.given.shown(), entry.place))
            .collect();
        let expected = [
            "window-in|`x=one`, `in=f`|1:13",
            "window-at|`w=a .. b`|4:6",
            "window-pause|`w=c`, `w=d`|5:9",
            "window-resume|`w=e`|6:10",
            "window-restart|`w`|7:11",
            "window-harness|`w=re:^h`|8:11",
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, words) in [
            (
                "[run]\nreapet = 3\n",
                &["h.toml:2:1: unknown key `reapet` in [run]", "nearest is `repeat`"][..],
            ),
            ("[rnu]\n", &["h.toml:1:2: unknown key `rnu`", "nearest is `run`"]),
            ("baseline_folder = 'x'\n", &["h.toml:1:1", "nearest is `baseline-folder`"]),
            ("[run]\nlimit = 1\n", &["h.toml:2:1", "it is a key of [report]"]),
            ("[run]\noutput = 'x'\n", &["h.toml:2:1: `output` cannot be configured: each program"]),
            ("output = 'x'\n", &["`output` cannot be configured"]),
            ("zzzzzzzz = 1\n", &["unknown key", "config show"]),
            ("[call-site]\nfunctions = []\n", &["h.toml:2:1", "nearest is `function`"]),
            ("[call-site]\nfunction = true\n", &["h.toml:2:12", "is a list of patterns"]),
            ("[call-site]\nfunction = ['a\\nb', '']\n", &["is no pattern"]),
            ("[call-site]\nfunction = ['[modules]']\n", &["h.toml:2:12", "unknown section"]),
            ("call-site = 3\n", &["is a table"]),
            ("[[window]]\nat = 'a .. b'\n", &["h.toml:1:1: this window has no name", "letters, digits"]),
            ("[[window]]\nname = 'a b'\nat = 'a .. b'\n", &["h.toml:2:8: `a b` is no name of a window"]),
            ("[[window]]\nname = 'w'\nrestart = true\n", &["h.toml:1:1: nothing says where window `w` is"]),
            (
                "[[window]]\nname = 'w'\npuase = 'f'\n",
                &["h.toml:3:1: unknown key `puase`", "nearest is `pause`"],
            ),
            ("[[window]]\nname = 'w'\nat = 3.5e9\nin = true\n", &["h.toml:4:6: `in` is a function"]),
            ("[[window]]\nname = 'w'\nrestart = 'w'\n", &["h.toml:3:11: `restart` is true or false"]),
            (
                "[[window]]\nname = 'w'\nat = 'a .. b'\nin = 'f'\n",
                &["h.toml:4:6: window `w` has both `at` and `in`", "keep one"],
            ),
            (
                "[[window]]\nname = 'w'\nat = 'a .. b'\n[[window]]\nname = 'w'\nin = 'f'\n",
                &["h.toml:4:1: window `w` is defined twice", "in one [[window]]"],
            ),
            ("[[run.window]]\nname = 'w'\n", &["h.toml:1:1: `window` cannot be array of tables"]),
            ("[[run]]\nrepeat = 3\n", &["h.toml:1:3: unknown key", "run"]),
            ("[run]\nrepeat = 2020-01-01\n", &["h.toml:2:10: `repeat` cannot be"]),
            ("[run]\nwindow = [['a']]\n", &["h.toml:2:10: `window` cannot be array"]),
            ("[run\n", &["h.toml:1:5: this is not TOML"]),
            ("a = 1\na = 2\n", &["h.toml:2:1: this is not TOML"]),
        ] {
            let message = parse(text).unwrap_err();
            for word in words {
                assert!(message.contains(word), "{text:?}: no {word:?} in {message}");
            }
            assert_eq!(message.lines().count(), 2, "{message}");
        }
        let error = Document::parse(b"a = 1\n\xff", "h".to_owned(), Path::new("/")).unwrap_err();
        assert!(error.message.starts_with("h:2:1: this is not UTF-8\n"), "{error}");
        // Nesting that would take all of the stack.
        let deep = format!("window = {}", "[".repeat(100_000));
        assert!(parse(&deep).is_err());
        let deep = format!("{}a = 1", "a.".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn the_nearest_file_above_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let inner = scratch.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |folder: &Path| {
            std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
            let path = folder.join(FOLDER).join(NAME);
            std::fs::write(&path, "").unwrap();
            path
        };
        let outer_file = write(scratch.path());
        assert_eq!(find(&inner), Some(outer_file));
        let inner_file = write(&scratch.path().join("a"));
        assert_eq!(find(&inner), Some(inner_file.clone()));
        assert_eq!(Document::read(&inner_file).unwrap().folder, scratch.path().join("a"));
        let named = scratch.path().join("x.toml");
        std::fs::write(&named, "").unwrap();
        assert_eq!(Document::read(&named).unwrap().folder, scratch.path());
    }
}
