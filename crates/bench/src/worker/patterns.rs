//! What a rank does with its endpoints, and what it says of it.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::clock::Clock;
use measure::record::{Cpu, Direction, Latency, LatencyKind, Throughput};
use measure::samples::{HistogramSamples, RawSamples, Recorder, Samples, Scale};
use measure::step;

use super::endpoints::Endpoints;
use super::out_of_order;
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::End;
use crate::pattern::Span;
use crate::patterns::ping_pong::{fetch, ping_pong};
use crate::patterns::stream::{self, Flood, push as push_all, stream as flood};
use crate::patterns::{fan_out, one_way, open_loop, pairs, pipeline, prtt};
use crate::point::{Flow, Length, Pattern, PointSpec, RAW_SAMPLES_MAX, Service};
use crate::process::agent::PointError;
use crate::process::message::{Lasted, Outcome};
use crate::timepiece::Timepiece;

/// A rank's share of a point, for which so much time is left.
pub(crate) fn measure<E: End>(
    endpoints: &mut Endpoints<E>,
    spec: &PointSpec,
    (rank, left): (u32, Duration),
    timepiece: &Timepiece,
) -> Result<Outcome, PointError> {
    let clock = timepiece.clock;
    let outcome = match (spec.pattern, rank) {
        (Pattern::FanOut, rank) => fan_out::rank::fan_out(endpoints.main()?, spec, rank, clock),
        (Pattern::OpenLoop, rank) => open_loop::rank::open_loop(endpoints, spec, (rank, left), timepiece),
        (Pattern::Pairs, _) => pairs::rank::pairs(endpoints.meeting()?, spec, timepiece),
        (Pattern::Prtt, rank) => prtt::rank::prtt(endpoints.main()?, spec, rank, clock),
        (Pattern::Stream, rank) if spec.message.operation.arrives() => {
            stream(endpoints.main()?, spec, rank, clock)
        }
        (Pattern::Stream, rank) => push(endpoints.main()?, spec, rank, clock),
        (Pattern::OneWay | Pattern::Overhead | Pattern::PingPong | Pattern::Pipeline, rank) => {
            return measure_singly(endpoints, spec, rank, timepiece);
        }
    };
    Ok(outcome?)
}

/// The same where each message is by itself, between two ranks: all that message libraries carry. (Every pattern is compiled for
/// each kind of endpoint that may have it, which takes its time.)
pub(crate) fn measure_singly<E: End>(
    endpoints: &mut Endpoints<E>,
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, PointError> {
    let clock = timepiece.clock;
    let outcome = match (spec.pattern, rank) {
        (Pattern::OneWay, rank) => {
            let has_one_clock = endpoints.company.has_one_clock;
            one_way((endpoints.main()?, has_one_clock), spec, rank, timepiece)
        }
        // The peer's adapter answers alone.
        (Pattern::PingPong, 1..) if spec.message.operation.is_fetch() => {
            Ok(Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() })
        }
        (Pattern::PingPong, rank) => latency(endpoints.main()?, spec, rank, clock),
        (Pattern::Pipeline, rank) => return pipeline::rank::pipeline(endpoints, spec, rank, timepiece),
        // Calls of verbs are timed by who knows verbs; the others are for other endpoints.
        _ => return Err(out_of_order("run")),
    };
    Ok(outcome?)
}

/// What this rank stamps of messages that are timed one way.
fn one_way<E: Endpoint>(
    (endpoint, has_one_clock): (&mut E, bool),
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, Error> {
    let (stamped, cpu) = one_way::run(endpoint, spec, rank, has_one_clock, timepiece)?;
    let Length::Iterations(messages) = spec.length else { return Ok(Outcome::default()) };
    let counters = if rank == 0 { packets(messages, spec) } else { BTreeMap::new() };
    Ok(Outcome { stamped: Some(Box::new(stamped)), counters, cpu, ..Outcome::default() })
}

fn latency<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let kind = if spec.message.operation.is_fetch() { LatencyKind::Rtt } else { LatencyKind::RttHalf };
    let (samples, cpu) = timed(Bounce { endpoint, spec, rank }, spec, kind, clock)?;
    // The first interval ends with the message after the warm-up; where one goes forth, another comes back.
    let messages =
        (samples.count() + spec.warmup + 1) * if spec.message.operation.is_fetch() { 1 } else { 2 };
    Ok(Outcome { cpu: cpu.map(|cpu| cpu.of(messages)), ..latency_outcome(&samples, kind, spec, 1) })
}

/// Messages that are recorded one by one.
pub(crate) trait Timed {
    /// Exchanges them; gives what they cost, too.
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>);
}

/// What messages record: every sample, or a histogram where there are too many or none is to be kept.
pub(crate) fn timed(
    messages: impl Timed,
    spec: &PointSpec,
    kind: LatencyKind,
    clock: Clock,
) -> Result<(Samples, Option<Cpu>), Error> {
    let scale = Scale::of(kind);
    let raw = match spec.length {
        Length::Iterations(n) if n <= RAW_SAMPLES_MAX && spec.keep_samples => usize::try_from(n).ok(),
        _ => None,
    };
    if let Some(room) = raw {
        let mut samples = RawSamples::new(room)?;
        let (done, cpu) = messages.run(&mut samples);
        done.map(|()| (samples.finish(&clock, scale), cpu))
    } else {
        let mut samples = HistogramSamples::new(&clock, scale);
        let (done, cpu) = messages.run(&mut samples);
        done.map(|()| (samples.finish(), cpu))
    }
}

/// A message that goes forth and back.
struct Bounce<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    rank: u32,
}

impl<E: Endpoint> Timed for Bounce<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, rank } = self;
        watched(endpoint.clock(), || {
            if spec.message.operation.is_fetch() {
                fetch(endpoint, recorder, spec.warmup, span(spec))
            } else {
                ping_pong(endpoint, recorder, rank == 0, spec.warmup, span(spec))
            }
        })
    }
}

/// What was recorded, with `posted` messages for each sample.
pub(crate) fn latency_outcome(
    samples: &Samples,
    kind: LatencyKind,
    spec: &PointSpec,
    posted: u64,
) -> Outcome {
    let unstable = step::step(&samples.series()).map(|step| step.to_string());
    Outcome {
        latency: samples.latency(kind, &spec.share_above_ns),
        histogram: samples.raw().is_none().then(|| samples.histogram()),
        counters: packets(samples.count() * posted, spec),
        unstable,
        samples: samples.raw().unwrap_or_default().to_vec(),
        ..Outcome::default()
    }
}

/// Throughput as size by latency (H15): the payload that a hub sends to all spokes, or fetches from them, in the median time.
pub(crate) fn per_message(latency: &Latency, spec: &PointSpec) -> Throughput {
    let messages_per_s = f64::from(spec.peers) * 1e9 / (latency.p50_ns.max(1) as f64);
    Throughput::of(messages_per_s, spec.message.size_bytes, Direction::Uni)
}

fn stream<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let reliable = spec.message.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || flood(endpoint, flow, spec.warmup, span(spec), reliable));
    let (sent, received) = done?;
    let slower = |flood: &Flood| flood.messages.saturating_mul(1 << 20).checked_div(flood.ticks).unwrap_or(0);
    // Of two directions the slower: what this end received is no faster than it could have been sent.
    let headline = [received, sent].into_iter().flatten().min_by_key(slower).unwrap_or_default();
    let mut counters = packets(sent.map_or(0, |sent| sent.total), spec);
    // What was lost only both ends together know.
    let counted = [("messages_sent", sent), ("messages_received", received)];
    counters
        .extend(counted.iter().filter_map(|(name, flood)| Some(((*name).to_owned(), flood.as_ref()?.total))));
    let seconds = |flood: Flood| clock.ns_f64(flood.ticks) / 1e9;
    let lasted = Lasted { sent_s: sent.map(seconds), heard_s: received.map(seconds) };
    let messages = [sent, received].into_iter().flatten().map(|flood| flood.total + spec.warmup).sum();
    let throughput = Some(throughput(&headline, spec, clock)?);
    let (lasted, cpu) = ((!reliable).then_some(lasted), cpu.map(|cpu| cpu.of(messages)));
    Ok(Outcome { throughput, counters, lasted, cpu, ..Outcome::default() })
}

/// A stream of operations that nothing announces at the target: only who posts them has a number.
fn push<E: Endpoint>(endpoint: &mut E, spec: &PointSpec, rank: u32, clock: Clock) -> Result<Outcome, Error> {
    let reliable = spec.message.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || push_all(endpoint, flow, spec.warmup, span(spec), reliable));
    let Some(posted) = done? else { return Ok(Outcome { cpu, ..Outcome::default() }) };
    let throughput = Some(throughput(&posted, spec, clock)?);
    Ok(Outcome { throughput, counters: packets(posted.total, spec), cpu, ..Outcome::default() })
}

fn flow(spec: &PointSpec, rank: u32) -> stream::Flow {
    match (spec.direction, rank) {
        (Flow::Bi, _) => stream::Flow::Both,
        (Flow::Uni, 0) => stream::Flow::Out,
        (Flow::Uni, _) => stream::Flow::In,
    }
}

fn throughput(flood: &Flood, spec: &PointSpec, clock: Clock) -> Result<Throughput, Error> {
    let direction = if spec.direction == Flow::Bi { Direction::BiOne } else { Direction::Uni };
    Ok(Throughput::of(messages_per_s(flood, clock)?, spec.message.size_bytes, direction))
}

/// The rate of a flood of which something was done.
pub(crate) fn messages_per_s(flood: &Flood, clock: Clock) -> Result<f64, Error> {
    if flood.messages == 0 || flood.ticks == 0 {
        return Err(Error::TooFewMessages { messages: flood.total });
    }
    Ok(flood.messages as f64 * 1e9 / clock.ns_f64(flood.ticks))
}

/// Packets that the messages were cut into: one, or as many as there are path MTUs in them (G1). What cuts those of sockets tells
/// nobody, and shared memory has none.
pub(crate) fn packets(messages: u64, spec: &PointSpec) -> BTreeMap<String, u64> {
    if !spec.message.endpoint.is_verbs() {
        return BTreeMap::new();
    }
    let each = spec.message.size_bytes.div_ceil(u64::from(spec.message.mtu_bytes.unwrap_or(u32::MAX))).max(1);
    BTreeMap::from([("packets_sent".to_owned(), messages * each)])
}

pub(crate) fn span(spec: &PointSpec) -> Span {
    match spec.length {
        Length::Duration(seconds) => Span::For(Duration::from_secs_f64(seconds)),
        Length::Iterations(messages) => Span::Messages(messages),
    }
}
