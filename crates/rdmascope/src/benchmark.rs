//! `rdmascope lat`, `bw`, `one-way`, `fan-out`, `pairs` and `open-loop`: one benchmark from flags, through the same plan type
//! as everything else.

use std::process::ExitCode;

use bench::axis;
use bench::plan::{MTU_BYTES_MAX, Options, Plan, Settings, resolve};
use bench::point::{Flow, Operation, Pattern, Poll, Service};
use clap::Args;
use measure::figure::Unit;
use measure::units;

use crate::cli::{
    AllRanks, Atomic, BandwidthOperation, Burst, FanOutOperation, FanOutRead, Flags, LatencyOperation,
    Messages, OneWayOperation, OpenLoopOperation, PairsOperation, Places, Site,
};
use crate::execute::{Job, execute};
use crate::launch::launch;
use crate::sockets;

/// Largest size of `-a`: perftest's 2^23.
pub(crate) const ALL_MAX: u64 = 8 << 20;
/// Smallest size of `-a`: perftest's.
const ALL_MIN: u64 = 2;

/// A benchmark, whatever its operation.
struct Benchmark<'a> {
    /// The command, and what it measures.
    words: [&'static str; 2],
    operation: Operation,
    pattern: Pattern,
    messages: &'a Messages,
    settings: Settings,
}

/// `rdmascope lat ...`.
pub(crate) fn latency(operation: &LatencyOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (operation, flags) = match operation {
        LatencyOperation::Send(pushed) => pushed.choose(Operation::Send, Operation::SendImm),
        LatencyOperation::Write(pushed) => pushed.choose(Operation::Write, Operation::WriteImm),
        LatencyOperation::Read(flags) => (Operation::Read, flags),
        LatencyOperation::Atomic(Atomic { atomic, flags }) => (*atomic, flags),
        LatencyOperation::Sockets(sockets) => return sockets::latency(sockets, command),
    };
    let (pattern, words, settings) = (Pattern::PING_PONG, ["lat", "latency"], settings(flags, operation));
    let Flags { messages, site, .. } = flags;
    let plan = Benchmark { words, operation, pattern, messages, settings }.plan()?;
    measure(&plan, site, Unit::MiBPerS, command)
}

/// `rdmascope bw ...`.
pub(crate) fn bandwidth(operation: &BandwidthOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (operation, of) = match operation {
        BandwidthOperation::Send(pushed) => pushed.choose(Operation::Send, Operation::SendImm),
        BandwidthOperation::Write(pushed) => pushed.choose(Operation::Write, Operation::WriteImm),
        BandwidthOperation::Read(flags) => (Operation::Read, flags),
        BandwidthOperation::Atomic(Atomic { atomic, flags }) => (*atomic, flags),
        BandwidthOperation::Sockets(sockets) => return sockets::bandwidth(sockets, command),
    };
    let flow = if of.bidirectional { Flow::Bi } else { Flow::Uni };
    let mut settings = settings(&of.flags, operation).axis(axis::DIRECTION.value(flow));
    if let Some(list) = of.post_list {
        settings = settings.axis(axis::POST_LIST.value(list));
    }
    let (pattern, words) = (Pattern::STREAM, ["bw", "throughput"]);
    let Flags { messages, site, .. } = &of.flags;
    let plan = Benchmark { words, operation, pattern, messages, settings }.plan()?;
    measure(&plan, site, unit(of.report_gbits), command)
}

/// `rdmascope one-way ...`.
pub(crate) fn one_way(operation: &OneWayOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (operation, of) = match operation {
        OneWayOperation::Send(flags) => (Operation::SendImm, flags),
        OneWayOperation::Write(flags) => (Operation::WriteImm, flags),
        OneWayOperation::Sockets(sockets) => return sockets::one_way(sockets, command),
    };
    let mut settings = settings(&of.flags, operation);
    settings.warmup = of.warmup;
    let given = [
        of.burst.map(|Burst(burst)| axis::BURST.value(burst)),
        of.pause.map(|pause| axis::PAUSE_NS.value(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))),
        of.poll.map(|poll| axis::POLL.value(poll)),
        of.send_poll.map(|poll| axis::SEND_POLL.value(Some(poll))),
        of.buffers.map(|buffers| axis::BUFFERS.value(Some(buffers))),
        of.rx_fill.map(|fill| axis::RX_FILL.value(Some(fill))),
        Some(axis::STAMP.value(of.stamp)),
    ];
    let settings = given.into_iter().flatten().fold(settings, Settings::axis);
    let (pattern, words) = (Pattern::ONE_WAY, ["one-way", "one-way latency"]);
    let Flags { messages, site, .. } = &of.flags;
    let plan = Benchmark { words, operation, pattern, messages, settings }.plan()?;
    measure(&plan, site, Unit::MiBPerS, command)
}

/// `rdmascope fan-out ...`: all ranks are started by this command, for two ends that are started by hand are no n.
pub(crate) fn fan_out(operation: &FanOutOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let notify = match operation {
        FanOutOperation::Read(FanOutRead { notify, .. }) => Some(*notify),
        _ => None,
    };
    let (operation, of) = match operation {
        FanOutOperation::Send(pushed) => pushed.choose(Operation::Send, Operation::SendImm),
        FanOutOperation::Write(pushed) => pushed.choose(Operation::Write, Operation::WriteImm),
        FanOutOperation::Read(FanOutRead { flags, .. }) => (Operation::Read, flags),
        FanOutOperation::Atomic(Atomic { atomic, flags }) => (*atomic, flags),
        FanOutOperation::Multicast(flags) => (Operation::Multicast, flags),
        FanOutOperation::Sockets(sockets) => return sockets::fan_out(sockets, command),
    };
    let mut settings = of.settle(message_settings(&of.all.messages, operation));
    if let Some(notify) = notify {
        settings = settings.axis(axis::NOTIFY.value(Some(notify)));
    }
    start_all(FAN_OUT, operation, Pattern::FAN_OUT, settings, &of.all, command)
}

/// `rdmascope pairs ...`: all ranks are started by this command, as those of one to n are.
pub(crate) fn pairs(operation: &PairsOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (operation, of) = match operation {
        PairsOperation::Send(pushed) => pushed.choose(Operation::Send, Operation::SendImm),
        PairsOperation::Write(pushed) => pushed.choose(Operation::Write, Operation::WriteImm),
        PairsOperation::Read(flags) => (Operation::Read, flags),
        PairsOperation::Atomic(Atomic { atomic, flags }) => (*atomic, flags),
        PairsOperation::Sockets(sockets) => return sockets::pairs(sockets, command),
    };
    let settings = of.settle(message_settings(&of.all.messages, operation));
    start_all(pairs_words(of.stream), operation, Pattern::PAIRS, settings, &of.all, command)
}

/// `rdmascope open-loop ...`: all ranks are started by this command, as those of one to n are.
pub(crate) fn open_loop(operation: &OpenLoopOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (operation, of) = match operation {
        OpenLoopOperation::Send(pushed) => pushed.choose(Operation::Send, Operation::SendImm),
        OpenLoopOperation::Write(flags) => (Operation::WriteImm, flags),
        OpenLoopOperation::Read(flags) => (Operation::Read, flags),
        OpenLoopOperation::Atomic(Atomic { atomic, flags }) => (*atomic, flags),
        OpenLoopOperation::Sockets(sockets) => return sockets::open_loop(sockets, command),
    };
    let settings = of.settle(message_settings(&of.all.messages, operation));
    start_all(OPEN_LOOP, operation, Pattern::OPEN_LOOP, settings, &of.all, command)
}

/// Measures what the flags ask for, of however many ranks there are.
fn start_all(
    words: [&'static str; 2],
    operation: Operation,
    pattern: Pattern,
    settings: Settings,
    all: &AllRanks,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let plan = Benchmark { words, operation, pattern, messages: &all.messages, settings }.plan()?;
    measure_all(&plan, all, command)
}

/// Measures a plan that flags have made, between two ends.
pub(crate) fn measure<P: Args + Places>(
    plan: &Plan,
    site: &Site<P>,
    bandwidth: Unit,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let resolved = resolve(plan, &Options::default())?;
    let Site { out, ends, placement } = site;
    let launch = launch(placement, ends.peer()?, &resolved)?;
    execute(Job { resolved, quick: false, command, launch, out: out.clone(), bandwidth })
}

/// The same of however many ranks there are, all of which this command starts.
pub(crate) fn measure_all<M: Args, P: Args + Places>(
    plan: &Plan,
    all: &AllRanks<M, P>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let resolved = resolve(plan, &Options::default())?;
    let AllRanks { report_gbits, out, placement, .. } = all;
    let launch = launch(placement, None, &resolved)?;
    let bandwidth = unit(*report_gbits);
    execute(Job { resolved, quick: false, command, launch, out: out.clone(), bandwidth })
}

/// The unit of throughputs.
pub(crate) fn unit(is_in_gbits: bool) -> Unit {
    if is_in_gbits { Unit::GbPerS } else { Unit::MiBPerS }
}

/// The commands, and what they measure.
pub(crate) const FAN_OUT: [&str; 2] = ["fan-out", "latency of one to n"];
pub(crate) const OPEN_LOOP: [&str; 2] = ["open-loop", "response times at a set rate"];

/// Those of pairs.
pub(crate) fn pairs_words(is_stream: bool) -> [&'static str; 2] {
    ["pairs", if is_stream { "throughput of several pairs" } else { "latency of several pairs" }]
}

impl Benchmark<'_> {
    /// What the flags ask for.
    fn plan(&self) -> anyhow::Result<Plan> {
        let [verb, quantity] = self.words;
        let operation = serde_json::to_value(self.operation)?.as_str().unwrap_or_default().replace('_', "-");
        let name = format!("{verb}-{operation}");
        let mut plan = Plan::new(&name, format!("{} {quantity}", self.operation.name()));
        // Sizes up to the inline limit and those above it differ in an axis, so they are two experiments.
        let sizes = sizes(self.messages, self.operation)?.unwrap_or_default();
        let inline_size = self.messages.inline_size;
        // Without -I no size is inline, not even one of 0 bytes.
        let is_inline = |size: &u64| inline_size > 0 && *size <= inline_size;
        let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(is_inline);
        let default_size = small.is_empty() && large.is_empty();
        if !small.is_empty() || (default_size && inline_size > 0) {
            let inline = self.settings.clone().axis(axis::INLINE.value(true));
            let inline = if default_size { inline } else { inline.axis(axis::SIZE_BYTES.values(small)) };
            plan = plan.experiment("inline", self.pattern, inline);
        }
        if !large.is_empty() || (default_size && inline_size == 0) {
            let plain = self.settings.clone();
            let plain = if default_size { plain } else { plain.axis(axis::SIZE_BYTES.values(large)) };
            plan = plan.experiment(&name, self.pattern, plain);
        }
        Ok(plan)
    }
}

/// The sizes that the flags ask for; `None` leaves the default of the pattern.
fn sizes(flags: &Messages, operation: Operation) -> anyhow::Result<Option<Vec<u64>>> {
    if flags.amount.all && operation.is_atomic() {
        // There is but one.
        return Ok(None);
    }
    if flags.amount.all {
        // Where the ports have less, what is longer is not measured.
        let mtu = u64::from(flags.circumstances.mtu.unwrap_or(MTU_BYTES_MAX));
        let max = if service(flags, operation) == Service::Ud { mtu } else { ALL_MAX };
        return Ok(Some(doubled(max)));
    }
    flags.amount.size.as_deref().map(listed).transpose()
}

/// The sizes of `-a`.
pub(crate) fn doubled(max: u64) -> Vec<u64> {
    let doubled = std::iter::successors(Some(ALL_MIN), |size| Some(size * 2));
    doubled.take_while(|size| *size <= max).collect()
}

/// Sizes as `-s` lists them.
pub(crate) fn listed(text: &str) -> anyhow::Result<Vec<u64>> {
    let sizes = text.split(',').map(|part| units::parse_sizes(part.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(sizes.concat())
}

fn settings(flags: &Flags, operation: Operation) -> Settings {
    let settings = message_settings(&flags.messages, operation);
    match flags.qp {
        Some(pairs) => settings.axis(axis::QUEUE_PAIRS.value(pairs)),
        None => settings,
    }
}

/// The service that is asked for, or else the one that is usual with an operation.
fn service(flags: &Messages, operation: Operation) -> Service {
    let usual = if operation == Operation::Multicast { Service::Ud } else { Service::Rc };
    flags.connection.unwrap_or(usual)
}

fn message_settings(flags: &Messages, operation: Operation) -> Settings {
    let service = service(flags, operation);
    let settings = flags.amount.settings();
    let settings = settings.axis(axis::OPERATION.value(operation)).axis(axis::SERVICE.value(service));
    let mut settings = flags.circumstances.settle(settings);
    if flags.events {
        settings = settings.axis(axis::POLL.value(Poll::Event));
    }
    if let Some(elements) = flags.sge {
        settings = settings.axis(axis::SGE.value(elements));
    }
    if let Some(reads) = flags.outs {
        settings = settings.axis(axis::OUTSTANDING_READS.value(Some(reads)));
    }
    if let Some(interval) = flags.cq_mod {
        settings = settings.axis(axis::SIGNAL_INTERVAL.value(Some(interval)));
    }
    settings
}
