//! Runs named cases and reports each by its name, as the standard harness does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A case by name.
pub struct Trial {
    pub name: String,
    /// Why it is not run.
    pub skipped: Option<String>,
    pub run: Box<dyn Fn()>,
}

/// A case that takes so long hangs.
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
    println!("\nrunning {} tests", chosen.len());
    let start = Instant::now();
    let (skipped, ran): (Vec<&Trial>, Vec<&Trial>) = chosen.iter().partition(|t| t.skipped.is_some());
    for trial in &skipped {
        println!("test {} ... SKIPPED ({})", trial.name, trial.skipped.as_deref().unwrap_or_default());
    }
    let failed: Vec<&str> = ran.iter().filter(|t| !passes(t)).map(|t| t.name.as_str()).collect();
    let (verdict, passed) = (if failed.is_empty() { "ok" } else { "FAILED" }, ran.len() - failed.len());
    failed.iter().for_each(|name| println!("failed: {name}"));
    println!(
        "\ntest result: {verdict}. {passed} passed; {} failed; {} skipped; finished in {:.2?}\n",
        failed.len(),
        skipped.len(),
        start.elapsed()
    );
    std::process::exit(i32::from(!failed.is_empty()) * 101);
}

fn passes(trial: &Trial) -> bool {
    let start = Instant::now();
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let name = trial.name.clone();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            println!("test {name} ... hangs");
            std::process::abort();
        }
    });
    let passed = catch_unwind(AssertUnwindSafe(|| (trial.run)())).is_ok();
    drop(done);
    watchdog.join().expect("the watchdog only waits");
    println!("test {} ... {} ({:.0?})", trial.name, if passed { "ok" } else { "FAILED" }, start.elapsed());
    passed
}
