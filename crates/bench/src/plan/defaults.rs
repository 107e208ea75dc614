//! What a plan does not say, with the reason for each, and an experiment with all of it filled in.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Experiment, Settings};
use crate::axis::{self, Axis, AxisList, Key};
use crate::point::{
    Carrier, Family, Flow, Length, Load, Operation, Pattern, Poll, Protocol, Service, Signal, Sink, Stamp,
    Step, Timer, Traffic,
};

/// An experiment that says everything, as far as one kind of endpoint is concerned.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) name: String,
    pub(super) pattern: Pattern,
    pub(super) carrier: Carrier,
    pub(super) length: Length,
    pub(super) bytes_max: Option<u64>,
    pub(super) warmup: u64,
    pub(super) repetitions: u32,
    /// How near the mean of how many repetitions at most is to be known.
    pub(super) within: Option<(f64, u32)>,
    pub(super) tx_depth: u32,
    pub(super) rx_depth: u32,
    pub(super) keep_samples: bool,
    pub(super) share_above_ns: Vec<u64>,
    pub(super) timeout_s: f64,
    /// The axes: those of the plan as they are written, but the size innermost.
    pub(super) axes: AxisList,
    /// What was set, for the places of errors.
    pub(super) settings: Settings,
    /// Where the experiment stands.
    pub(super) place: String,
}

impl Filled {
    /// An experiment, for each kind of endpoint that it is about: with the axes that are for that.
    pub(super) fn each(experiment: &Experiment) -> Vec<Self> {
        carriers(&experiment.settings.axes).iter().map(|carrier| Self::new(experiment, *carrier)).collect()
    }

    fn new(experiment: &Experiment, carrier: Carrier) -> Self {
        let pattern = experiment.pattern;
        let mut settings = experiment.settings.clone();
        settings.axes.retain(|axis| (axis.row.is_for)(carrier));
        settings.axes.put(axis::ENDPOINT.value(carrier));
        let length = match (settings.iterations, settings.duration_s, pattern) {
            (Some(iterations), ..) => Length::Iterations(iterations),
            (None, Some(duration_s), _) => Length::Duration(duration_s),
            (None, None, Pattern::Pairs) if floods(&settings.axes) => Length::Duration(DURATION_S_PAIRS),
            (None, None, Pattern::FanOut | Pattern::Pairs | Pattern::PingPong | Pattern::Prtt) => {
                Length::Iterations(ITERATIONS_PING_PONG)
            }
            (None, None, Pattern::OpenLoop | Pattern::Pipeline) => Length::Duration(DURATION_S_OPEN_LOOP),
            (None, None, Pattern::OneWay) => Length::Iterations(ITERATIONS_ONE_WAY),
            (None, None, Pattern::Overhead) => Length::Iterations(ITERATIONS_OVERHEAD),
            (None, None, _) => Length::Iterations(ITERATIONS_STREAM),
        };
        let (warmup, timeout_s) = match length {
            Length::Iterations(iterations) => {
                let warmup = (iterations / WARMUP_SHARE).max(WARMUP_MIN);
                (warmup, TIMEOUT_S + generating_s(pattern, &settings.axes, iterations.saturating_add(warmup)))
            }
            Length::Duration(duration_s) => (ITERATIONS_PING_PONG / WARMUP_SHARE, TIMEOUT_S + duration_s),
        };
        let depths = depths(pattern, &settings.axes);
        let tx_depth = settings.tx_depth.unwrap_or(depths.0);
        Self {
            name: experiment.name.clone(),
            pattern,
            carrier,
            length,
            bytes_max: settings.bytes_max,
            warmup: settings.warmup.unwrap_or(warmup),
            repetitions: settings.repetitions.unwrap_or(match settings.within {
                Some(_) => REPETITIONS_WITHIN.min(settings.repetitions_max.unwrap_or(u32::MAX)),
                None => REPETITIONS,
            }),
            within: settings
                .within
                .map(|within| (within, settings.repetitions_max.unwrap_or(REPETITIONS_MAX))),
            tx_depth,
            rx_depth: settings.rx_depth.unwrap_or(depths.1),
            keep_samples: settings.keep_samples.unwrap_or(KEEP_SAMPLES),
            share_above_ns: settings.share_above_ns.clone().unwrap_or_else(|| match pattern {
                Pattern::Pipeline => SHARE_ABOVE_NS_PIPELINE.to_vec(),
                _ => SHARE_ABOVE_NS.to_vec(),
            }),
            timeout_s: settings.timeout_s.unwrap_or(timeout_s),
            axes: axes(
                pattern,
                carrier,
                &settings.axes,
                least_depth(&settings.axes, axis::TX_DEPTH).unwrap_or(tx_depth),
            ),
            settings,
            place: experiment.place.clone(),
        }
    }

    /// Messages and warm-up messages of a point of this size: fewer where `bytes_max` bounds it, both by the same
    /// factor; at a set rate as many as are due in the time that it lasts.
    pub(super) fn length_at(&self, size_bytes: u64, rate_hz: Option<u64>) -> (Length, u64) {
        if let (Length::Duration(duration_s), Some(rate_hz)) = (self.length, rate_hz) {
            let messages = ((duration_s * rate_hz as f64).round() as u64).max(1);
            let warmup = self.settings.warmup.unwrap_or(messages / WARMUP_SHARE);
            return (Length::Iterations(messages), warmup);
        }
        let (Length::Iterations(asked), Some(bytes_max)) = (self.length, self.bytes_max) else {
            return (self.length, self.warmup);
        };
        let iterations = (bytes_max / size_bytes).max(ITERATIONS_MIN).min(asked);
        let warmup = (u128::from(self.warmup) * u128::from(iterations)).div_ceil(u128::from(asked));
        // No overflow: iterations <= asked, so the product over asked is at most the warm-up itself.
        (Length::Iterations(iterations), warmup as u64)
    }

    /// The number of its points, all repetitions that there may be included; `None` above 2^64.
    pub(super) fn points(&self) -> Option<u64> {
        let lengths = self.axes.iter().map(|axis| axis.values().len() as u64);
        let repetitions = self.within.map_or(self.repetitions, |(_, most)| most.max(self.repetitions));
        lengths.chain([u64::from(repetitions)]).try_fold(1u64, u64::checked_mul)
    }

    /// The experiment as the record keeps it.
    pub(super) fn to_json(&self) -> Value {
        let axes: Map<String, Value> =
            self.axes.iter().map(|axis| (axis.row.name.to_owned(), axis.values().into())).collect();
        let mut json = json!({
            "name": self.name,
            "pattern": self.pattern,
            "warmup": self.warmup,
            "repetitions": self.repetitions,
            "tx_depth": self.tx_depth,
            "rx_depth": self.rx_depth,
            "keep_samples": self.keep_samples,
            "share_above_ns": self.share_above_ns,
            "timeout_s": self.timeout_s,
            "axes": axes,
        });
        match self.length {
            Length::Duration(duration_s) => json["duration_s"] = duration_s.into(),
            Length::Iterations(iterations) => json["iterations"] = iterations.into(),
        }
        if let Some((within, most)) = self.within {
            (json["within"], json["repetitions_max"]) = (within.into(), most.into());
        }
        if let Some(bytes_max) = self.bytes_max {
            json["bytes_max"] = bytes_max.into();
        }
        json
    }
}

/// The least depth of a queue that an axis asks for; `None` where no axis is of it.
pub(super) fn least_depth(axes: &AxisList, depth: Key<u32>) -> Option<u32> {
    axes.get(depth).into_iter().min()
}

/// Depths of the send queue and the receive queue. In a round of one to n, a queue pair has a message under way, or, where one
/// serves all, one for each; n queues of a stream's depth would be more than the completion queues of some devices hold.
fn depths(pattern: Pattern, given: &AxisList) -> (u32, u32) {
    match pattern {
        Pattern::FanOut => {
            let peers = given.get(axis::PEERS).into_iter().max();
            [peers.unwrap_or(PEERS).max(DEPTH_FAN_OUT); 2].into()
        }
        Pattern::OpenLoop => (DEPTH_OPEN_LOOP, DEPTH_OPEN_LOOP),
        Pattern::Pipeline => (DEPTH_PIPELINE, DEPTH_PIPELINE),
        _ => (TX_DEPTH, RX_DEPTH),
    }
}

/// How long a pipeline's steps take at its least rate, in s.
fn generating_s(pattern: Pattern, given: &AxisList, steps: u64) -> f64 {
    let rate_hz = given.get(axis::RATE_HZ).into_iter().min().unwrap_or(RATE_HZ).max(1);
    if pattern == Pattern::Pipeline { steps as f64 / rate_hz as f64 } else { 0.0 }
}

/// Whether pairs flood each other.
fn floods(given: &AxisList) -> bool {
    are_all(given, axis::TRAFFIC, |traffic| traffic == Traffic::Stream)
}

/// Whether an axis is given, and its values are all so.
fn are_all<T: DeserializeOwned + Serialize>(given: &AxisList, key: Key<T>, so: impl Fn(T) -> bool) -> bool {
    given.find(key.row.name).is_some() && given.get(key).into_iter().all(so)
}

/// What carries the messages of an experiment, in turn.
pub(super) fn carriers(given: &AxisList) -> Vec<Carrier> {
    match given.find(axis::ENDPOINT.row.name) {
        Some(_) => given.get(axis::ENDPOINT),
        None => vec![Carrier::Verbs],
    }
}

/// The axes that are given, then those that every point has at their default, the environment first and the size last whatever
/// their place in the plan.
fn axes(pattern: Pattern, carrier: Carrier, given: &AxisList, tx_depth: u32) -> AxisList {
    let (size_bytes, signal_interval) = match pattern {
        Pattern::OneWay => (SIZE_BYTES_ONE_WAY, SIGNAL_INTERVAL_ONE_WAY),
        Pattern::FanOut => (SIZE_BYTES_FAN_OUT, SIGNAL_INTERVAL_PING_PONG),
        Pattern::Overhead => (SIZE_BYTES_OVERHEAD, SIGNAL_INTERVAL_OVERHEAD),
        // As long as its values make it.
        Pattern::Pipeline => (0, tx_depth / 2),
        Pattern::Pairs if floods(given) => (SIZE_BYTES_STREAM, SIGNAL_INTERVAL_PAIRS.min(tx_depth)),
        Pattern::OpenLoop | Pattern::Pairs | Pattern::PingPong => {
            (SIZE_BYTES_PING_PONG, SIGNAL_INTERVAL_PING_PONG)
        }
        Pattern::Prtt => (SIZE_BYTES_PRTT, SIGNAL_INTERVAL_PING_PONG),
        _ => (SIZE_BYTES_STREAM, SIGNAL_INTERVAL_STREAM.min(tx_depth)),
    };
    // One way messages are told apart by their immediate data.
    let operation = if pattern == Pattern::OneWay { Operation::SendImm } else { Operation::Send };
    let is_atomic = are_all(given, axis::OPERATION, Operation::is_atomic);
    let size_bytes = if is_atomic { SIZE_BYTES_ATOMIC } else { size_bytes };
    let floods_udp = pattern == Pattern::Stream && carrier == Carrier::Udp;
    let size_bytes = if floods_udp { SIZE_BYTES_STREAM_UDP } else { size_bytes };
    let defaults = [
        axis::SERVICE.value(Service::Rc),
        axis::OPERATION.value(operation),
        axis::DIRECTION.value(Flow::Uni),
        axis::POLL.value(if polls(pattern, carrier) { Poll::Busy } else { Poll::Event }),
        axis::INLINE.value(false),
        axis::SIGNAL_INTERVAL.value((pattern != Pattern::Pipeline).then_some(signal_interval)),
        axis::MTU_BYTES.value(None),
        axis::SIGNAL_RATE.value(None),
        axis::SIZE_BYTES.value(size_bytes),
        axis::FAMILY.value(Family::Ipv4),
        axis::PROTOCOL.value(Protocol::PubSub),
    ];
    let own = match pattern {
        Pattern::FanOut => vec![axis::PEERS.value(PEERS)],
        Pattern::OneWay => vec![
            axis::SEND_POLL.value(None),
            axis::STAMP.value(Stamp::Submitted),
            axis::BURST.value(Some(BURST)),
            axis::PAUSE_NS.value(0),
        ],
        Pattern::OpenLoop => open_loop(given),
        Pattern::Overhead => vec![axis::STEP.values(Step::ALL), axis::BATCH.value(None)],
        Pattern::Pipeline => vec![
            axis::RATE_HZ.value(RATE_HZ),
            axis::TIMER.value(Timer::Tsc),
            axis::SIGNAL.value(Signal::Random),
            axis::SINK.value(Sink::Null),
            axis::INLINE_MAX_BYTES.value(INLINE_MAX_BYTES),
            axis::VALUES.value(VALUES),
        ],
        Pattern::Pairs => vec![axis::PAIRS.value(PAIRS), axis::TRAFFIC.value(Traffic::PingPong)],
        Pattern::Prtt => vec![axis::BURST.value(Some(BURST)), axis::PAUSE_NS.value(0)],
        _ => Vec::new(),
    };
    let is_had = |axis: &Axis| {
        let name = axis.row.name;
        let made = [axis::INLINE.row.name, axis::SIZE_BYTES.row.name];
        (axis.row.is_for)(carrier) && !(pattern == Pattern::Pipeline && made.contains(&name))
    };
    let mut axes = given.clone();
    for default in defaults.into_iter().chain(own).filter(is_had) {
        if given.find(default.row.name).is_none() {
            axes.put(default);
        }
    }
    axes.sort();
    axes
}

/// Whether receives are polled for: sockets sleep, but shared memory that brings samples at a rate is polled (as by the thesis).
fn polls(pattern: Pattern, carrier: Carrier) -> bool {
    carrier.is_verbs() || (pattern == Pattern::Pipeline && carrier == Carrier::Shmem)
}

/// Axes of messages at a set rate; of a load only where there is one.
fn open_loop(given: &AxisList) -> Vec<Axis> {
    let is_loaded = given.numbers(axis::LOADERS.row).any(|loaders| loaders > 0);
    let load = [axis::LOAD.value(Load::Incast), axis::LOAD_BYTES.value(SIZE_BYTES_STREAM)];
    let own = [axis::RATE_HZ.value(RATE_HZ), axis::LOADERS.value(0)];
    own.into_iter().chain(load.into_iter().filter(|_| is_loaded)).collect()
}

/// Round trips: perftest's latency tests.
const ITERATIONS_PING_PONG: u64 = 1000;
/// Messages of a one-way point: one run of the thesis (V10).
const ITERATIONS_ONE_WAY: u64 = 8000;
/// Batches of calls: enough for an interval of about a percent, and over in a second where a call takes a millisecond.
const ITERATIONS_OVERHEAD: u64 = 1000;
/// Messages of a stream: perftest's `ib_write_bw`. Its 1000 of `ib_send_bw` are over in less than a millisecond at
/// small sizes, which is too short for a rate.
const ITERATIONS_STREAM: u64 = 5000;
/// `bytes_max` never leaves fewer messages than this: below about ten a median says nothing.
const ITERATIONS_MIN: u64 = 10;
/// Warm-up is a tenth of the iterations, at least [`WARMUP_MIN`]: the rule of the Intel MPI Benchmarks.
const WARMUP_SHARE: u64 = 10;
/// Fewest warm-up messages where `bytes_max` does not bound them.
const WARMUP_MIN: u64 = 10;
/// Once: repetitions multiply the time of a run, so they are asked for.
const REPETITIONS: u32 = 1;
/// The least and the most of netperf, whose interval is narrowed so (`-i`).
const REPETITIONS_WITHIN: u32 = 3;
const REPETITIONS_MAX: u32 = 30;
/// perftest's send queue.
const TX_DEPTH: u32 = 128;
/// More than the messages that a queue pair of a fan-out has under way.
const DEPTH_FAN_OUT: u32 = 16;
/// So many messages may be under way, so that a stall does not keep the next from being posted when they are due.
const DEPTH_OPEN_LOOP: u32 = 2048;
/// The receiver may be away for ten milliseconds at 100 kHz; of eight values, all buffers fit in a cache of the second level.
const DEPTH_PIPELINE: u32 = 1024;
/// Samples of so many bytes are inline: what the benchmarks of the thesis ask for (V58).
const INLINE_MAX_BYTES: u32 = 128;
/// Values of a sample, as in the thesis's figures over the rate (V60).
const VALUES: u32 = 8;
/// perftest's receive queue.
const RX_DEPTH: u32 = 512;
/// Every sample is kept (X2 of the evaluations), up to [`crate::point::RAW_SAMPLES_MAX`].
const KEEP_SAMPLES: bool = true;
/// 10 us: the threshold of the thesis's tables (V8).
const SHARE_ABOVE_NS: [u64; 1] = [10_000];
/// 50 us: that of its histograms of samples at a rate.
const SHARE_ABOVE_NS_PIPELINE: [u64; 1] = [50_000];
/// Far above any healthy point, far below the patience of a person; a duration is added to it.
const TIMEOUT_S: f64 = 60.0;
/// The only one that atomics have.
const SIZE_BYTES_ATOMIC: u64 = 8;
/// The size of the paper's figure over the number of hosts (H16).
const SIZE_BYTES_FAN_OUT: u64 = 1;
/// One pair, beside which every other number of them stands.
const PAIRS: u32 = 1;
/// 1:1, beside which every other n stands.
const PEERS: u32 = 1;
/// The thesis's size: a value and its meta data (V11).
const SIZE_BYTES_ONE_WAY: u64 = 32;
/// A cache line: of what is posted inline, about as much as every adapter takes.
const SIZE_BYTES_OVERHEAD: u64 = 64;
/// perftest's size for latency.
const SIZE_BYTES_PING_PONG: u64 = 2;
/// The one of which LogGP's time of a byte is no part.
const SIZE_BYTES_PRTT: u64 = 1;
/// perftest's size for bandwidth.
const SIZE_BYTES_STREAM: u64 = 65536;
/// The longest datagram that is one frame of Ethernet, over IPv6 too.
const SIZE_BYTES_STREAM_UDP: u64 = 1452;
/// A message waits for no other.
const BURST: u32 = 1;
/// Every send asks for its completion, so that all are timed.
const SIGNAL_INTERVAL_ONE_WAY: u32 = 1;
/// Every send asks for its completion, so that all calls of a batch are the same.
const SIGNAL_INTERVAL_OVERHEAD: u32 = 1;
/// Every send of a ping-pong asks for its completion, so that both ends time every message.
const SIGNAL_INTERVAL_PING_PONG: u32 = 1;
/// perftest's `--cq-mod` for bandwidth; less where the send queue is shorter.
const SIGNAL_INTERVAL_STREAM: u32 = 100;
/// Long enough for a thousand messages in the slowest hundredth at ten times the default rate.
const DURATION_S_OPEN_LOOP: f64 = 1.0;
/// Messages in a second that every device keeps up with.
const RATE_HZ: u64 = 10_000;
/// Long enough for pairs that share CPUs to have many turns each.
const DURATION_S_PAIRS: f64 = 0.5;
/// A flood of pairs is counted by its completions: often enough to know how far it was.
const SIGNAL_INTERVAL_PAIRS: u32 = 16;
