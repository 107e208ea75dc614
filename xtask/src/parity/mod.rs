//! `cargo xtask parity`: rdmascope beside perftest and qperf on one device, in one boot, turn and turn about.
//!
//! ```text
//! plan.rs ─► rounds: perftest.rs | qperf.rs | ours.rs ─► table.rs
//! ```
//!
//! Each round measures every point with each program, one right after the other, in an order that alternates. Where a
//! hypervisor moves virtual CPUs apart for a while, everything between them is slow for a while, whoever measures: so each
//! program's best three runs are compared, and a point is measured again until those agree among themselves.

mod ours;
mod perftest;
mod plan;
mod process;
mod qperf;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::plan::Amount;
use self::table::Row;
use crate::{shell, vm};

const USAGE: &str = "\
usage: cargo xtask parity [--quick] [--rounds N] [--only WORD] [--device NAME] [--verbose]

Runs rdmascope, perftest and qperf turn and turn about on rxe0 in one boot of the virtual machine, and prints the ratios
of their figures for each point: of the medians of all runs, and of the second best runs where the best three of each agree
within 3 %; points where they do not are measured again. With --device it runs here, on a device of this machine.

  --quick        fewer points and rounds: what CI runs
  --rounds N     rounds at most (16; with --quick 2)
  --only WORD    only tests whose name has WORD in it, e.g. lat or ib_write
  --device NAME  on this machine's device, without a virtual machine
  --verbose      shows every run";

/// How long the whole may take in the machine, in seconds.
const LIMIT_S: &str = "5400";

/// Rounds of which none is left out, and the most that there are.
const ROUNDS_MIN: usize = 5;
const ROUNDS_MAX: usize = 16;
const ROUNDS_QUICK: usize = 2;

/// rxe does its work in softirqs, which the kernel leaves to ksoftirqd when they are many; that waits for whole time slices
/// behind a program that polls, and then half of all messages take milliseconds, whoever sent them. With priority it
/// does not wait.
const SOFTIRQS_FIRST: &str =
    "for pid in $(ps -e | awk '/ksoftirqd/ { print $1 }'); do chrt -f -p 50 $pid; done";

/// What is asked for.
#[derive(Default)]
struct Options {
    quick: bool,
    rounds: Option<usize>,
    only: String,
    device: Option<String>,
    is_verbose: bool,
    help: bool,
}

/// Measures and prints.
pub(crate) fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let options = match options(&words) {
        Ok(options) if options.help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(error) => {
            eprintln!("xtask: parity: {error:#}");
            return ExitCode::from(2);
        }
    };
    let built = shell::run(&["cargo", "build", "--release", "--quiet"]);
    let result = match &options.device {
        Some(device) => measure(&options, device),
        None => built.and_then(|()| boot(&words)),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            eprintln!("xtask: parity: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = Some(value()?.parse().context("--rounds needs a number")?),
            "--only" => options.only = value()?.clone(),
            "--device" => options.device = Some(value()?.clone()),
            "--verbose" => options.is_verbose = true,
            "--help" | "-h" => options.help = true,
            other => bail!("`{other}` is no option of parity (--help lists them)"),
        }
    }
    Ok(options)
}

/// Runs this program again inside the machine.
fn boot(words: &[String]) -> Result<ExitCode> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let mut command: Vec<OsString> =
        ["--timeout", LIMIT_S, "--before", SOFTIRQS_FIRST, "--"].map(OsString::from).into();
    command.push(program.into());
    command.extend(["parity", "--device", "rxe0"].map(OsString::from));
    command.extend(words.iter().map(OsString::from));
    Ok(vm::run(command.into_iter()))
}

/// All rounds on a device of this machine, or of the one that we are in.
fn measure(options: &Options, device: &str) -> Result<ExitCode> {
    let amount = if options.quick { Amount::Quick } else { Amount::Full };
    let rounds = options.rounds.unwrap_or(if options.quick { ROUNDS_QUICK } else { ROUNDS_MAX });
    let program = shell::root().join("target/release/rdmascope");
    let scratch = std::env::temp_dir().join(format!("parity-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let mut rows: Vec<Row> = plan::points(amount, &options.only).into_iter().map(Row::new).collect();
    for round in 0..rounds {
        let wanting = rows.iter_mut().filter(|row| round < ROUNDS_MIN || !row.is_steady());
        let wanting: Vec<&mut Row> = wanting.collect();
        if wanting.is_empty() {
            break;
        }
        eprintln!("xtask: parity: round {}, {} points", round + 1, wanting.len());
        for row in wanting {
            // Whoever is first finds the caches of the one before: that changes from round to round.
            for is_ours in [!round.is_multiple_of(2), round.is_multiple_of(2)] {
                let value = if is_ours {
                    ours::measure(&program, device, &row.point, &scratch.join("record"))
                } else {
                    row.point.measure_theirs(device)
                };
                if options.is_verbose {
                    eprintln!("{} {value:?}", row.label(is_ours));
                }
                row.add(is_ours, value);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    println!("{}", table::print(&rows));
    Ok(if rows.iter().any(Row::is_empty) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
