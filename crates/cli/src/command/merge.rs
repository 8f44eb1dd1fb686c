//! `heaptally merge`: adds profiles.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptally_profile::merge::sum;
use heaptally_profile::pprof;
use heaptally_report::summary::summary;

use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::input::read;
use crate::message::{self, quote};
use crate::output::{Content, Output};

/// Adds profiles into one: the shards of a run, or the processes of a service.
///
/// What was counted for one stack in a window of one name is added, and so are the iterations, so that a number per
/// iteration is the average. The order of the files makes no difference. Files of other tools can be added among
/// themselves, and become a profile that way. Runs that `run --repeat` told apart are added, too. Profiles that were
/// recorded under other conditions (C library, heaptally's version, sampling, what was measured) are refused.
#[derive(Args, Debug)]
pub(crate) struct Merge {
    /// The profiles.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    file: Vec<PathBuf>,
    /// Where to write their sum.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Say nothing when it is done.
    #[arg(short, long)]
    quiet: bool,
}

impl Merge {
    /// Adds and writes.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        if let Some(input) = self.file.iter().find(|input| is_same(input, &self.output)) {
            let why = format!(
                "cannot write the sum to {}: it is one of the profiles to add ({})\nname another file with -o",
                quote(&self.output),
                quote(input)
            );
            return Err(Failure::new(USAGE, why).into());
        }
        let output = Output::prepare(&self.output, Content::Sum)?;
        let profiles = self.file.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        let files = profiles.len();
        let profile = sum(profiles).map_err(|error| Failure::new(UNREADABLE, self.words(&error)))?;
        let path = quote(output.path());
        output.write(&pprof::write(&profile))?;
        if !self.quiet {
            let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
            message::print(&format!("{files}: {} → {path}", summary(&profile)));
        }
        Ok(0)
    }

    /// Why the profiles cannot be added. Which of them is the odd one, the first pair tells that differs.
    fn words(&self, error: &heaptally_profile::Error) -> String {
        let first = self.file.first().map(quote).unwrap_or_default();
        let odd = self.file.iter().skip(1).find(|file| {
            let pair = [self.file.first(), Some(*file)].into_iter().flatten().map(|file| read(file));
            pair.collect::<Result<Vec<_>, _>>().is_ok_and(|pair| sum(pair).is_err())
        });
        match odd {
            Some(odd) => format!("cannot add {} to {first}: {error}", quote(odd)),
            None => format!("cannot add these profiles: {error}"),
        }
    }
}

/// Whether both paths are one file.
fn is_same(input: &Path, output: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().filter(|of| of.is_file()).map(|of| (of.dev(), of.ino()));
    id(input).is_some_and(|input| Some(input) == id(output))
}
