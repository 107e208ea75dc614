//! The command line: one definition for the parser, `--help`, the man page and the shell
//! completions.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::advise::AdviseArguments;
use crate::agent::{AgentArguments, HostArguments};
use crate::cli::{benchmark, known};
use crate::compare::trend::{EXAMPLES as TREND_EXAMPLES, TrendArguments};
use crate::compare::{CompareArguments, EXAMPLES as COMPARE_EXAMPLES};
use crate::devices::DevicesArguments;
use crate::doctor::DoctorArguments;
use crate::exec::ExecArguments;
use crate::export::{EXAMPLES as EXPORT_EXAMPLES, ExportArguments};
use crate::fleet::{EXAMPLES as FLEET_EXAMPLES, FleetArguments};
use crate::import::{EXAMPLES as IMPORT_EXAMPLES, ImportArguments};
use crate::init::InitArguments;
use crate::model::{EXAMPLES as MODEL_EXAMPLES, ModelArguments};
use crate::pages::ManArguments;
use crate::report::{EXAMPLES as REPORT_EXAMPLES, ReportArguments};
use crate::run::{EXAMPLES as RUN_EXAMPLES, RunArguments};
use crate::stdout::Colour;
use crate::transfer::TransferArguments;

const EXAMPLES: &str = "\
Examples:
  rdmascope run quick                  measures this machine and writes a report
  rdmascope run gamess-2016 --quick    repeats a paper, its numbers beside yours
  rdmascope lat send --local -c UD     latency of datagrams on this host
  rdmascope lat read                   a server, which waits for its client
  rdmascope bw write --local -a        throughput of all sizes from 2 B to 8 MiB
  rdmascope lat send --local --expect 'p99 <= 20us'
                                       ends with status 3 if it takes longer
  rdmascope lat tcp --local            latency over TCP, as netperf's TCP_RR
  rdmascope one-way send --local       one-way latency of every message
  rdmascope fan-out send               from one rank to several ranks and back
  rdmascope pairs write                several pairs of ranks at the same time
  rdmascope open-loop send --loaders 0,4
                                       a set rate, without and with 4 loaders
  rdmascope osu_latency -m 8:4096      names of the OSU benchmarks and of IMB:
                                       osu_bw, osu_put_bw, PingPong, Allreduce
  rdmascope pipeline shmem --local     samples at a set rate, and missed steps
  rdmascope overhead --local           cost of verbs calls: post, poll, register
  rdmascope advise --local             recommends service, polling and more
  rdmascope run quick --hosts node1,node2 --via 'ssh {host}'
                                       the plan quick between two hosts
  rdmascope export runs/* > all.csv    numbers for pandas, Prometheus, CI
  rdmascope model gamess-2016          fits models to the latencies of a paper
  rdmascope compare before after       says whether the new run is worse
  rdmascope devices                    lists devices, ports, GIDs and MPI
  rdmascope doctor                     finds settings that spoil measurements
  rdmascope exec ibv_devinfo           runs a program on the software device
  rdmascope transfer DIR --to /backup  sends files and trees, over verbs or TCP

Values of options and of plans:
  times   10, 500ms, 5us, 2min, 1h     a number alone is seconds, and in a plan
                                       the unit of its key: pause_ns = 5 is 5 ns
  counts  1000, 10k, 2M, 1e6           k, M and G are powers of ten
  rates   500, 10k, 2.5MHz, 1e5/s      per second
  sizes   64, 4KiB, 4K, 1MB            K is KiB, 1024 bytes; kB is 1000 bytes
  shares  2.5%, 2.5                    in percent
  limits  5us, 0.1%, 10Gb/s            of --expect: with a unit, unless it is 0

Tables fit the terminal; COLUMNS sets another width, and --color auto, always or
never their colours (NO_COLOR=1 turns them off).

Results, with the lines that explain them, go to standard output; progress,
notices and errors go to standard error.

Exit status:
  0  done
  1  could not run or did not finish, or a fleet is not decided, or single
     sessions are too few to say why they differ
  2  wrong usage or plan
  3  an expectation is not met, or a comparison or a fleet found something worse
  4  some points failed, and the others were measured
  126, 127  exec: the program cannot be started, or there is no such program
  130, 143  stopped by SIGINT (Ctrl-C) or SIGTERM; finished points are kept";

/// What rdmascope says when it is called without a command.
pub(crate) const START: &str = "\
rdmascope measures RDMA and socket networks, from verbs up to the application,
and times every message.

To start:
  rdmascope run quick          measures this machine in seconds, writes a report
  rdmascope doctor             finds settings of this host that spoil numbers
  rdmascope lat send --local   latency between two processes, like ib_send_lat
  rdmascope plans              lists the plans, among them published evaluations
  rdmascope --help             lists all commands, with examples

Usage: rdmascope COMMAND [OPTIONS]
";

const PLANS_EXAMPLES: &str = "\
Examples:
  rdmascope plans
  rdmascope plans quick > my-plan.toml
  rdmascope run my-plan.toml";

/// Measures RDMA and socket networks, from verbs up to the application, and times every message.
#[derive(Debug, Parser)]
#[command(name = "rdmascope", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// When tables have colours: auto (in a terminal, unless NO_COLOR is set), always or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    #[arg(hide_possible_values = true, display_order = 1000)]
    pub(crate) color: Colour,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Returns the whole command line: the commands of this file, with the commands of patterns listed
/// after `run`.
pub(crate) fn command() -> clap::Command {
    let mut place = LAST;
    let last = |sub: clap::Command| {
        place += 1;
        let is_run = sub.get_name() == "run";
        sub.display_order(if is_run { 0 } else { place })
    };
    let known = known::commands().map(|command| command.display_order(LAST));
    let patterns = benchmark::commands().map(|command| command.display_order(1));
    Cli::command().mut_subcommands(last).subcommands(patterns).subcommands(known)
}

/// Position of the other commands in the help: after `run` and the patterns.
const LAST: usize = 1;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the points of a plan and write a report.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Measure configurations of sending and recommend one, with the cost of each change to it.
    Advise(Box<AdviseArguments>),
    /// List the RDMA devices of this host with their ports and GIDs, and its MPI libraries.
    Devices(DevicesArguments),
    /// Check this host for settings that spoil measurements, and suggest fixes.
    Doctor(DoctorArguments),
    /// Run a program that uses RDMA verbs, unmodified, on the software device.
    Exec(ExecArguments),
    /// Measure pairs of many hosts, and say which host, pair or group is slow.
    #[command(after_help = FLEET_EXAMPLES)]
    Fleet(Box<FleetArguments>),
    /// Print the plan of a measuring command, to start one of your own from.
    Init(InitArguments),
    /// List the plans that come with the program, or print one.
    #[command(after_help = PLANS_EXAMPLES)]
    Plans {
        /// Print this plan, for example as the start of your own.
        name: Option<String>,
        /// Print the reference of all keys of a plan.
        #[arg(long, conflicts_with = "name")]
        reference: bool,
    },
    /// Write the report of a run again, from its record alone.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Write the numbers or samples of runs for other programs: CSV, JSON, metrics, test results.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Convert logs of VILLASnode to a record, to compare new measurements with it.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Fit models to latency over size, of bursts and of one to many; show their errors and the
    /// link limit.
    #[command(after_help = MODEL_EXAMPLES)]
    Model(ModelArguments),
    /// Say whether a new side is worse than a base: two records, or two commands measured by turns.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareArguments>),
    /// Find where a series of runs changes.
    #[command(after_help = TREND_EXAMPLES)]
    Trend(TrendArguments),
    /// Print the completions for a shell, e.g. for /etc/bash_completion.d.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of a command; `rdmascope man lat send | man -l -` shows it.
    Man(ManArguments),
    /// Send files and trees to another directory or host, over verbs or TCP.
    Transfer(Box<TransferArguments>),
    /// Serve a coordinator on standard input and output. Internal: commands that measure start it.
    #[command(hide = true)]
    Agent(AgentArguments),
    /// Start an MPI launcher and end it with the coordinator. Internal: commands that measure start
    /// it.
    #[command(hide = true)]
    Supervise {
        /// The launcher starts an application, which runs in this directory.
        #[arg(long)]
        program_in: Option<PathBuf>,
        /// Start nothing, and remove this directory when the coordinator ends.
        #[arg(long, conflicts_with_all = ["program_in", "words"])]
        remove: Option<PathBuf>,
        #[arg(required_unless_present = "remove", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Revert what an agent changed on this host when it ends. Internal: agents start it.
    #[command(hide = true)]
    Guard(HostArguments),
}

#[cfg(test)]
mod tests;
