//! Proves the rates of error of this crate's procedures, by simulation (`cargo xtask verdicts`).
//!
//! Each procedure is a module with a row in [`PROCEDURES`]. A row simulates data whose truth is
//! known, asks the procedure that the program uses, and counts wrong answers.

mod compare;
mod fleet;
mod noise;
mod rates;
mod trend;

use std::process::ExitCode;

use rates::Rate;

const USAGE: &str = "\
usage: verdicts [--quick|--full] [--only WORD] [--seed N]

Simulates data whose truth is known, and prints how often each procedure errs, with the exact 95 % interval (Clopper and
Pearson) and the bar. A row is `proven` if the whole interval is within the bar, and `held` if a part of it is. Exit status 1
if a bar is missed: if the whole interval is above it.

  --quick      fewer trials, in less than two minutes on one CPU (the default)
  --full       enough trials to prove each bar, in about 45 minutes on two CPUs
  --only WORD  only rows whose name contains WORD, such as `fleet`, `n=32`, `noise A` or `pair`
  --seed N     other random numbers (default 1)";

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

/// What to simulate.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Enough trials to prove each bar.
    pub(crate) is_full: bool,
    /// Only rows whose name contains this.
    pub(crate) only: String,
    /// The first seed.
    pub(crate) seed: u64,
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
    noise::RECORDED.iter().for_each(|series| println!("{}", series.line()));
    let mut missed = 0;
    let mut shown = 0;
    for procedure in PROCEDURES {
        for mut row in (procedure.rows)(&settings) {
            row.name = format!("{}, {}", procedure.name, row.name);
            if row.name.contains(&settings.only) {
                let rate = rate(&row, settings.seed);
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
    let mut settings = Settings { is_full: false, only: String::new(), seed: 1 };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--quick" => settings.is_full = false,
            "--full" => settings.is_full = true,
            "--only" => settings.only = value()?,
            "--seed" => settings.seed = value()?.parse().map_err(|_| "--seed needs a number".to_owned())?,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option `{other}` (--help lists the options)")),
        }
    }
    Ok(Some(settings))
}

/// Runs the trials of a row on all CPUs. Each trial has a seed of its own, so that the result does
/// not depend on their number.
fn rate(row: &Row, seed: u64) -> Rate {
    // Rows are independent of each other, whichever of them are asked for.
    let own = row.name.bytes().fold(0, |mixed, byte| noise::mixed(&[mixed, u64::from(byte)]));
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let part = |first: u64| {
        let trials = (first..row.trials).step_by(threads as usize);
        trials.map(|trial| (row.trial)(noise::mixed(&[seed, own, trial]))).collect::<Vec<Answer>>()
    };
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a trial does not panic")).collect()
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
    }
}
