//! `cargo xtask parity`: compares rdmascope with perftest and qperf on one device, with sockperf,
//! qperf and iperf3 over sockets, and with programs that are linked to an MPI, in alternating
//! order.
//!
//! ```text
//! plan.rs ─► rounds, with a file for each tool and for rdmascope ─► table.rs
//! ```
//!
//! Each round measures every point with both programs, one right after the other, in alternating
//! order. Comparisons on one CPU run in a machine whose clock counts instructions, where runs agree
//! to some tenths of a percent. A server and a client that poll need two CPUs. When a hypervisor
//! moves these CPUs apart, every program is slow for a while. So each program's best three runs are
//! compared, and a point is measured again until the three agree.

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

Compares rdmascope with perftest, qperf, sockperf, iperf3 or an MPI program, in alternating order, and prints two ratios for
each point: of the medians of all runs, and of the second best runs. A point is measured again until the best three runs of
each program agree within 3 %. There are six parts, with a table each. Three of them boot a virtual machine:

  counted   rxe0, with server and client on one CPU whose clock counts instructions, so that nothing else affects the times:
            operations that do not involve the target's program, by polling, and Send by events
  timed     rxe0, with server and client on one CPU each, both polling
  native    the same on softdev of this host. perftest runs under `rdmascope exec`. Messages are in the process's own memory,
            as perftest's are. Both programs have real-time priority if that is allowed
  sockets   TCP and UDP over the loopback of this host; server and client sleep until data arrives. Request/response is
            compared with sockperf and qperf, streams and their CPU time with iperf3
  sockets-counted
            the same in a virtual machine, on one CPU whose clock counts instructions; the socket buffers are large enough
            that no datagram is lost
  mpi       Open MPI and MPICH between two CPUs of this host, in ten rounds, by the ratio of the medians: compared with a loop
            of the same calls in C, and with the OSU Micro-Benchmarks and the Intel MPI Benchmarks if PATH or the directories
            in the variables OSU and IMB have them ({mpi} in these variables stands for openmpi or mpich)

  --part PART    only this part
  --quick        one round of fewer points, as in `cargo xtask ci --full`
  --rounds N     the most rounds (default 16); after round 3, only points whose runs do not agree are measured
  --only WORD    only tests whose name contains WORD, such as lat or ib_write
  --device NAME  measures this device of this host, without a virtual machine: the counted and the timed part. Other parts
                 do not use the device and are measured only by `--part`
  --verbose      prints every run";

/// The longest time of a part in the virtual machine, in seconds.
const LIMIT_S: &str = "5400";

/// The number of rounds that measure every point, and of all rounds.
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 16;
/// The number of rounds of MPI, whose medians are compared.
const ROUNDS_OF_MPI: usize = 10;

/// rxe works in softirqs. If there are many, the kernel defers them to ksoftirqd, which waits for
/// whole time slices of a program that polls; then half of all messages of any program take
/// milliseconds. With priority, ksoftirqd does not wait.
const SOFTIRQS_FIRST: &str =
    "for pid in $(ps -e | awk '/ksoftirqd/ { print $1 }'); do chrt -f -p 50 $pid; done";

/// Datagrams are lost if a socket buffer is full. In buffers for the datagrams of a whole time
/// slice, neither program loses any.
const BUFFERS: &str = "for limit in max default; do echo 4194304 > /proc/sys/net/core/rmem_$limit; done";

/// The device of the native part.
const SOFTDEV: &str = "softdev0";

/// The options of the command line.
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

/// `cargo xtask parity`.
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

/// Checks that every program prints every number, for the parts without a virtual machine. On a
/// shared machine, the ratios themselves say little.
pub(crate) fn quick() -> Result<()> {
    quick_of(|part| !part.is_booted())
}

/// The same for the parts in a virtual machine.
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
                    format!("unknown part `{name}`; the parts are {known}")
                })?);
            }
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = Some(value()?.parse().context("--rounds needs a number")?),
            "--only" => options.only = value()?.clone(),
            "--device" => options.device = Some(value()?.clone()),
            "--verbose" => options.is_verbose = true,
            "--help" | "-h" => options.help = true,
            other => bail!("unknown option `{other}` (--help lists the options)"),
        }
    }
    Ok(options)
}

/// The selected parts: with `--device`, only the parts that use the device, unless `--part` names
/// another part.
fn parts(options: &Options) -> impl Iterator<Item = Part> {
    let is_asked_for = |part: &Part| match options.part {
        Some(only) => only == *part,
        None => options.device.is_none() || part.is_of_device(),
    };
    Part::ALL.into_iter().filter(is_asked_for)
}

/// The device of a part if `--device` names a device.
fn device_of(part: Part, named: &str) -> &str {
    if part != Part::Native || named.starts_with("softdev") {
        return named;
    }
    eprintln!("xtask: parity: the native part measures {SOFTDEV}, not {named}: it compares on softdev only");
    SOFTDEV
}

/// Measures each part on the machine that it needs: in a virtual machine, this program runs again.
fn start(options: &Options, mut parts: impl Iterator<Item = Part>, words: &[String]) -> Result<()> {
    shell::run(&["cargo", "build", "--release", "--quiet"])?;
    parts.try_for_each(|part| match part.is_booted() {
        true => boot_for(part, words),
        false => measure(options, part, SOFTDEV),
    })
}

/// Gives this program and the programs that it starts the lowest real-time priority, so that other
/// processes do not preempt them, or the normal priority. Returns whether that is allowed.
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

/// Measures all rounds of a part on a device of this host, or of the virtual machine in which this
/// program runs.
fn measure(options: &Options, part: Part, device: &str) -> Result<()> {
    let amount = if options.quick { Amount::Quick } else { Amount::Full };
    let (least, most) =
        if part == Part::Mpi { (ROUNDS_OF_MPI, ROUNDS_OF_MPI) } else { (ROUNDS_MIN, ROUNDS_MAX) };
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { most });
    let program = shell::root().join("target/release/rdmascope");
    let scratch = std::env::temp_dir().join(format!("parity-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    // No other process runs in the virtual machine.
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
            // The second program inherits the caches of the first: the order alternates.
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
    ensure!(empty == 0, "{empty} points were not measured by both programs");
    Ok(())
}

/// Whether the other program of a point is installed. If not, prints that the point is not
/// measured.
fn can_be_measured(point: &Point) -> bool {
    let lacks = if point.part == Part::Mpi { mpi::lacks(point) } else { None };
    if let Some(why) = &lacks {
        let Point { test, service, size_bytes, .. } = point;
        eprintln!("xtask: parity: {test} {service} {size_bytes} B is not measured: {why}");
    }
    lacks.is_none()
}

/// Measures a point once with the other tool. `program` is rdmascope, which starts the tool on
/// softdev.
fn measure_theirs(point: &Point, program: &Path, device: &str, scratch: &Path) -> Result<f64> {
    if point.part.is_of_sockets() {
        return sockets::measure(point);
    }
    match point.tool {
        Tool::Imb | Tool::Linked | Tool::Osu => mpi::measure(point, scratch),
        Tool::Iperf3 | Tool::Sockperf => unreachable!("iperf3 and sockperf measure sockets only"),
        Tool::Perftest => perftest::measure(program, point, device),
        Tool::Qperf => qperf::measure(point, device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that options select, with their devices.
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
