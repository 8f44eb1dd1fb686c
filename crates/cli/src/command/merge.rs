//! `heaptally merge`: adds profiles.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptally_profile::merge::sum;
use heaptally_profile::pprof;
use heaptally_report::summary::summary;

use crate::exit::{Failure, UNREADABLE};
use crate::file_role::{self, Role, roles};
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
        let inputs: Vec<Role> =
            roles("one of the profiles to add", &self.file).chain(file_role::configuration()).collect();
        let outputs: Vec<Role> = roles("-o", [&self.output]).collect();
        file_role::check(&outputs, &inputs)?;
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
