//! `cargo xtask bench`: the project's performance claims, and a comparison of softdev with other
//! programs that move bytes between two processes of a host.
//!
//! ```text
//! plan.rs ─► rounds.rs, with place.rs and a file for each program ─► table.rs
//! link.rs: the link model; one_way.rs: time stamps; files.rs: file transfers;
//! fleet.rs: large fleets; claims.rs: absolute claims
//! ```
//!
//! In each round, the items of a row are measured one right after the other, in alternating order.
//! When a hypervisor moves the two CPUs, communication between them becomes up to forty times
//! slower or faster within seconds. So the core-to-core latency is measured before and after each
//! item, and an item during which it changed does not count. All results are ratios of two
//! measurements of one round with the same core-to-core latency.

mod claims;
mod fabric;
mod files;
mod fleet;
mod link;
mod mpi;
mod one_way;
mod ours;
mod place;
mod plan;
mod process;
mod rounds;
mod table;
mod ucx;
mod value;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use crate::shell;

const USAGE: &str = "\
usage: cargo xtask bench [--only WORD] [--rounds N] [--cpus A,B] [--verbose]

Compares softdev with UCX (ucx_perftest), libfabric (fi_pingpong) and Open MPI over shared memory, and with the raw limits of
the two CPUs, in alternating order, and prints whether each goal is met. Then checks the rate and the latency of a link model,
also by the time stamps of both ranks; compares file transfers with cp, rsync and tar; and measures the cost of a time stamp,
what `rdmascope exec` adds to a write(2), the time and size of the report of twenty million samples, the time of
`rdmascope --version`, the time and memory of up to 1000 agents of a fleet, and the time of the schedule and model of 10,000
hosts. Exit status 1 if a goal is missed.

  --only WORD    only rows whose name contains WORD: send, write, stream, unread, rate, eager, tag, tag-large, ranks,
                 ranks-large, link-rate, link-latency, one-way-link, one-way-half, transfer-memory, transfer-file,
                 transfer-small, transfer-mixed, transfer-busy, transfer-to-memory, fleet-agents, fleet-model, stamp, report,
                 interposed, start
  --rounds N     the number of rounds (default 5)
  --cpus A,B     the two CPUs (default 0,1)
  --verbose      prints every measurement";

/// The default number of rounds.
const ROUNDS: usize = 5;

/// The options of the command line.
struct Options {
    only: String,
    rounds: usize,
    cpus: [String; 2],
    is_verbose: bool,
    help: bool,
}

/// Measures every claim, prints tables, and fails if a claim does not hold.
pub(crate) fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    if let [word, words @ ..] = words.as_slice()
        && word == process::START
    {
        let Err(error) = process::start(words);
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    let options = match options(words.into_iter()) {
        Ok(options) if options.help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(error) => {
            eprintln!("xtask: bench: {error:#}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = measure(&options) {
        eprintln!("xtask: bench: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options> {
    let cpus = ["0", "1"].map(str::to_owned);
    let mut options = Options { only: String::new(), rounds: ROUNDS, cpus, is_verbose: false, help: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--only" => options.only = value()?,
            "--rounds" => options.rounds = value()?.parse().context("--rounds needs a number")?,
            "--cpus" => {
                let text = value()?;
                let is_cpu = |word: &str| word.parse::<u16>().is_ok();
                let two = text.split_once(',').filter(|(a, b)| is_cpu(a) && is_cpu(b) && a != b);
                let (a, b) =
                    two.with_context(|| format!("--cpus needs two CPUs such as 0,1, not `{text}`"))?;
                options.cpus = [a.to_owned(), b.to_owned()];
            }
            "--verbose" => options.is_verbose = true,
            "--help" | "-h" => options.help = true,
            other => bail!("unknown option `{other}` (--help lists the options)"),
        }
    }
    ensure!(options.rounds > 0, "--rounds needs at least 1");
    let rows = plan::rows()
        .into_iter()
        .map(|row| row.name)
        .chain(link::NAMES)
        .chain(one_way::NAMES)
        .chain(files::NAMES)
        .chain(fleet::NAMES)
        .chain(claims::NAMES);
    let names: Vec<&str> = rows.collect();
    let is_known = names.iter().any(|name| name.contains(&options.only));
    ensure!(is_known, "no row's name contains `{}`; the rows are {}", options.only, names.join(", "));
    Ok(options)
}

fn measure(options: &Options) -> Result<()> {
    shell::run(&["cargo", "build", "--release", "--quiet", "-p", "rdmascope", "-p", "baseline"])?;
    let scratch = shell::root().join("target/bench");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let mut broken = Vec::new();
    let rows = plan::rows().into_iter().filter(|row| row.name.contains(&options.only)).collect();
    let bench = rounds::Bench { cpus: &options.cpus, scratch: &scratch, is_verbose: options.is_verbose };
    let results = bench.run(rows, options.rounds)?;
    if !results.is_empty() {
        println!("{}", table::print(&results, &mut broken));
    }
    link::run(&scratch, &options.only, &mut broken)?;
    one_way::run(&scratch, &options.only, &mut broken)?;
    files::run(&scratch, &options.only, &mut broken)?;
    fleet::run(&scratch, &options.only, &mut broken)?;
    claims::run(&scratch, &options.only, &mut broken)?;
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Options> {
        options(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let asked = of("--only write --rounds 3 --cpus 2,5 --verbose").unwrap();
        assert_eq!((asked.only.as_str(), asked.rounds, asked.is_verbose), ("write", 3, true));
        assert_eq!(asked.cpus, ["2", "5"]);
        assert_eq!(of("").unwrap().rounds, ROUNDS);
    }

    #[test]
    fn bad_options_are_told() {
        for (words, told) in [
            ("--rounds", "--rounds needs a value"),
            ("--rounds many", "--rounds needs a number"),
            ("--rounds 0", "--rounds needs at least 1"),
            ("--cpus 1,1", "--cpus needs two CPUs such as 0,1, not `1,1`"),
            ("--cpus 1", "--cpus needs two CPUs such as 0,1, not `1`"),
            ("--fast", "unknown option `--fast` (--help lists the options)"),
            (
                "--only gather",
                "no row's name contains `gather`; the rows are send, write, stream, unread, rate, eager, tag, \
                 tag-large, ranks, ranks-large, link-rate, link-latency, one-way-link, one-way-half, \
                 transfer-memory, transfer-file, transfer-small, transfer-mixed, transfer-busy, \
                 transfer-to-memory, fleet-agents, fleet-model, stamp, report, interposed, start",
            ),
        ] {
            assert_eq!(of(words).err().map(|error| error.to_string()).as_deref(), Some(told));
        }
    }
}
