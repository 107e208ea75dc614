//! The command line: one definition for the parser, `--help`, the man page and the shell completions.

mod circumstances;
mod fan_out;
mod one_way;
mod open_loop;
mod overhead;
mod pages;
mod pairs;
mod pipeline;
mod placement;
mod sockets;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::path::PathBuf;

use bench::plan::Settings;
use bench::point::{Operation, Service};
use clap::{Args, Parser, Subcommand};
use measure::units;

pub(crate) use self::circumstances::Circumstances;
pub(crate) use self::fan_out::{FanOut, FanOutFlags, FanOutOperation, FanOutRead};
pub(crate) use self::one_way::{Burst, OneWay, OneWayOperation};
pub(crate) use self::open_loop::{OpenLoop, OpenLoopFlags, OpenLoopOperation};
pub(crate) use self::overhead::OverheadArguments;
pub(crate) use self::pages::{completions, man};
pub(crate) use self::pairs::{Pairs, PairsFlags, PairsOperation};
pub(crate) use self::pipeline::{Pipeline, PipelineNode};
pub(crate) use self::placement::{
    Location, NetFlags, Placement, Places, PlanPlacement, PortFlags, Site, SocketPlacement,
};
pub(crate) use self::sockets::{
    SocketBandwidth, SocketFlags, SocketMessages, SocketOneWay, SocketRanks, Sockets,
};
use crate::advise::AdviseArguments;
use crate::agent::{AgentArguments, HostArguments};
use crate::devices::DevicesArguments;
use crate::doctor::DoctorArguments;
use crate::exec::ExecArguments;
use crate::import::{EXAMPLES as IMPORT_EXAMPLES, ImportArguments};

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
  rdmascope pairs write                up to 8 pairs, who begin together
  rdmascope open-loop send --loaders 0,4
                                       at a set rate, while 4 others load it
  rdmascope pipeline shmem --local     samples at a rate, and the steps missed
  rdmascope overhead --local           what each call costs: post, poll, register
  rdmascope advise --local             which service, how to poll, inline or not
  rdmascope run quick --hosts node1,node2 --via 'ssh {host}'
                                       the same between two hosts
  rdmascope model gamess-2016          what a published latency is made of
  rdmascope devices                    what can be measured here
  rdmascope doctor                     what would spoil it, and what mends that
  rdmascope exec ibv_devinfo           any verbs program, on the software device

Results go to standard output, everything else to standard error.

Exit status:
  0  done
  1  could not run or did not finish
  2  wrong usage or plan";

const RUN_EXAMPLES: &str = "\
Examples:
  rdmascope run plans/quick.toml
  rdmascope run quick --out /tmp/first-run
  rdmascope run gamess-2016 --quick --set repetitions=3
  rdmascope run quick --set size_bytes=64,1KiB --set experiment.latency.service=RC
  rdmascope run quick --cpus 2,3       rank 0 on CPU 2, rank 1 on CPU 3
  rdmascope run quick --hosts red,blue --via 'ip netns exec {host}'";

const LAT_EXAMPLES: &str = "\
Examples:
  rdmascope lat send --local           2 B over RC, 1000 messages, both ends here
  rdmascope lat send --local -s 4KiB -n 100000 -c UC
  rdmascope lat send --local -a -I 64  all sizes, up to 64 B inline
  rdmascope lat send --local -e -D 10  sleep for completions, for ten seconds
  rdmascope lat send --listen 0.0.0.0  on node7: waits, and prints the key
  rdmascope lat send node7 --key KEY -a -c UC
                                       on another host: measures with node7";

const LAT_ONE_SIDED_EXAMPLES: &str = "\
Examples:
  rdmascope lat write --local -a       half a round trip; the target polls its memory, as in ib_write_lat
  rdmascope lat write --local --imm    the target is told by a completion
  rdmascope lat read --local -s 4KiB   the whole round trip, as in ib_read_lat
  rdmascope lat atomic --local -A CMP_AND_SWAP";

const BW_EXAMPLES: &str = "\
Examples:
  rdmascope bw send --local            64 KiB over RC, both ends here
  rdmascope bw send --local -b         both directions at once
  rdmascope bw send --local -c UD -s 1KiB -t 64 -Q 16
  rdmascope bw write --local -q 4 -l 16
                                       four queue pairs, lists of sixteen
  rdmascope bw read --listen 0.0.0.0   on node7: waits, and prints the key
  rdmascope bw read node7 --key KEY -a --report_gbits
                                       on another host: measures with node7";

const PLANS_EXAMPLES: &str = "\
Examples:
  rdmascope plans
  rdmascope plans quick > my-plan.toml
  rdmascope run my-plan.toml";

const REPORT_EXAMPLES: &str = "\
Examples:
  rdmascope report runs/quick-2026-01-31T120000Z
  rdmascope report first-run -o first-run.html
  rdmascope report first-run --text    the tables that the run printed";

const MODEL_EXAMPLES: &str = "\
Examples:
  rdmascope model gamess-2016          what Tables 2 to 4 of the paper are made of
  rdmascope model gamess-2016 --fit SDR,QDR
                                       how well these two rates tell the others
  rdmascope model first-run            the same of what a run measured
  rdmascope run models --out m && rdmascope model m
                                       all models of a device, from what they need";

/// Evaluates a network from RDMA verbs up to the application, with every message timed.
#[derive(Debug, Parser)]
#[command(name = "rdmascope", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what a plan says and write a report.
    Run(RunArguments),
    /// Measure latency, from flags that perftest's users know.
    #[command(after_help = LAT_EXAMPLES, arg_required_else_help = true)]
    Lat(Latency),
    /// Measure throughput, from flags that perftest's users know.
    #[command(after_help = BW_EXAMPLES, arg_required_else_help = true)]
    Bw(Bandwidth),
    /// Measure messages one way, with stamps of both ends.
    #[command(after_help = one_way::EXAMPLES, arg_required_else_help = true)]
    OneWay(OneWay),
    /// Measure one to n, n to one: rounds in which one rank sends to n others and all answer.
    #[command(after_help = fan_out::EXAMPLES, arg_required_else_help = true)]
    FanOut(FanOut),
    /// Measure several pairs that do the same at the same time.
    #[command(after_help = pairs::EXAMPLES, arg_required_else_help = true)]
    Pairs(Pairs),
    /// Measure messages at a set rate, each from when it is due, while other ranks load the device.
    #[command(after_help = open_loop::EXAMPLES, arg_required_else_help = true)]
    OpenLoop(OpenLoop),
    /// Measure samples at a fixed rate: how late each arrives, and how many steps are missed.
    #[command(after_help = pipeline::EXAMPLES, arg_required_else_help = true)]
    Pipeline(Pipeline),
    /// Measure what each call of a program costs its CPU: posts, polls, registration, set-up.
    #[command(after_help = overhead::EXAMPLES, arg_required_else_help = true)]
    Overhead(OverheadArguments),
    /// Measure ways to send and recommend one, with what each step away from it costs.
    Advise(AdviseArguments),
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
    },
    /// Write the report of a run again, from its record alone.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Read logs of VILLASnode as a record, beside which new ones can be put.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Fit models to latencies over size, to bursts and to one to n; show where they fail, and what a link carries at best.
    #[command(after_help = MODEL_EXAMPLES)]
    Model(ModelArguments),
    /// Print the completions of a shell, e.g. for /etc/bash_completion.d.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, e.g. for `rdmascope man | man -l -`.
    Man,
    /// Serve a coordinator on standard input and output. Started by `run`, not by people.
    #[command(hide = true)]
    Agent(AgentArguments),
    /// Take back what an agent changes on this host when it ends. Started by agents, not by people.
    #[command(hide = true)]
    Guard(HostArguments),
}

#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    /// A plan's file, or the name of one that comes with the program (see `rdmascope plans`).
    pub(crate) plan: String,
    /// The quick form: the same figures from fewer messages and sizes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Directory for the record and the report; it must not hold a run [default: runs/PLAN-TIME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Change a setting or an axis: KEY=VALUE for all experiments or experiment.NAME.KEY=VALUE.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print the resolved plan as JSON and measure nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) placement: PlanPlacement,
}

#[derive(Args, Debug)]
pub(crate) struct Latency {
    #[command(subcommand)]
    pub(crate) operation: LatencyOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LatencyOperation {
    /// Send to a posted receive: half the round trip of a ping-pong.
    #[command(after_help = LAT_EXAMPLES)]
    Send(Pushed<Flags>),
    /// RDMA Write: half the round trip of a ping-pong whose ends poll their memory.
    #[command(after_help = LAT_ONE_SIDED_EXAMPLES)]
    Write(Pushed<Flags>),
    /// RDMA Read: the whole round trip.
    #[command(after_help = LAT_ONE_SIDED_EXAMPLES)]
    Read(Flags),
    /// Atomic operation on eight bytes: the whole round trip.
    #[command(after_help = LAT_ONE_SIDED_EXAMPLES)]
    Atomic(Atomic<Flags>),
    #[command(flatten)]
    Sockets(Sockets<SocketFlags>),
}

/// A benchmark of Send or RDMA Write.
#[derive(Args, Debug)]
pub(crate) struct Pushed<F: Args> {
    /// With immediate data, which consumes a receive at the target.
    #[arg(long)]
    pub(crate) imm: bool,
    #[command(flatten)]
    pub(crate) flags: F,
}

impl<F: Args> Pushed<F> {
    /// The first operation, or the one with immediate data, and the flags.
    pub(crate) fn choose(&self, without: Operation, with: Operation) -> (Operation, &F) {
        (if self.imm { with } else { without }, &self.flags)
    }
}

/// A benchmark of atomics.
#[derive(Args, Debug)]
pub(crate) struct Atomic<F: Args> {
    /// Which atomic.
    #[arg(
        short = 'A',
        long = "atomic_type",
        value_name = "TYPE",
        default_value = "FETCH_AND_ADD",
        ignore_case = true,
        value_parser = words::atomics()
    )]
    pub(crate) atomic: Operation,
    #[command(flatten)]
    pub(crate) flags: F,
}

#[derive(Args, Debug)]
pub(crate) struct Bandwidth {
    #[command(subcommand)]
    pub(crate) operation: BandwidthOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BandwidthOperation {
    /// Send to a posted receive: a flood with a bounded window.
    #[command(after_help = BW_EXAMPLES)]
    Send(Pushed<BandwidthFlags>),
    /// RDMA Write: a flood that the target does not see.
    #[command(after_help = BW_EXAMPLES)]
    Write(Pushed<BandwidthFlags>),
    /// RDMA Read: as many under way as the devices allow.
    #[command(after_help = BW_EXAMPLES)]
    Read(BandwidthFlags),
    /// Atomic operations on eight bytes.
    #[command(after_help = BW_EXAMPLES)]
    Atomic(Atomic<BandwidthFlags>),
    #[command(flatten)]
    Sockets(Sockets<SocketBandwidth>),
}

#[derive(Args, Debug)]
pub(crate) struct BandwidthFlags {
    /// Both directions at once.
    #[arg(short = 'b', long)]
    pub(crate) bidirectional: bool,
    /// Print 10^9 bit/s instead of 2^20 B/s.
    #[arg(long = "report_gbits", alias = "report-gbits")]
    pub(crate) report_gbits: bool,
    /// Tell the device of N sends at once.
    #[arg(short = 'l', long = "post_list", alias = "post-list", value_name = "N")]
    pub(crate) post_list: Option<u32>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// The letters of perftest, with their meaning, for the two ends of a benchmark.
#[derive(Args, Debug)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) messages: Messages,
    /// Queue pairs, which messages take in turn.
    #[arg(short = 'q', long, value_name = "N")]
    pub(crate) qp: Option<u32>,
    #[command(flatten)]
    pub(crate) site: Site,
}

/// A benchmark whose ranks are all started by this command.
#[derive(Args, Debug)]
pub(crate) struct AllRanks<M: Args = Messages, P: Args = Placement> {
    /// Print 10^9 bit/s instead of 2^20 B/s.
    #[arg(long = "report_gbits", alias = "report-gbits")]
    pub(crate) report_gbits: bool,
    #[command(flatten)]
    pub(crate) messages: M,
    /// Keep the record and a report in this directory; it must not hold a run.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) placement: P,
}

/// How much is measured.
#[derive(Args, Debug)]
pub(crate) struct Amount {
    /// Message sizes: one such as 64 or 4KiB, several with commas, or a range of powers of two such as 4..1MiB
    /// [default: 2; of throughput 64KiB, over UDP 1452; one-way 32; fan-out 1; atomics 8].
    #[arg(short = 's', long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// All powers of two from 2 B to 8 MiB (of datagrams: to the longest).
    #[arg(short = 'a', long, conflicts_with = "size")]
    pub(crate) all: bool,
    /// Messages per size.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) iters: Option<u64>,
    /// Seconds per size, instead of a number of messages.
    #[arg(
        short = 'D',
        long,
        value_name = "SECONDS",
        conflicts_with = "iters",
        allow_negative_numbers = true
    )]
    pub(crate) duration: Option<f64>,
    /// Measure again, 3 times at least, until the mean over the repetitions is known so near at 95 % confidence: 2.5% is what
    /// netperf has as -I 95,5.
    #[arg(long, value_name = "PERCENT", value_parser = units::parse_percent)]
    pub(crate) within: Option<f64>,
    /// How often at most, with --within [default: 30].
    #[arg(long, value_name = "N", requires = "within")]
    pub(crate) repetitions_max: Option<u32>,
}

impl Amount {
    /// How much that is, but for the sizes.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            iterations: self.iters,
            duration_s: self.duration,
            within: self.within,
            repetitions_max: self.repetitions_max,
            ..Settings::default()
        }
    }
}

/// What is sent, how, and under what circumstances.
#[derive(Args, Debug)]
pub(crate) struct Messages {
    #[command(flatten)]
    pub(crate) amount: Amount,
    /// Transport service [default: RC; of multicast UD].
    #[arg(short = 'c', long, value_name = "SERVICE", ignore_case = true)]
    #[arg(value_parser = words::words::<Service>())]
    pub(crate) connection: Option<Service>,
    /// Ask for a completion with every N-th send.
    #[arg(short = 'Q', long, value_name = "N")]
    pub(crate) cq_mod: Option<u32>,
    /// Send messages of up to this size inline [default: 0, none].
    #[arg(short = 'I', long, value_name = "SIZE", value_parser = units::parse_size, default_value = "0")]
    #[arg(hide_default_value = true)]
    pub(crate) inline_size: u64,
    /// Sleep for completions instead of polling.
    #[arg(short = 'e', long)]
    pub(crate) events: bool,
    /// Gather each message from N elements and scatter it to N.
    #[arg(long, value_name = "N")]
    pub(crate) sge: Option<u32>,
    /// RDMA Reads or atomics of a queue pair under way [default: as many as the devices allow].
    #[arg(short = 'o', long, value_name = "N")]
    pub(crate) outs: Option<u32>,
    #[command(flatten)]
    pub(crate) circumstances: Circumstances,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Directory of the run.
    pub(crate) run: PathBuf,
    /// File to write [default: report.html in the run's directory].
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the tables instead of writing a file.
    #[arg(long, conflicts_with = "output")]
    pub(crate) text: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ModelArguments {
    /// Directory of a run, or a plan with published latencies: the name of one that comes with the program, or a file.
    #[arg(value_name = "RUN|PLAN")]
    pub(crate) subject: PathBuf,
    /// Rates that the model of all rates is fitted to [default: the slowest and the fastest].
    #[arg(long, value_name = "RATE,RATE", value_delimiter = ',', num_args = 1)]
    pub(crate) fit: Vec<String>,
}
