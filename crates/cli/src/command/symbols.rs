//! `heaptally symbols`: lists the functions of a program and of its libraries.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use heaptally_profile::path_text::escape_path;
use heaptally_report::escape::escape;
use heaptally_symbolize::ListedFunction;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt as _;

use crate::doctor::needed_libraries;
use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::function::module::Module;
use crate::function::near::nearest;
use crate::function::pattern::Pattern;
use crate::message::{print, quote, shown};
use crate::program;
use crate::terminal;

/// Lists the functions of a program, and what could be done at their entries.
///
/// Each with its file and line, its size, how often it was inlined, whether a jump can stand at its entry, and whether
/// it may be left by a tail call to what may allocate. Of a script its interpreter is looked at, as it is recorded. With a PATTERN the libraries that the program needs are looked at too.
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 listed; 4 nothing fits, or a file cannot be read; 2 wrong usage.")]
pub(crate) struct Symbols {
    /// The program, found as `heaptally run` finds it, or a library.
    program: OsString,
    /// A name as reports print it or as the file has it, one with `*`, `re:REGEX`, or `FILE:LINE`.
    pattern: Option<String>,
    /// Print one JSON object, which crates/cli/schema describes.
    #[arg(long)]
    json: bool,
}

impl Symbols {
    /// Looks and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let pattern = self.pattern.as_deref().map(Pattern::parse).transpose().map_err(|error| {
            let text = self.pattern.as_deref().unwrap_or_default();
            Failure::new(
                USAGE,
                format!("cannot use the pattern {}: {error}\nsee `heaptally symbols --help`", quote(text)),
            )
        })?;
        let path =
            program::find(&self.program).map_err(|failure| Failure::new(UNREADABLE, failure.message))?;
        if !path.is_file() {
            let words = format!(
                "cannot read {}: it is no regular file\nname a program or library for x86-64",
                quote(&path)
            );
            return Err(Failure::new(UNREADABLE, words).into());
        }
        let path = program::behind_scripts(path);
        let mut paths = vec![path.clone()];
        if pattern.is_some() {
            paths.extend(needed_libraries(&path));
        }
        let modules = read(&paths)?;
        let mut found: Vec<(&Module, &ListedFunction)> = Vec::new();
        for module in &modules {
            let functions = &module.list.functions;
            match &pattern {
                Some(pattern) => {
                    found.extend(
                        pattern
                            .find(functions)
                            .into_iter()
                            .filter_map(|index| Some((module, functions.get(index)?))),
                    );
                }
                None => found.extend(functions.iter().map(|function| (module, function))),
            }
        }
        if found.is_empty() {
            return Err(nothing(&modules, self.pattern.as_deref(), &path).into());
        }
        for problem in modules.first().map(|module| module.list.problems.as_slice()).unwrap_or_default() {
            print(&format!("{}: {problem}", quote(&path)));
        }
        terminal::print(&if self.json { as_json(&found) } else { as_text(&found) })?;
        Ok(0)
    }
}

/// Reads the modules. The program must be readable; a library that is not is said.
fn read(paths: &[PathBuf]) -> Result<Vec<Module>, Failure> {
    let mut modules = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        match Module::read(path) {
            Ok(module) => modules.push(module),
            Err(error) if number == 0 => {
                let words =
                    format!("cannot read {}: {error}\nname a program or library for x86-64", quote(path));
                return Err(Failure::new(UNREADABLE, words));
            }
            Err(error) => print(&format!("cannot read {}: {error}", quote(path))),
        }
    }
    Ok(modules)
}

fn nothing(modules: &[Module], pattern: Option<&str>, path: &std::path::Path) -> Failure {
    let Some(pattern) = pattern else {
        let words = format!("{} names no function\nbuild it with -g, or do not strip it", quote(path));
        return Failure::new(UNREADABLE, words);
    };
    let near = nearest(pattern, modules.iter().flat_map(|module| &module.list.functions));
    let near: Vec<String> = near.iter().map(quote).collect();
    let next = if near.is_empty() {
        "`heaptally symbols PROGRAM` lists all functions".to_owned()
    } else {
        format!("near it: {}", near.join(", "))
    };
    Failure::new(UNREADABLE, format!("no function of {} fits {}\n{next}", quote(path), quote(pattern)))
}

fn as_text(found: &[(&Module, &ListedFunction)]) -> String {
    let mut text = String::new();
    let mut last = None;
    for (module, function) in found {
        if last != Some(&module.path) {
            last = Some(&module.path);
            let _infallible = writeln!(text, "{}", shown(&module.path));
        }
        let mut facts = Vec::new();
        match function.range {
            Some((start, end)) => facts.push(format!("{start:#x}, {} bytes", end - start)),
            None => facts.push("no code of its own".to_owned()),
        }
        match function.inlined.len() {
            0 => {}
            1 => facts.push("inlined once".to_owned()),
            times => facts.push(format!("inlined {times} times")),
        }
        match module.entry(function) {
            Ok(_) => facts.push("entry can be patched".to_owned()),
            Err(refusal) => facts.push(format!("entry cannot be patched: {refusal}")),
        }
        let chosen = module.implementations(function);
        if !chosen.is_empty() {
            let chosen: Vec<_> = chosen.iter().map(|name| escape(name)).collect();
            facts.push(format!("chooses one of {}", chosen.join(", ")));
        }
        if module.has_tail_call(function) {
            facts.push("may leave by a tail call".to_owned());
        }
        let place = if function.file.is_empty() {
            String::new()
        } else {
            format!("  {}:{}", escape(&function.file), function.line)
        };
        let _infallible = writeln!(text, "  {}{place}\n    {}", escape(&function.name), facts.join("; "));
        if function.system_names.len() > 1 {
            let others = function.system_names.iter().skip(1).map(|name| escape(name).into_owned());
            let _infallible = writeln!(text, "    also {}", others.collect::<Vec<_>>().join(", "));
        }
    }
    text
}

fn as_json(found: &[(&Module, &ListedFunction)]) -> String {
    let functions: Vec<Value> = found
        .iter()
        .map(|(module, function)| {
            let entry = module.entry(function);
            json!({
                "module": escape_path(module.path.as_os_str().as_bytes()),
                "name": function.name,
                "system_names": function.system_names,
                "address": function.range.map(|range| range.0),
                "size_bytes": function.range.map(|(start, end)| end - start),
                "file": (!function.file.is_empty()).then_some(&function.file),
                "line": (function.line != 0).then_some(function.line),
                "inlined": if module.list.has_inlined { json!(function.inlined.len()) } else { Value::Null },
                "patchable": entry.is_ok(),
                "refusal": entry.as_ref().err().map(|refusal| json!({ "kind": refusal.word(), "reason": refusal.to_string() })),
                "moved_bytes": entry.as_ref().ok().map(|moved| moved.original.len()),
                "tail_call": module.has_tail_call(function),
            })
        })
        .collect();
    let mut text = json!({ "schema": "heaptally-symbols", "version": 1, "functions": functions }).to_string();
    text.push('\n');
    text
}
