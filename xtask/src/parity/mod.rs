//! `cargo xtask parity`: rdmascope beside perftest and qperf on one device, in one boot, turn and turn about.
//!
//! ```text
//! plan.rs ─► rounds: perftest.rs | qperf.rs | ours.rs ─► table.rs
//! ```
//!
//! Each round measures every point with each program, in an order that alternates. A point's ratio is that of the
//! medians over the rounds; how far the rounds are apart stands beside it, for us and for the other.

mod ours;
mod perftest;
mod plan;
mod process;
mod qperf;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::plan::{Amount, Group};
use self::table::Row;
use crate::{shell, vm};

const USAGE: &str = "\
usage: cargo xtask parity [--quick] [--rounds N] [--only WORD] [--device NAME]

Runs rdmascope, perftest and qperf turn and turn about on rxe0 in one boot of the virtual machine, and prints the ratio of
their medians for each point, with the spread of the rounds. With --device it runs here, on a device of this machine.

  --quick        fewer points and rounds: what CI runs
  --rounds N     rounds (5; with --quick 2)
  --only WORD    only tests whose name has WORD in it, e.g. lat or ib_write
  --device NAME  on this machine's device, without a virtual machine";

/// How long the whole may take in the machine, in seconds.
const LIMIT_S: &str = "3000";

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
    let groups: Vec<Group> =
        plan::groups(if options.quick { Amount::Quick } else { Amount::Full }, &options.only);
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 5 });
    let program = shell::root().join("target/release/rdmascope");
    let scratch = std::env::temp_dir().join(format!("parity-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let mut rows: Vec<Row> = groups.iter().flat_map(Group::rows).collect();
    for round in 0..rounds {
        eprintln!("xtask: parity: round {} of {rounds}", round + 1);
        for group in &groups {
            // Whoever is first finds the caches of the one before: that changes from round to round.
            for ours_now in [round % 2 == 1, round % 2 == 0] {
                if ours_now {
                    let out: PathBuf = scratch.join(format!("{}-{round}", group.name()));
                    ours::measure(&program, device, group, &out, &mut rows)?;
                } else {
                    group.measure_theirs(device, &mut rows);
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    println!("{}", table::print(&rows, rounds));
    Ok(if rows.iter().any(Row::is_empty) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
