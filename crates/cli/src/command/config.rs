//! `heaptally config`: which defaults hold, and where each comes from.

use std::fmt::Write as _;

use clap::{Args, CommandFactory, Subcommand};
use serde_json::{Value as Json, json};

use crate::Arguments;
use crate::config::key::{CONFIGURABLE, SETTINGS};
use crate::config::value::{argument, source_text, word_text};
use crate::config::{self, Source, settings};
use crate::terminal::print;
use crate::{baseline, library};

/// Shows the configuration.
///
/// Each option that has a default can have another: on the command line, as an environment variable, or in
/// `.config/heaptally.toml`, in the nearest folder above the working folder. The first of these wins.
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Inner,
}

#[derive(Debug, Subcommand)]
enum Inner {
    Show(Show),
}

/// Prints every key with its value, and where that comes from: file and line, an environment variable, or the default.
///
/// The same keys stand in the file, where `[run]` holds those of `heaptally run`; at the top a key is of every command
/// that has it. An environment variable is HEAPTALLY_RUN_REPEAT or, of every command, HEAPTALLY_REPEAT; of a list each
/// line is one. `--no-strict` takes away what is configured for the switch `--strict`.
#[derive(Args, Debug)]
struct Show {
    /// Print one JSON object, which crates/cli/schema describes.
    #[arg(long)]
    json: bool,
}

/// A key as it is shown.
struct Row {
    /// The command's words; empty: a setting.
    command: &'static str,
    key: &'static str,
    values: Vec<String>,
    source: Option<Source>,
}

impl Config {
    /// Shows.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let Inner::Show(show) = self.command;
        let rows = rows();
        print(&if show.json { as_json(&rows) } else { as_text(&rows) })?;
        Ok(0)
    }
}

/// Settings first, then commands, each in the order of its table.
fn rows() -> Vec<Row> {
    let config = config::current();
    let mut tree = Arguments::command();
    tree.build();
    let mut rows = Vec::new();
    for (key, _) in SETTINGS {
        let value = config.setting_values.get(key);
        let default = || match *key {
            "baseline-folder" => vec![word_text(baseline::folder(settings()).as_os_str())],
            _ => vec![word_text(library::first_folder().as_os_str())],
        };
        let values = value.map(|value| value.words.iter().map(|word| word_text(word)).collect());
        rows.push(Row {
            command: "",
            key,
            values: values.unwrap_or_else(default),
            source: value.map(|value| value.source.clone()),
        });
    }
    for (command, options) in CONFIGURABLE {
        for option in *options {
            let value = config.value(command, option);
            let default = || {
                let argument = argument(&tree, command, option);
                let words = argument.map(|argument| argument.get_default_values()).unwrap_or_default();
                words.iter().map(|word| word_text(word)).collect()
            };
            let values = value.map(|value| value.words.iter().map(|word| word_text(word)).collect());
            rows.push(Row {
                command,
                key: option,
                values: values.unwrap_or_else(default),
                source: value.map(|value| value.source.clone()),
            });
        }
    }
    rows
}

fn as_text(rows: &[Row]) -> String {
    let config = config::current();
    let mut text = match &config.file {
        Some(file) => format!("file: {file}\n"),
        None => "file: none\n".to_owned(),
    };
    let shown = |row: &Row| if row.values.is_empty() { "-".to_owned() } else { row.values.join(", ") };
    let width = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let key_width = width(|row| row.key.len());
    let value_width = rows.iter().map(|row| shown(row).chars().count()).max().unwrap_or(0);
    let mut command = None;
    for row in rows {
        if command != Some(row.command) {
            command = Some(row.command);
            text.push('\n');
            if !row.command.is_empty() {
                // Writing to a String does not fail.
                let _ = writeln!(text, "[{}]", row.command.replace(' ', "."));
            }
        }
        let source =
            row.source.as_ref().map_or_else(|| "default".to_owned(), |source| source_text(config, source));
        let _ = writeln!(text, "{:key_width$}  {:value_width$}  {source}", row.key, shown(row));
    }
    if !config.rule_keys.is_empty() {
        text.push_str("\n[call-site]\n");
    }
    for (key, place) in &config.rule_keys {
        let source = source_text(config, &Source::File(*place));
        let _ = writeln!(text, "{key:key_width$}  {:value_width$}  {source}", "more patterns");
    }
    for name in &config.unknown_variables {
        let _ = writeln!(text, "\nnote: the environment variable {name} is no key");
    }
    text
}

fn as_json(rows: &[Row]) -> String {
    let config = config::current();
    let place = |source: &Source| match source {
        Source::File(place) => json!({
            "kind": "file", "file": config.file, "line": place.line, "column": place.column,
        }),
        Source::Variable(name) => json!({"kind": "variable", "variable": name}),
    };
    let values: Vec<Json> = rows
        .iter()
        .map(|row| {
            json!({
                "command": row.command,
                "key": row.key,
                "values": row.values,
                "source": row.source.as_ref().map_or_else(|| json!({"kind": "default"}), place),
            })
        })
        .collect();
    let rules: Vec<Json> = config
        .rule_keys
        .iter()
        .map(|(key, at)| json!({"key": key, "source": place(&Source::File(*at))}))
        .collect();
    let object = json!({
        "schema": "heaptally-config",
        "version": 1,
        "file": config.file,
        "values": values,
        "call_site": rules,
        "unknown_variables": config.unknown_variables,
    });
    format!("{object}\n")
}
