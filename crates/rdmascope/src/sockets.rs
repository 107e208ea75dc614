//! `rdmascope lat`, `bw`, `one-way`, `fan-out`, `pairs` and `open-loop` over sockets: benchmarks from flags, through the same
//! plan type as everything else.

use std::process::ExitCode;

use bench::axis;
use bench::plan::{Plan, Settings};
use bench::point::{Carrier, Flow, Pattern};
use measure::figure::Unit;

use crate::benchmark::{
    ALL_MAX, FAN_OUT, OPEN_LOOP, doubled, listed, measure, measure_all, pairs_words, unit,
};
use crate::cli::{
    Burst, FanOutFlags, OpenLoopFlags, PairsFlags, SocketBandwidth, SocketFlags, SocketMessages,
    SocketOneWay, SocketRanks, Sockets,
};

/// Largest size of `-a` that datagrams have: the power of two below their limit.
const ALL_MAX_DATAGRAM: u64 = 32 << 10;

/// A benchmark over sockets.
struct Benchmark<'a> {
    /// The command, and what it measures.
    words: [&'static str; 2],
    carrier: Carrier,
    pattern: Pattern,
    messages: &'a SocketMessages,
    settings: Settings,
}

/// `rdmascope lat tcp` and the like.
pub(crate) fn latency(sockets: &Sockets<SocketFlags>, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (carrier, SocketFlags { messages, site }) = sockets.carrier();
    let (pattern, words, settings) = (Pattern::PING_PONG, ["lat", "latency"], messages.settings(carrier));
    let plan = Benchmark { words, carrier, pattern, messages, settings }.plan()?;
    measure(&plan, site, Unit::MiBPerS, command)
}

/// `rdmascope bw tcp` and the like.
pub(crate) fn bandwidth(
    sockets: &Sockets<SocketBandwidth>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let (carrier, of) = sockets.carrier();
    let SocketFlags { messages, site } = &of.flags;
    let flow = if of.bidirectional { Flow::Bi } else { Flow::Uni };
    let settings = of.settle(messages.settings(carrier)).axis(axis::DIRECTION.value(flow));
    let (pattern, words) = (Pattern::STREAM, ["bw", "throughput"]);
    let plan = Benchmark { words, carrier, pattern, messages, settings }.plan()?;
    measure(&plan, site, unit(of.report_gbits), command)
}

/// `rdmascope one-way tcp` and the like.
pub(crate) fn one_way(sockets: &Sockets<SocketOneWay>, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let (carrier, of) = sockets.carrier();
    let SocketFlags { messages, site } = &of.flags;
    let mut settings = messages.settings(carrier);
    settings.warmup = of.warmup;
    let pause = of.pause.map(|pause| u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
    let given =
        [of.burst.map(|Burst(burst)| axis::BURST.value(burst)), pause.map(|ns| axis::PAUSE_NS.value(ns))];
    let settings = given.into_iter().flatten().fold(settings, Settings::axis);
    let (pattern, words) = (Pattern::ONE_WAY, ["one-way", "one-way latency"]);
    let plan = Benchmark { words, carrier, pattern, messages, settings }.plan()?;
    measure(&plan, site, Unit::MiBPerS, command)
}

/// `rdmascope fan-out tcp` and the like.
pub(crate) fn fan_out(
    sockets: &Sockets<FanOutFlags<SocketRanks>>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let (carrier, of) = sockets.carrier();
    let settings = of.settle(of.all.messages.settings(carrier));
    start_all(FAN_OUT, (carrier, Pattern::FAN_OUT), settings, &of.all, command)
}

/// `rdmascope pairs tcp` and the like.
pub(crate) fn pairs(
    sockets: &Sockets<PairsFlags<SocketRanks>>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let (carrier, of) = sockets.carrier();
    let settings = of.settle(of.all.messages.settings(carrier));
    start_all(pairs_words(of.stream), (carrier, Pattern::PAIRS), settings, &of.all, command)
}

/// `rdmascope open-loop tcp` and the like.
pub(crate) fn open_loop(
    sockets: &Sockets<OpenLoopFlags<SocketRanks>>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let (carrier, of) = sockets.carrier();
    let settings = of.settle(of.all.messages.settings(carrier));
    start_all(OPEN_LOOP, (carrier, Pattern::OPEN_LOOP), settings, &of.all, command)
}

/// Measures what the flags ask for, of however many ranks there are.
fn start_all(
    words: [&'static str; 2],
    (carrier, pattern): (Carrier, Pattern),
    settings: Settings,
    all: &SocketRanks,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let plan = Benchmark { words, carrier, pattern, messages: &all.messages, settings }.plan()?;
    measure_all(&plan, all, command)
}

impl Benchmark<'_> {
    /// What the flags ask for.
    fn plan(&self) -> anyhow::Result<Plan> {
        let [verb, quantity] = self.words;
        let carrier = self.carrier.word().replace('_', "-");
        let name = format!("{verb}-{carrier}");
        let amount = &self.messages.amount;
        let sizes = match (&amount.size, amount.all) {
            (Some(text), _) => Some(listed(text)?),
            (None, true) if self.carrier.is_datagram() => Some(doubled(ALL_MAX_DATAGRAM)),
            (None, true) => Some(doubled(ALL_MAX)),
            (None, false) => None,
        };
        let settings = self.settings.clone();
        let settings = match sizes {
            Some(sizes) => settings.axis(axis::SIZE_BYTES.values(sizes)),
            None => settings,
        };
        let plan = Plan::new(&name, format!("{} {quantity}", self.carrier.name()));
        Ok(plan.experiment(&name, self.pattern, settings))
    }
}
