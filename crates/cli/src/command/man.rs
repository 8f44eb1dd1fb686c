//! `heaptally man`: prints or writes the manual pages, one of each command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, ValueHint};
use clap_mangen::roff::{Roff, roman};

use crate::Arguments;
use crate::exit::{Failure, UNREADABLE};
use crate::message::{self, quote};
use crate::terminal::print;

/// Prints the manual page heaptally(1), or writes the pages of all commands.
#[derive(Args, Debug)]
#[command(after_help = "\
To read one without installing it:
  heaptally man | man -l -
For man(1) to find them:
  heaptally man --dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write heaptally.1, heaptally-run.1 and so on into this folder, which is made if it is not there.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// A manual page.
#[derive(Debug)]
struct Page {
    /// The file's name.
    name: String,
    /// In roff.
    text: Vec<u8>,
}

impl Man {
    /// Prints or writes.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let pages = pages()?;
        match &self.dir {
            Some(folder) => {
                write(folder, &pages)?;
                message::print(&format!("{} manual pages → {}", pages.len(), quote(folder)));
            }
            None => {
                let first = pages.into_iter().next().map(|page| page.text).unwrap_or_default();
                print(&String::from_utf8(first)?)?;
            }
        }
        Ok(0)
    }
}

/// All pages, heaptally(1) first.
fn pages() -> anyhow::Result<Vec<Page>> {
    let mut tree = Arguments::command().disable_help_subcommand(true);
    tree.build();
    let mut pages = Vec::new();
    add(&mut pages, &tree)?;
    Ok(pages)
}

fn add(pages: &mut Vec<Page>, command: &clap::Command) -> anyhow::Result<()> {
    pages.push(page(command)?);
    visible(command).try_for_each(|inner| add(pages, inner))
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

fn page(command: &clap::Command) -> io::Result<Page> {
    let source = concat!("heaptally ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone()).source(source).manual("heaptally");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    // What is to be typed stands there as it is typed: no hyphens, no stretched spaces.
    Roff::new().control("nh", []).control("ad", ["l"]).to_writer(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(notes) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        notes_section(&notes.to_string()).to_writer(&mut text)?;
    }
    man.render_version_section(&mut text)?;
    if command.get_display_name().is_some_and(|name| name != "heaptally") {
        let mut see = Roff::new();
        see.control("SH", ["SEE ALSO"]).text([roman("heaptally(1)")]);
        see.to_writer(&mut text)?;
    }
    Ok(Page { name: man.get_filename(), text })
}

/// What stands behind the options in the help: indented lines as they are, others as paragraphs.
fn notes_section(notes: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    for line in notes.lines() {
        match line.trim_start() {
            "" => roff.control("PP", []),
            trimmed if trimmed.len() < line.len() => {
                roff.control("nf", []).text([roman(line)]).control("fi", [])
            }
            _ => roff.text([roman(line)]),
        };
    }
    roff
}

fn write(folder: &Path, pages: &[Page]) -> Result<(), Failure> {
    let refuse = |path: &Path, error| {
        Failure::new(
            UNREADABLE,
            format!("cannot write {}: {error}\nname a folder that you may write to", quote(path)),
        )
    };
    fs::create_dir_all(folder).map_err(|error| refuse(folder, error))?;
    for page in pages {
        let path = folder.join(&page.name);
        fs::write(&path, &page.text).map_err(|error| refuse(&path, error))?;
    }
    Ok(())
}
