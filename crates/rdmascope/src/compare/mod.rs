//! `rdmascope compare`: whether a new side is worse than a base, from their records or measured by
//! turns; `rdmascope trend`: where a series of runs changes.

mod output;
mod records;
pub(crate) mod trend;
mod turns;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ::report::compare::{Asked, Session, Word, compare as compared};
use bench::PATTERNS;
use clap::Args;
use measure::expectation::path_of;
use measure::store::RunReader;
use measure::units;

use crate::cli::count::count;
use crate::cli::time::time_above_zero;
use crate::failure::{NOT_MET, PARTIAL, UNDECIDED, Usage, reported};
use output::OutputArguments;
use records::{Records, place, runs};
use turns::{PAIRS_MAX, Turns, recorded};

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope compare --interleave 10 'lat send --local' \\
    'lat send --local --poll event' --out polling
                                       measures both by turns, the best design
  rdmascope compare --interleave 10 'run quick' './new/rdmascope run quick' \\
    --out upgrade                      compares two programs
  rdmascope compare before after --history sessions
                                       two runs, and what runs differ anyway
  rdmascope compare before after --format junit > compare.xml
  rdmascope compare polling            the turns of the first example again

Exit status: 3 if the new side is worse, 4 if it failed where the base was
measured, 1 if it differs but one session a side cannot say more, or if nothing
could be compared, 0 if it is the same or better, or if that is undecided.";

/// The ratio, as a share, up to which numbers count as the same.
const MARGIN: &str = "5%";

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// The base: the directory of a run, of several runs, or several directories with commas; with
    /// --interleave, a command that measures; without a new side, the directory of an earlier
    /// --interleave.
    pub(crate) base: String,
    /// The new side, in the same way.
    pub(crate) new: Option<String>,
    /// Measure both commands by turns, in this many pairs of random order. A command is a command
    /// line of rdmascope, or of another one if it starts with the path of a program.
    #[arg(long, value_name = "PAIRS", requires = "out", conflicts_with = "history")]
    #[arg(value_parser = count(1..=PAIRS_MAX))]
    pub(crate) interleave: Option<u32>,
    /// Directory for the runs of --interleave. If it has some of them, the others are measured.
    #[arg(long, value_name = "DIR", requires = "interleave")]
    pub(crate) out: Option<PathBuf>,
    /// Time for each turn of --interleave. A turn that takes longer is stopped, and ends the
    /// comparison; finished turns are kept.
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = time_above_zero)]
    pub(crate) turn_timeout: Duration,
    /// Directory with at least 5 earlier sessions of the same measurement on this machine, each of
    /// as many runs as a side: they tell how far sessions differ when nothing has changed.
    #[arg(long, value_name = "DIR")]
    pub(crate) history: Option<String>,
    /// Compare sides that differ in what matters, such as their device or plan.
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Ask one question for each experiment instead of each point.
    #[arg(long, value_name = "WHAT", value_parser = ["experiment"])]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) looked_at: LookedAt,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// The numbers that are looked at.
#[derive(Args, Debug)]
pub(crate) struct LookedAt {
    /// Numbers to look at, by their paths or short names such as p99 [default: the main number of
    /// each point].
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', value_parser = quantity)]
    pub(crate) quantity: Vec<String>,
    /// Difference up to which numbers count as the same.
    #[arg(long, value_name = "PERCENT", default_value = MARGIN, value_parser = units::parse_percent)]
    pub(crate) margin: f64,
}

/// Compares two sides and prints the verdict.
pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let base = &arguments.base;
    let by_turns = arguments.interleave.is_some() || arguments.new.is_none();
    let (sides, names) = match (arguments.interleave, &arguments.out, &arguments.new) {
        (Some(pairs), Some(out), Some(new)) => {
            let turns = Turns::open(out, pairs, [base, new], arguments.turn_timeout)?;
            let measured = turns.measure(&arguments.looked_at.quantity, arguments.by.is_some())?;
            (measured, turns.commands)
        }
        (None, _, Some(new)) => ([runs(base)?, runs(new)?], [base, new].map(Clone::clone)),
        (None, _, None) => recorded(Path::new(base))?,
        _ => {
            let words = "--interleave compares two commands: name the command of the new side, too";
            return Err(Usage(words.to_owned()).into());
        }
    };
    let history = arguments.history.as_deref().map(|directory| history(directory, &sides));
    let history = history.transpose()?.unwrap_or_default();
    let [base, new] = sides.map(Records::new);
    let history = Records::new(history);
    let lists = [base.sessions(), new.sessions(), history.sessions()];
    let [base, new, history]: &[Vec<Session<'_>>; 3] = &lists;
    let comparison = compared(&Asked {
        sides: [base, new],
        names: names.each_ref().map(String::as_str),
        history,
        by_turns,
        quantities: &arguments.looked_at.quantity,
        by_experiment: arguments.by.is_some(),
        margin: arguments.looked_at.margin,
        anyway: arguments.anyway,
        patterns: PATTERNS,
    })?;
    Ok(reported(status(comparison.verdict), arguments.output.write(&comparison.sheet(), &comparison)))
}

/// Returns the path of a quantity that has a short name; any other text stays.
fn quantity(text: &str) -> Result<String, Infallible> {
    Ok(path_of(text).to_owned())
}

/// The exit status of a verdict.
fn status(verdict: Word) -> u8 {
    match verdict {
        Word::Worse => NOT_MET,
        Word::Failed => PARTIAL,
        Word::Differs => UNDECIDED,
        Word::Better | Word::Same | Word::Undecided => 0,
    }
}

/// Reads the sessions of a history, without those that are compared.
fn history(directory: &str, sides: &[Vec<RunReader>; 2]) -> anyhow::Result<Vec<RunReader>> {
    let compared: Vec<PathBuf> = sides.iter().flatten().map(place).collect();
    let mut found = runs(directory)?;
    found.retain(|run| !compared.contains(&place(run)));
    let least = verdict::session::LEAST;
    match found.len() < least {
        true => Err(Usage(format!(
            "{directory} has {} runs besides those that are compared, and a history needs at least {least}: \
             keep the runs of earlier sessions there",
            found.len()
        ))
        .into()),
        false => Ok(found),
    }
}
