//! The options of this program.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) const USAGE: &str = "\
usage: verdicts [--quick|--full] [--rates FILE] [--only WORD] [--seed N]
       verdicts --fleets N [--program PATH] [--rates FILE] [--only WORD] [--seed N]
       verdicts --hosts N

Simulates data whose truth is known, and prints how often each procedure errs, with the exact 95 % interval (Clopper and
Pearson) and the bar. A row is `proven` if the whole interval is within the bar, and `held` if a part of it is. Exit status 1
if a bar is missed: if the whole interval is above it.

With --fleets, rdmascope itself measures fleets of hosts on this machine, in place of the simulation: agents over the software
device with link models, and, as root, network namespaces behind switches with tc-tbf(8) and tc-htb(8). What is slow, and
where, is known. A fleet that prints more than half of that deficit is promised nothing, and does not count. A row whose
hosts cannot be made is `not measured`. The directories of wrong verdicts are printed, and stay below target/verdicts.

With --rates, --full and --fleets add each rate to a file once it is known, and try only what the file lacks: after an
interruption, the same command goes on. --quick compares with the file: where the first wrong trial is another one, the rates
of the file are those of another procedure, and a line says so.

With --hosts, the program examines one fleet of N hosts, of which one is slow. Its hosts answer at once, so that the run time
of the program is that of the schedule and of the model.

  --quick         fewer trials, in less than two minutes on one CPU (the default)
  --full          enough trials to prove each bar, in about two hours on two CPUs
  --rates FILE    add the rates to this file, or compare with it; docs/error-rates.csv has those of the documentation
  --only WORD     only rows whose name contains WORD, such as `fleet`, `n=32`, `noise A` or `pair`
  --seed N        other random numbers (default 1)
  --fleets N      measure N fleets for each row, each takes about 30 s; 368 without an error prove a bar of 1 %
  --program PATH  the rdmascope that measures them (default target/release/rdmascope)
  --hosts N       examine one fleet of N hosts in random rounds";

/// Unless `--seed` gives another one.
const FIRST_SEED: u64 = 1;

/// What to do.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Print the usage.
    Help,
    /// Print the rates of procedures.
    Rates(Settings),
    /// Examine one fleet of so many hosts.
    Large(usize),
}

/// What to simulate or to measure.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Enough trials to prove each bar.
    pub(crate) is_full: bool,
    /// Only rows whose name contains this.
    pub(crate) only: String,
    /// The first seed.
    pub(crate) seed: u64,
    /// The number of fleets of a row that the program measures; none: simulate.
    pub(crate) fleets: Option<u64>,
    /// The program that measures them.
    pub(crate) program: PathBuf,
    /// The file that keeps rates.
    pub(crate) rates: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        let program = PathBuf::from("target/release/rdmascope");
        Self { is_full: false, only: String::new(), seed: FIRST_SEED, fleets: None, program, rates: None }
    }
}

impl Asked {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Settings::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => settings.is_full = false,
                "--full" => settings.is_full = true,
                "--rates" => settings.rates = Some(value()?.into()),
                "--only" => settings.only = value()?,
                "--seed" => settings.seed = number("--seed", &value()?)?,
                "--fleets" => settings.fleets = Some(number::<NonZeroU64>("--fleets", &value()?)?.get()),
                "--program" => settings.program = value()?.into(),
                "--hosts" => {
                    return Ok(Self::Large(number::<NonZeroUsize>("--hosts", &value()?)?.get()));
                }
                "--help" | "-h" => return Ok(Self::Help),
                other => return Err(format!("unknown option `{other}` (--help lists the options)")),
            }
        }
        if settings.rates.is_some() && settings.seed != FIRST_SEED {
            return Err(format!("--rates has the rates of --seed {FIRST_SEED}: leave out one of them"));
        }
        if settings.fleets.is_some() {
            if settings.is_full {
                return Err("--full simulates, and --fleets measures: leave out one of them".to_owned());
            }
            let shown = settings.program.display();
            let program =
                settings.program.canonicalize().map_err(|error| format!("--program {shown}: {error}"))?;
            settings.program = program;
        }
        Ok(Self::Rates(settings))
    }
}

fn number<N: FromStr>(option: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{option} needs a number, not `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let read = |words: &str| Asked::parse(words.split(' ').map(str::to_owned));
        let Asked::Rates(found) = read("--fleets 20 --program Cargo.toml --only n=8").unwrap() else {
            panic!("--fleets asks for rates");
        };
        assert_eq!((found.fleets, found.only.as_str()), (Some(20), "n=8"));
        assert!(found.program.is_absolute());
        for (words, why) in [
            ("--fleets 0 --program Cargo.toml", "--fleets needs a number, not `0`"),
            ("--fleets 9 --program missing", "--program missing: No such file or directory (os error 2)"),
            ("--rates rates.csv --seed 2", "--rates has the rates of --seed 1: leave out one of them"),
            ("--full --fleets 9", "--full simulates, and --fleets measures: leave out one of them"),
        ] {
            assert_eq!(read(words).unwrap_err(), why);
        }
    }
}
