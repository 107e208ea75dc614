//! Proves the rates of error of this crate's procedures, by simulation (`cargo xtask verdicts`).
//!
//! Each procedure is a module with a row in [`PROCEDURES`]. A row simulates data whose truth is
//! known, asks the procedure that the program uses, and counts wrong answers. With `--fleets`, the
//! program itself measures fleets whose truth is known.

mod compare;
mod fleet;
mod kept;
mod measured;
mod noise;
mod rates;
mod settings;
#[cfg(test)]
mod tables;
mod trend;

use std::process::ExitCode;

use kept::Kept;
use rates::Rate;
use settings::{Asked, Settings, USAGE};

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

/// The procedures, and how many trials run at the same time: all CPUs measure one fleet.
fn procedures(settings: &Settings) -> (&'static [Procedure], u64) {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    if settings.fleets.is_some() { (&MEASURED, 1) } else { (&PROCEDURES, threads) }
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
    let done = Asked::parse(std::env::args().skip(1)).and_then(|asked| match asked {
        Asked::Help => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Asked::Rates(settings) => print(&settings),
        Asked::Large(hosts) => Ok(fleet::large(hosts)),
    });
    done.unwrap_or_else(|error| {
        eprintln!("verdicts: {error}");
        ExitCode::from(2)
    })
}

/// Prints the rates of all rows whose name contains the word.
fn print(settings: &Settings) -> Result<ExitCode, String> {
    let (procedures, threads) = procedures(settings);
    if settings.fleets.is_none() {
        noise::RECORDED.iter().for_each(|series| println!("{}", series.line()));
    }
    let mut kept = settings.rates.as_deref().map(Kept::read).transpose()?;
    let has_all = settings.is_full || settings.fleets.is_some();
    let mut missed = 0;
    let mut shown = 0;
    for row in rows(procedures, settings).iter().filter(|row| row.name.contains(&settings.only)) {
        let earlier = kept.as_ref().and_then(|kept| kept.rates.get(&row.name)).cloned();
        let rate = match &earlier {
            Some(earlier) if has_all => rate(row, earlier.tried(), settings.seed, threads).after(earlier),
            _ => rate(row, 0, settings.seed, threads),
        };
        println!("{}", rate.line());
        missed += u32::from(rate.is_missed());
        shown += 1;
        if !has_all && earlier.is_some_and(|earlier| rate.differs(&earlier)) {
            println!("  its first wrong trial is another one than in the file of --rates, which is outdated");
        }
        if has_all && let Some(kept) = &mut kept {
            kept.keep(rate)?;
        }
    }
    if shown == 0 {
        let only = &settings.only;
        return Err(format!("no row's name contains `{only}`; without --only all rows are shown"));
    }
    if missed > 0 {
        eprintln!("verdicts: {missed} rates are above their bar");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows of procedures, with their full names.
fn rows(procedures: &[Procedure], settings: &Settings) -> Vec<Row> {
    let of = |procedure: &Procedure| {
        let named = |row: Row| Row { name: format!("{}, {}", procedure.name, row.name), ..row };
        (procedure.rows)(settings).into_iter().map(named).collect::<Vec<Row>>()
    };
    procedures.iter().flat_map(of).collect()
}

/// Runs the trials of a row, from this one on, in so many threads. Each trial has a seed of its
/// own, so that the result does not depend on the number of threads.
fn rate(row: &Row, first: u64, seed: u64, threads: u64) -> Rate {
    // Rows are independent of each other, whichever of them are asked for.
    let own = row.name.bytes().fold(0, |mixed, byte| noise::mixed(&[mixed, u64::from(byte)]));
    let part = |thread: u64| {
        let mut answers = Vec::new();
        for trial in (first + thread..row.trials).step_by(threads as usize) {
            let answer = (row.trial)(noise::mixed(&[seed, own, trial]));
            // The others could not be tried either.
            let is_last = matches!(answer, Answer::NotMeasured(_));
            answers.push((trial, answer));
            if is_last {
                break;
            }
        }
        answers
    };
    let mut answers: Vec<(u64, Answer)> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a trial does not panic")).collect()
    });
    answers.sort_by_key(|(trial, _)| *trial);
    let mut rate = Rate::none(&row.name, row.bar);
    for (trial, answer) in answers {
        rate.add(trial, answer);
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_of(answer: fn(u64) -> Answer) -> (Rate, u64) {
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let count = std::sync::Arc::clone(&asked);
        let trial = move |_| answer(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let row = Row { name: "row".to_owned(), bar: Some(0.01), trials: 10, trial: Box::new(trial) };
        (rate(&row, 0, 1, 1), asked.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn trials_without_a_promise_do_not_count() {
        let (rate, asked) = rate_of(|trial| match trial {
            0..3 => Answer::NotPromised,
            3..5 => Answer::Wrong(format!("trial {trial}")),
            _ => Answer::Right,
        });
        assert_eq!((rate.errors, rate.trials, rate.not_promised, asked), (2, 7, 3, 10));
        assert_eq!((rate.first_error, rate.example.as_str()), (Some(3), "trial 3"));
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
}
