//! Runs named cases and reports each by its name, as the standard harness does. A case that hangs
//! does not take the others with it: the program starts anew and goes on with the next one.

use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

mod tally;

pub use crate::program::{again, this_program};
use tally::{Outcome, Tally};

/// Environment variable: with the value `run`, the cases that are skipped are run as well. Those
/// that pass are listed.
pub const DEPARTURES_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_DEPARTURES";

/// Environment variable in which a program that starts anew finds how far it was.
const RESUMED_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_RESUMED";

/// A case by name.
pub struct Trial {
    pub name: String,
    /// Why it is not run.
    pub skipped: Option<Skip>,
    pub run: Box<dyn Fn()>,
}

/// Why a case is not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skip {
    pub why: String,
    /// It fails in some runs only: that it passes in one says nothing.
    pub at_times: bool,
}

/// Environment variable: the seconds after which a case hangs, if not 60.
pub const LIMIT_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_LIMIT_S";

/// A case that takes so long hangs: each of its waits has a shorter limit, and the longest case
/// takes a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the trials that the program's arguments select; ends the program.
pub fn run(trials: &[Trial]) -> ! {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|a| a == name);
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let selected = |name: &str| {
        let fits = |filter: &&String| {
            if flag("--exact") { name == **filter } else { name.contains(filter.as_str()) }
        };
        filters.is_empty() || filters.iter().any(fits)
    };
    let chosen: Vec<&Trial> = trials.iter().filter(|t| selected(&t.name)).collect();
    if flag("--list") {
        chosen.iter().for_each(|t| println!("{}: test", t.name));
        std::process::exit(0);
    }
    let all = std::env::var(DEPARTURES_VARIABLE).is_ok_and(|value| value == "run");
    let resumed = std::env::var(RESUMED_VARIABLE).ok();
    let mut tally = resumed.as_deref().map_or_else(Tally::default, Tally::resumed);
    if resumed.is_none() {
        println!("\nrunning {} tests", chosen.len());
    }
    let start = Instant::now();
    for trial in &chosen[tally.done()..] {
        let outcome = match &trial.skipped {
            Some(Skip { why, .. }) if !all => {
                println!("test {} ... SKIPPED ({why})", trial.name);
                Outcome::Skipped
            }
            _ => attempt(trial, &tally, start),
        };
        tally.add(&trial.name, outcome);
    }
    println!("{}", tally.report(start.elapsed()));
    std::process::exit(i32::from(!tally.is_good()) * 101);
}

/// Runs a trial. Should it hang, this program is replaced by a new one that goes on behind it.
fn attempt(trial: &Trial, before: &Tally, total: Instant) -> Outcome {
    let outcome = |passed| match (&trial.skipped, passed) {
        (None, true) => Outcome::Passed,
        (None, false) => Outcome::Failed,
        (Some(skip), true) if skip.at_times => Outcome::Spared,
        (Some(_), true) => Outcome::Kept,
        (Some(_), false) => Outcome::Skipped,
    };
    let mut hung = before.clone();
    hung.add(&trial.name, outcome(false));
    let start = Instant::now();
    let (done, watched) = channel::<()>();
    let limit = std::env::var(LIMIT_VARIABLE).ok().and_then(|value| value.parse().ok());
    let limit = limit.map_or(LIMIT, Duration::from_secs);
    let name = trial.name.clone();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            println!("test {name} ... hangs");
            start_anew(&hung.so_far(total.elapsed()));
        }
    });
    let passed = catch_unwind(AssertUnwindSafe(|| (trial.run)())).is_ok();
    drop(done);
    watchdog.join().expect("the watchdog only waits");
    let outcome = outcome(passed);
    println!("test {} ... {outcome} ({:.0?})", trial.name, start.elapsed());
    outcome
}

/// Replaces this program, whatever its threads wait for. Its files are closed, so the devices learn
/// of it.
fn start_anew(so_far: &str) -> ! {
    crate::node::abandon();
    let why = again().env(RESUMED_VARIABLE, so_far).exec();
    eprintln!("the cases after it are not run: the program cannot start anew: {why}");
    std::process::abort();
}
