//! `cargo xtask parity`: rdmascope beside perftest and qperf on one device, beside sockperf, qperf
//! and iperf3 over sockets, and beside programs that are linked to an MPI, turn and turn about.
//!
//! ```text
//! plan.rs ─► rounds: perftest.rs | qperf.rs | sockets.rs | mpi.rs | ours.rs ─► table.rs
//! ```
//!
//! Each round measures every point with each program, one right after the other, in an order that
//! alternates. What one CPU can do is compared in a machine that counts instructions as its time,
//! where runs agree to some tenths of a percent. Two ends that poll need two CPUs; where a
//! hypervisor moves those apart for a while, everything between them is slow for a while, whoever
//! measures. So each program's best three runs are compared, and a point is measured again until
//! those agree among themselves.

mod mpi;
mod ours;
mod perftest;
mod plan;
mod qperf;
mod sockets;
mod table;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::plan::{Amount, Part, Point, Tool};
use self::table::Row;
use crate::{shell, vm};

const USAGE: &str = "\
usage: cargo xtask parity [--part counted|timed|native|sockets|sockets-counted|mpi] [--quick] [--rounds N] [--only WORD]
                          [--device NAME] [--verbose]

Runs rdmascope and perftest, qperf, sockperf, iperf3 or a program of MPI turn and turn about, and prints the ratios of their
figures for each point: of the medians of all runs, and of the second best runs where the best three of each agree within 3 %;
points where they do not are measured again. There are six parts, with a table each; three have a boot of the virtual machine
(rxe0):

  counted   both ends on one CPU whose time is the number of its instructions, so that nothing else has a say: operations
            that the target's program has no part in, by polling, and Send by events
  timed     an end on each of two CPUs, both polling
  native    the same on softdev of this host, where perftest runs by `rdmascope exec`, and messages come from and go to the
            process's own memory, as perftest's do; with real-time priority where that is allowed
  sockets   TCP and UDP over the loopback of this host, both ends asleep until something comes: request/response beside
            sockperf and qperf, floods and their CPU time beside iperf3
  sockets-counted   the same, both ends on one CPU whose time is the number of its instructions, in a virtual machine; its
            sockets have buffers of which nothing is lost
  mpi       Open MPI and MPICH between two CPUs of this host, in ten rounds, by the ratio of the medians: beside a loop of the
            same calls in C, and beside the OSU benchmarks and the Intel MPI Benchmarks where the directories of the
            variables OSU and IMB ({mpi} in them stands for openmpi or mpich) or PATH have them

  --part PART    only one of the six
  --quick        one round of fewer points: what CI runs
  --rounds N     rounds at most (16; at least 3 are measured)
  --only WORD    only tests whose name has WORD in it, e.g. lat or ib_write
  --device NAME  on this machine's device, without a virtual machine: the counted and the timed part; the others are
                 none of a device, and measured only by their `--part`
  --verbose      shows every run";

/// How long the whole may take in the machine, in seconds.
const LIMIT_S: &str = "5400";

/// Rounds of which none is left out, and the most that there are.
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 16;
/// Rounds of MPI, whose medians are compared.
const ROUNDS_OF_MPI: usize = 10;

/// rxe does its work in softirqs, which the kernel leaves to ksoftirqd when they are many; that
/// waits for whole time slices behind a program that polls, and then half of all messages take
/// milliseconds, whoever sent them. With priority it does not wait.
const SOFTIRQS_FIRST: &str =
    "for pid in $(ps -e | awk '/ksoftirqd/ { print $1 }'); do chrt -f -p 50 $pid; done";

/// Datagrams are lost where a buffer is full; in one that takes a time slice of them, neither
/// program loses any.
const BUFFERS: &str = "for limit in max default; do echo 4194304 > /proc/sys/net/core/rmem_$limit; done";

/// The device of the native part.
const SOFTDEV: &str = "softdev0";

/// What is asked for.
#[derive(Default)]
struct Options {
    part: Option<Part>,
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
    let measured = match &options.device {
        Some(device) => parts(&options).try_for_each(|part| measure(&options, part, device_of(part, device))),
        None => start(&options, parts(&options), &words),
    };
    if let Err(error) = measured {
        eprintln!("xtask: parity: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What CI runs: that each program gives each number, of the parts that need no virtual machine.
/// How near the numbers are says little on a machine that others share.
pub(crate) fn quick() -> Result<()> {
    quick_of(|part| !part.is_booted())
}

/// The other parts, in the same way.
pub(crate) fn quick_booted() -> Result<()> {
    quick_of(Part::is_booted)
}

fn quick_of(is_asked_for: fn(Part) -> bool) -> Result<()> {
    Part::ALL.into_iter().filter(|part| is_asked_for(*part)).try_for_each(|part| {
        let words = ["--quick", "--part", part.name()].map(str::to_owned);
        let options = options(&words)?;
        start(&options, parts(&options), &words)
    })
}

fn options(words: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--part" => {
                let name = value()?;
                let part = Part::ALL.into_iter().find(|part| part.name() == name);
                options.part = Some(part.with_context(|| {
                    let known = Part::ALL.map(Part::name).join(", ");
                    format!("`{name}` is no part: {known}")
                })?);
            }
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

/// The parts that are asked for: beside a device that is named the native one only by its own name,
/// since it runs on softdev.
fn parts(options: &Options) -> impl Iterator<Item = Part> {
    let is_asked_for = |part: &Part| match options.part {
        Some(only) => only == *part,
        None => options.device.is_none() || part.is_of_device(),
    };
    Part::ALL.into_iter().filter(is_asked_for)
}

/// The device of a part where one is named.
fn device_of(part: Part, named: &str) -> &str {
    if part != Part::Native || named.starts_with("softdev") {
        return named;
    }
    eprintln!("xtask: parity: the native part is measured on {SOFTDEV}, not on {named}: it is softdev's");
    SOFTDEV
}

/// Measures each part on the machine that it needs: inside a virtual one by running this program
/// again there.
fn start(options: &Options, mut parts: impl Iterator<Item = Part>, words: &[String]) -> Result<()> {
    shell::run(&["cargo", "build", "--release", "--quiet"])?;
    parts.try_for_each(|part| match part.is_booted() {
        true => boot_for(part, words),
        false => measure(options, part, SOFTDEV),
    })
}

/// Gives this program the lowest real-time priority, or takes it back; whatever it starts has the
/// same. Then nobody else on this machine gets between, where that is allowed: whether it is.
fn go_first(goes_first: bool) -> bool {
    let how = if goes_first { ["--rr", "1"] } else { ["--other", "0"] };
    let own = std::process::id().to_string();
    shell::works(&["chrt", how[0], "--pid", how[1], &own])
}

fn boot_for(part: Part, words: &[String]) -> Result<()> {
    let program = shell::program()?;
    let before = if part.is_of_sockets() { BUFFERS } else { SOFTIRQS_FIRST };
    let mut command: Vec<OsString> =
        ["--timeout", LIMIT_S, "--before", before, "--"].map(OsString::from).into();
    if part.is_counted() {
        command.insert(0, "--counted".into());
    }
    command.push(program.into());
    command.push("parity".into());
    command.extend(words.iter().map(OsString::from));
    command.extend(["--part", part.name(), "--device", "rxe0"].map(OsString::from));
    let status = vm::status(command.into_iter())?;
    ensure!(status == 0, "the virtual machine's exit status is {status}");
    Ok(())
}

/// All rounds of a part on a device of this machine, or of the one that we are in.
fn measure(options: &Options, part: Part, device: &str) -> Result<()> {
    let amount = if options.quick { Amount::Quick } else { Amount::Full };
    let (least, most) =
        if part == Part::Mpi { (ROUNDS_OF_MPI, ROUNDS_OF_MPI) } else { (ROUNDS_MIN, ROUNDS_MAX) };
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { most });
    let program = shell::root().join("target/release/rdmascope");
    let scratch = std::env::temp_dir().join(format!("parity-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    // In the virtual machine nobody else runs.
    let goes_first = part == Part::Native && go_first(true);
    let points = plan::points(part, amount, &options.only).into_iter().filter(can_be_measured);
    let mut rows: Vec<Row> = points.map(Row::new).collect();
    for round in 0..rounds {
        let wanting = rows.iter_mut().filter(|row| round < least || !row.is_steady());
        let wanting: Vec<&mut Row> = wanting.collect();
        if wanting.is_empty() {
            break;
        }
        eprintln!("xtask: parity: round {}, {} points", round + 1, wanting.len());
        for row in wanting {
            // Whoever is first finds the caches of the one before: that changes from round to
            // round.
            for is_ours in [!round.is_multiple_of(2), round.is_multiple_of(2)] {
                let value = if is_ours {
                    ours::measure(&program, device, &row.point, &scratch.join("record"))
                } else {
                    measure_theirs(&row.point, &program, device, &scratch)
                };
                if options.is_verbose {
                    let text = value.as_ref().map_or_else(|error| format!("{error:#}"), f64::to_string);
                    eprintln!("{} {text}", row.label(is_ours));
                }
                row.add(is_ours, value);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    let priority = if goes_first { ", with real-time priority" } else { "" };
    if goes_first {
        go_first(false);
    }
    println!("# part: {}{priority}\n{}", part.name(), table::print(&rows));
    let empty = rows.iter().filter(|row| row.is_empty()).count();
    ensure!(empty == 0, "{empty} points were not measured by both");
    Ok(())
}

/// Whether their program is there. What nobody has built is said not to be measured.
fn can_be_measured(point: &Point) -> bool {
    let lacks = if point.part == Part::Mpi { mpi::lacks(point) } else { None };
    if let Some(why) = &lacks {
        let Point { test, service, size_bytes, .. } = point;
        eprintln!("xtask: parity: {test} {service} {size_bytes} B is not measured: {why}");
    }
    lacks.is_none()
}

/// Measures a point once with their tool, which `program` starts where it runs on softdev.
fn measure_theirs(point: &Point, program: &Path, device: &str, scratch: &Path) -> Result<f64> {
    if point.part.is_of_sockets() {
        return sockets::measure(point);
    }
    match point.tool {
        Tool::Imb | Tool::Linked | Tool::Osu => mpi::measure(point, scratch),
        Tool::Iperf3 | Tool::Sockperf => unreachable!("they know sockets alone"),
        Tool::Perftest => perftest::measure(program, point, device),
        Tool::Qperf => qperf::measure(point, device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that words ask for, with the devices that they name.
    fn asked(words: &str) -> Vec<(Part, Option<String>)> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let options = options(&words).unwrap();
        let device = |part| options.device.as_deref().map(|named| device_of(part, named).to_owned());
        parts(&options).map(|part| (part, device(part))).collect()
    }

    #[test]
    fn the_native_part_is_measured_on_softdev_only() {
        let on = |device: &str| Some(device.to_owned());
        assert_eq!(asked("--quick"), Part::ALL.map(|part| (part, None)));
        assert_eq!(asked("--device rxe0"), [Part::Counted, Part::Timed].map(|part| (part, on("rxe0"))));
        assert_eq!(asked("--part timed --device rxe0"), [(Part::Timed, on("rxe0"))]);
        assert_eq!(asked("--part native"), [(Part::Native, None)]);
        assert_eq!(asked("--part native --device rxe0"), [(Part::Native, on(SOFTDEV))]);
        assert_eq!(asked("--device softdev1 --part native"), [(Part::Native, on("softdev1"))]);
    }
}
