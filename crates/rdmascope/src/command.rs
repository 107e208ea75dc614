//! The command line: one definition for the parser, `--help`, the man page and the shell
//! completions.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::advise::AdviseArguments;
use crate::agent::{AgentArguments, HostArguments};
use crate::cli::{benchmark, known};
use crate::devices::DevicesArguments;
use crate::doctor::DoctorArguments;
use crate::exec::ExecArguments;
use crate::import::{EXAMPLES as IMPORT_EXAMPLES, ImportArguments};
use crate::model::{EXAMPLES as MODEL_EXAMPLES, ModelArguments};
use crate::report::{EXAMPLES as REPORT_EXAMPLES, ReportArguments};
use crate::run::{EXAMPLES as RUN_EXAMPLES, RunArguments};
use crate::transfer::TransferArguments;

const EXAMPLES: &str = "\
Examples:
  rdmascope run quick                  a first look at this machine, with a report
  rdmascope run gamess-2016 --quick    a published evaluation beside your numbers
  rdmascope lat send --local -c UD     half the round trip of a datagram, here
  rdmascope lat read                   waits for a client on another terminal
  rdmascope bw write --local -a        throughput of all sizes from 2 B to 8 MiB
  rdmascope lat tcp --local            the same over sockets: TCP_RR, UDP_STREAM
  rdmascope one-way send --local       every message stamped at both ends
  rdmascope fan-out send               to 1 up to 15 others at once, and back
  rdmascope pairs write                up to 8 pairs that begin together
  rdmascope open-loop send --loaders 0,4
                                       at a set rate, while 4 others load it
  rdmascope osu_latency -m 8:4096      by names of the OSU benchmarks and of IMB:
                                       osu_bw, osu_put_bw, PingPong, Allreduce
  rdmascope pipeline shmem --local     samples at a rate, and the steps missed
  rdmascope overhead --local           what each call costs: post, poll, register
  rdmascope advise --local             which service, how to poll, inline or not
  rdmascope run quick --hosts node1,node2 --via 'ssh {host}'
                                       the same between two hosts
  rdmascope model gamess-2016          what a published latency is made of
  rdmascope devices                    what can be measured here
  rdmascope doctor                     what would spoil it, and what mends that
  rdmascope exec ibv_devinfo           any verbs program, on the software device
  rdmascope transfer DIR --to /backup  files and trees, over verbs or TCP

Results go to standard output, everything else to standard error.

Exit status:
  0  done
  1  could not run or did not finish
  2  wrong usage or plan";

const PLANS_EXAMPLES: &str = "\
Examples:
  rdmascope plans
  rdmascope plans quick > my-plan.toml
  rdmascope run my-plan.toml";

/// Evaluates a network from RDMA verbs up to the application, with every message timed.
#[derive(Debug, Parser)]
#[command(name = "rdmascope", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The whole command line: what is written here, and behind `run` the commands of patterns.
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

/// Commands that measure come before these in the help.
const LAST: usize = 1;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what a plan says and write a report.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Measure ways to send and recommend one, with what each step away from it costs.
    Advise(Box<AdviseArguments>),
    /// List what can be measured here.
    Devices(DevicesArguments),
    /// Find what keeps this host from measuring well, and say what mends it.
    Doctor(DoctorArguments),
    /// Run a program that uses RDMA verbs, unmodified, on the software device.
    Exec(ExecArguments),
    /// List the plans that come with the program, or print one.
    #[command(after_help = PLANS_EXAMPLES)]
    Plans {
        /// Print this plan, to start one of your own from it.
        name: Option<String>,
        /// Print the reference of all keys of a plan.
        #[arg(long, conflicts_with = "name")]
        reference: bool,
    },
    /// Write the report of a run again, from its record alone.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Read logs of VILLASnode as a record, beside which new ones can be put.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Fit models to latencies over size, to bursts and to one to n; show where they fail, and what
    /// a link carries at best.
    #[command(after_help = MODEL_EXAMPLES)]
    Model(ModelArguments),
    /// Print the completions of a shell, e.g. for /etc/bash_completion.d.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, e.g. for `rdmascope man | man -l -`.
    Man,
    /// Send files and trees to another directory or host, over verbs or TCP.
    Transfer(Box<TransferArguments>),
    /// Serve a coordinator on standard input and output. Started by `run`, not by people.
    #[command(hide = true)]
    Agent(AgentArguments),
    /// Start a launcher of MPI and end it with the coordinator. Started by `run`, not by people.
    #[command(hide = true)]
    Supervise {
        /// The launcher's ranks are a program of somebody else, which runs in this directory.
        #[arg(long)]
        program_in: Option<PathBuf>,
        /// Start nothing, and remove this directory in the end.
        #[arg(long, conflicts_with_all = ["program_in", "words"])]
        remove: Option<PathBuf>,
        #[arg(required_unless_present = "remove", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Take back what an agent changes on this host when it ends. Started by agents, not by people.
    #[command(hide = true)]
    Guard(HostArguments),
}
