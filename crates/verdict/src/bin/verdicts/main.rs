//! Proves the rates of error of this crate's procedures, by simulation (`cargo xtask verdicts`).
//!
//! Each procedure is a module with a row in [`PROCEDURES`]. A row simulates data whose truth is
//! known, asks the procedure that the program uses, and counts wrong answers. With `--fleets`, the
//! program itself measures fleets whose truth is known.

mod compare;
mod fleet;
mod measured;
mod noise;
mod rates;
mod trend;

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use rates::Rate;

const USAGE: &str = "\
usage: verdicts [--quick|--full] [--only WORD] [--seed N]
       verdicts --fleets N [--program PATH] [--only WORD] [--seed N]
       verdicts --hosts N

Simulates data whose truth is known, and prints how often each procedure errs, with the exact 95 % interval (Clopper and
Pearson) and the bar. A row is `proven` if the whole interval is within the bar, and `held` if a part of it is. Exit status 1
if a bar is missed: if the whole interval is above it.

With --fleets, rdmascope itself measures fleets of hosts on this machine, in place of the simulation: agents over the software
device with link models, and, as root, network namespaces behind switches with tc-tbf(8) and tc-htb(8). What is slow, and
where, is known. A fleet that prints more than half of that deficit is promised nothing, and does not count. A row whose
hosts cannot be made is `not measured`. The directories of wrong verdicts are printed, and stay below target/verdicts.

With --hosts, the program examines one fleet of N hosts, of which one is slow. Its hosts answer at once, so that the run time
of the program is that of the schedule and of the model.

  --quick         fewer trials, in less than two minutes on one CPU (the default)
  --full          enough trials to prove each bar, in about an hour on two CPUs
  --only WORD     only rows whose name contains WORD, such as `fleet`, `n=32`, `noise A` or `pair`
  --seed N        other random numbers (default 1)
  --fleets N      measure N fleets for each row, each takes about 30 s; 368 without an error prove a bar of 1 %
  --program PATH  the rdmascope that measures them (default target/release/rdmascope)
  --hosts N       examine one fleet of N hosts in random rounds";

/// A procedure whose rates are proven.
struct Procedure {
    name: &'static str,
    rows: fn(&Settings) -> Vec<Row>,
}

const PROCEDURES: [Procedure; 3] = [
    Procedure { name: "compare", rows: compare::rows },
    Procedure { name: "fleet", rows: fleet::rows },
    Procedure { name: "trend", rows: trend::rows },
];

/// With `--fleets`.
const MEASURED: [Procedure; 1] = [Procedure { name: "fleet", rows: measured::rows }];

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
    /// The number of hosts of the one fleet that is examined; none: all procedures.
    pub(crate) hosts: Option<usize>,
}

impl Settings {
    /// The procedures, and how many trials run at the same time: all CPUs measure one fleet.
    fn procedures(&self) -> (&'static [Procedure], u64) {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        if self.fleets.is_some() { (&MEASURED, 1) } else { (&PROCEDURES, threads) }
    }
}

/// One rate: a trial says what was wrong.
pub(crate) struct Row {
    /// Its name, without that of the procedure.
    pub(crate) name: String,
    /// The largest share of errors.
    pub(crate) bar: Option<f64>,
    /// How many trials.
    pub(crate) trials: u64,
    /// One trial with a seed.
    pub(crate) trial: Box<dyn Fn(u64) -> Answer + Sync>,
}

/// What a trial showed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The procedure was right.
    Right,
    /// It was wrong: what was true and what was said.
    Wrong(String),
    /// The data are such that nothing is promised. The trial does not count, but is printed.
    NotPromised,
    /// It cannot be tried here, and why.
    NotMeasured(String),
}

fn main() -> ExitCode {
    let settings = match settings(std::env::args().skip(1)) {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("verdicts: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(hosts) = settings.hosts {
        return fleet::large(hosts);
    }
    let (procedures, threads) = settings.procedures();
    if settings.fleets.is_none() {
        noise::RECORDED.iter().for_each(|series| println!("{}", series.line()));
    }
    let mut missed = 0;
    let mut shown = 0;
    for procedure in procedures {
        for mut row in (procedure.rows)(&settings) {
            row.name = format!("{}, {}", procedure.name, row.name);
            if row.name.contains(&settings.only) {
                let rate = rate(&row, settings.seed, threads);
                println!("{}", rate.line());
                missed += u32::from(rate.is_missed());
                shown += 1;
            }
        }
    }
    if shown == 0 {
        eprintln!("verdicts: no row's name contains `{}`; without --only all rows are shown", settings.only);
        return ExitCode::from(2);
    }
    if missed > 0 {
        eprintln!("verdicts: {missed} rates are above their bar");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<Option<Settings>, String> {
    let program = PathBuf::from("target/release/rdmascope");
    let only = String::new();
    let mut settings = Settings { is_full: false, only, seed: 1, fleets: None, program, hosts: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--quick" => settings.is_full = false,
            "--full" => settings.is_full = true,
            "--only" => settings.only = value()?,
            "--seed" => settings.seed = number("--seed", &value()?)?,
            "--fleets" => settings.fleets = Some(number::<NonZeroU64>("--fleets", &value()?)?.get()),
            "--program" => settings.program = value()?.into(),
            "--hosts" => settings.hosts = Some(number::<NonZeroUsize>("--hosts", &value()?)?.get()),
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option `{other}` (--help lists the options)")),
        }
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
    Ok(Some(settings))
}

fn number<N: FromStr>(option: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{option} needs a number, not `{text}`"))
}

/// Runs the trials of a row in so many threads. Each trial has a seed of its own, so that the
/// result does not depend on the number of threads.
fn rate(row: &Row, seed: u64, threads: u64) -> Rate {
    // Rows are independent of each other, whichever of them are asked for.
    let own = row.name.bytes().fold(0, |mixed, byte| noise::mixed(&[mixed, u64::from(byte)]));
    let part = |first: u64| {
        let mut answers = Vec::new();
        for trial in (first..row.trials).step_by(threads as usize) {
            answers.push((row.trial)(noise::mixed(&[seed, own, trial])));
            // The others could not be tried either.
            if matches!(answers.last(), Some(Answer::NotMeasured(_))) {
                break;
            }
        }
        answers
    };
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a trial does not panic")).collect()
    });
    let not_measured = answers.iter().find_map(|answer| match answer {
        Answer::NotMeasured(why) => Some(why.clone()),
        _ => None,
    });
    let not_promised = answers.iter().filter(|answer| **answer == Answer::NotPromised).count() as u64;
    let wrong = answers.into_iter().filter_map(|answer| match answer {
        Answer::Wrong(text) => Some(text),
        _ => None,
    });
    let wrong: Vec<String> = wrong.collect();
    Rate {
        name: row.name.clone(),
        errors: wrong.len() as u64,
        trials: row.trials - not_promised,
        not_promised,
        bar: row.bar,
        example: wrong.into_iter().next(),
        not_measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_of(answer: fn(u64) -> Answer) -> (Rate, u64) {
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let count = std::sync::Arc::clone(&asked);
        let trial = move |_| answer(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let row = Row { name: "row".to_owned(), bar: Some(0.01), trials: 10, trial: Box::new(trial) };
        (rate(&row, 1, 1), asked.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn trials_without_a_promise_do_not_count() {
        let (rate, asked) = rate_of(|trial| match trial {
            0..3 => Answer::NotPromised,
            3..5 => Answer::Wrong(format!("trial {trial}")),
            _ => Answer::Right,
        });
        assert_eq!((rate.errors, rate.trials, rate.not_promised, asked), (2, 7, 3, 10));
        assert_eq!(rate.example.as_deref(), Some("trial 3"));
    }

    #[test]
    fn a_row_ends_where_it_cannot_be_measured() {
        let (rate, asked) = rate_of(|trial| match trial {
            2 => Answer::NotMeasured("no namespaces".to_owned()),
            _ => Answer::Right,
        });
        assert_eq!((rate.not_measured.as_deref(), asked), (Some("no namespaces"), 3));
        assert!(rate.line().ends_with(" not measured: no namespaces"), "{}", rate.line());
    }

    #[test]
    fn options_are_read_and_refused() {
        let read = |words: &str| settings(words.split(' ').map(str::to_owned));
        let found = read("--fleets 20 --program Cargo.toml --only n=8").unwrap().unwrap();
        assert_eq!((found.fleets, found.only.as_str()), (Some(20), "n=8"));
        assert!(found.program.is_absolute());
        for (words, why) in [
            ("--fleets 0 --program Cargo.toml", "--fleets needs a number, not `0`"),
            ("--fleets 9 --program missing", "--program missing: No such file or directory (os error 2)"),
            ("--full --fleets 9", "--full simulates, and --fleets measures: leave out one of them"),
        ] {
            assert_eq!(read(words).unwrap_err(), why);
        }
    }
}
