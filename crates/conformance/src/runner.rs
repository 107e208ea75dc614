//! Runs named cases and reports each by its name, in the format of the standard test harness. If a
//! case hangs, the program restarts and continues with the next case.

use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

mod tally;

pub use crate::program::{again, this_program};
use tally::{Outcome, Tally};

/// Environment variable: with the value `run`, skipped cases are run as well, and skipped cases
/// that pass are listed.
pub const DEPARTURES_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_DEPARTURES";

/// Environment variable that passes the results so far to the restarted program.
const RESUMED_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_RESUMED";

/// A named case.
pub struct Trial {
    pub name: String,
    /// Why the case is skipped.
    pub skipped: Option<Skip>,
    pub run: Box<dyn Fn()>,
}

/// The reason why a case is skipped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skip {
    pub why: String,
    /// The case fails in some runs only, so a pass does not end the departure.
    pub at_times: bool,
}

/// Environment variable: the seconds after which a case counts as hung (default: 60).
pub const LIMIT_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_LIMIT_S";

/// The time after which a case counts as hung: each wait of a case has a shorter limit, and the
/// longest case takes a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the trials that the program's arguments select, and ends the program.
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

/// Runs a trial. If it hangs, this program restarts and continues with the next trial.
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

/// Restarts this program, whatever its threads wait for. The kernel closes its files, so the
/// devices release its objects.
fn start_anew(so_far: &str) -> ! {
    crate::node::abandon();
    let why = again().env(RESUMED_VARIABLE, so_far).exec();
    eprintln!("the remaining cases are not run: the program cannot restart itself: {why}");
    std::process::abort();
}
