//! What an agent does for its coordinator: sets points up on a device, runs their patterns and makes the statistics.

mod description;
mod endpoints;
mod fan_out;
mod open_loop;
mod overhead;
mod pairs;
mod prtt;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use conditions::{Arranger, Host, Leave, Place};
use measure::clock::{Clock, Skew, Ticks};
use measure::conditions::{Condition, Wanted};
use measure::record::{Cpu, Direction, Environment, Latency, LatencyKind, Overhead, Throughput};
use measure::samples::{HistogramSamples, RawSamples, Recorder, Samples, Scale};
use measure::step;
use verbs::{Context, Device, LinkModel, Provider};

use self::endpoints::{Endpoints, Waiting};
use crate::Error;
use crate::calibrate::Line;
use crate::choice::{Reason, candidates, choose, devices};
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::one_way;
use crate::pattern::{self, Flood, Span};
use crate::point::{Flow, Length, Pattern, PointSpec, RAW_SAMPLES_MAX, Service};
use crate::process::agent::{PointError, Worker};
use crate::process::message::{Calibrated, CalibrationStep, Description, Neighbour, Outcome, Prepared};
use crate::timepiece::Timepiece;
use crate::verbs_endpoint::VerbsEndpoint;
pub use crate::verbs_endpoint::{LocalPort, PortOptions};

/// A rank that measures through a verbs device.
pub struct VerbsWorker {
    providers: &'static [&'static Provider],
    device: Option<String>,
    options: PortOptions,
    /// Open once the worker has been asked to describe itself.
    open: Option<Open>,
    timepiece: Timepiece,
    pinned: Option<Vec<u32>>,
    rank: u32,
    arranger: Arranger,
    line: Option<Line>,
    point: Stage,
    /// When the point was begun: its time limit is for all of it.
    began: Ticks,
}

/// A device that is open, with the port that is used.
struct Open {
    context: Context,
    port: Arc<LocalPort>,
    /// Why this device.
    reason: Reason,
}

impl Open {
    /// Opens the named device, or the one that [`choose`] prefers, and finds its port, on which something can be measured.
    fn find(
        providers: &[&'static Provider],
        name: Option<&str>,
        options: PortOptions,
    ) -> Result<Self, Error> {
        let (device, reason) = find(providers, name, options)?;
        let context = device.open()?;
        let port = LocalPort::find(&context, options)?;
        port.check()?;
        Ok(Self { context, port: Arc::new(port), reason })
    }
}

/// How far a point has been set up.
enum Stage {
    Idle,
    Prepared(Box<(PointSpec, Waiting)>),
    Connected(Box<(PointSpec, Endpoints)>),
}

impl VerbsWorker {
    /// A worker on the named device, or on the one that [`choose`] prefers. The device is opened when the coordinator
    /// asks for its description, so that an error reaches the coordinator. `skew` makes its clock wrong, for tests.
    pub fn new(
        providers: &'static [&'static Provider],
        device: Option<String>,
        options: PortOptions,
        pinned: Option<Vec<u32>>,
        skew: Option<Skew>,
    ) -> Self {
        let clock = Clock::calibrate();
        let timepiece = Timepiece::new(clock, skew);
        let (open, line, point) = (None, None, Stage::Idle);
        let arranger = Arranger::new(Host::here(), Leave::Own, |_| {});
        Self {
            providers,
            device,
            options,
            open,
            timepiece,
            pinned,
            rank: 0,
            arranger,
            line,
            point,
            began: clock.now(),
        }
    }

    /// Who arranges the conditions of its points.
    #[must_use]
    pub fn arranged_by(mut self, arranger: Arranger) -> Self {
        self.arranger = arranger;
        self
    }

    fn open(&mut self) -> Result<&Open, Error> {
        if self.open.is_none() {
            self.open = Some(Open::find(self.providers, self.device.as_deref(), self.options)?);
        }
        Ok(self.open.as_ref().expect("it was opened above"))
    }

    fn take(&mut self) -> Stage {
        std::mem::replace(&mut self.point, Stage::Idle)
    }

    /// This rank's share of a point, for which so much time is left.
    fn measure(
        &self,
        endpoints: &mut Endpoints,
        spec: &PointSpec,
        left: Duration,
    ) -> Result<Outcome, PointError> {
        let clock = self.timepiece.clock;
        let outcome = match (spec.pattern, self.rank) {
            (Pattern::FanOut, rank) => fan_out::fan_out(endpoints.main()?, spec, rank, clock),
            (Pattern::OneWay, rank) => one_way(endpoints.main()?, spec, rank, &self.timepiece),
            (Pattern::OpenLoop, rank) => open_loop::open_loop(endpoints, spec, (rank, left), &self.timepiece),
            (Pattern::Overhead, rank) => match &self.open {
                Some(Open { context, port, .. }) => {
                    overhead::overhead(endpoints.main()?, (context, port), spec, rank, clock)
                }
                None => return Err(out_of_order("run")),
            },
            (Pattern::Pairs, _) => pairs::pairs(endpoints.main()?, spec, &self.timepiece),
            // The peer's adapter answers alone.
            (Pattern::PingPong, 1..) if spec.operation.is_fetch() => {
                Ok(Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() })
            }
            (Pattern::PingPong, rank) => latency(endpoints.main()?, spec, rank, clock),
            (Pattern::Prtt, rank) => prtt::prtt(endpoints.main()?, spec, rank, clock),
            (Pattern::Stream, rank) if spec.operation.arrives() => {
                stream(endpoints.main()?, spec, rank, clock)
            }
            (Pattern::Stream, rank) => push(endpoints.main()?, spec, rank, clock),
        };
        Ok(outcome?)
    }
}

/// The named device of the providers, or the one that [`choose`] prefers, and why it is the one.
///
/// # Errors
/// When there is none of that name; the error lists those that exist.
pub fn find(
    providers: &[&'static Provider],
    name: Option<&str>,
    options: PortOptions,
) -> Result<(Device, Reason), Error> {
    let Some(name) = name else {
        let (mut devices, candidates): (Vec<_>, Vec<_>) = candidates(providers, options).into_iter().unzip();
        let chosen = choose(&candidates).map(|(index, reason)| (devices.swap_remove(index), reason));
        return chosen.ok_or_else(|| Error::NoDevice { name: "any".to_owned(), known: "none".to_owned() });
    };
    let known: Vec<_> = devices(providers).collect();
    let found = known.iter().find(|device| device.name() == name).cloned();
    found.map(|device| (device, Reason::Named)).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(Device::name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::NoDevice { name: name.to_owned(), known }
    })
}

/// Opens the device and finds its port and GID, as a rank would, so that what was asked for wrongly is known at once.
///
/// # Errors
/// When there is no such device, port or GID, or nothing can be measured on it.
pub fn check(providers: &[&'static Provider], name: Option<&str>, options: PortOptions) -> Result<(), Error> {
    Open::find(providers, name, options).map(drop)
}

impl Worker for VerbsWorker {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        self.rank = rank;
        let cost = self.timepiece.clock.overhead();
        let not_locked = RawSamples::new(1 << 17).map_err(Error::from)?.not_locked().map(str::to_owned);
        let overhead = Overhead {
            rank,
            clock: self.timepiece.clock.name().to_owned(),
            tick_hz: self.timepiece.clock.tick_hz(),
            tick_error_ppm: self.timepiece.clock.tick_error_ppm(),
            stamp_ns: cost.stamp_ns,
            empty_loop_ns: cost.empty_loop_ns,
            one_way_ns: Some(cost.one_way_ns),
            not_locked,
        };
        let mut environment = Environment::capture(rank, self.pinned.clone());
        self.arranger.describe(&mut environment);
        let Open { context, port, reason } = self.open()?;
        Ok(Description {
            device: Some(description::device(context, port, rank, reason)?),
            limits: description::limits(context, port)?,
            environment,
            overhead,
        })
    }

    fn arrange(&mut self, wanted: &Wanted, ranks: &[u32]) -> Vec<Condition> {
        let device = self.open.as_ref().map(|open| open.context.device().name().to_owned());
        let (rank, pinned, ranks) = (self.rank, self.pinned.clone(), ranks.to_vec());
        self.arranger.arrange(wanted, &Place { rank, pinned, ranks, device })
    }

    fn verify(&mut self) -> Vec<Condition> {
        self.arranger.verify(self.rank)
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError> {
        self.reset();
        if let Some(pinned) = &self.pinned {
            // What another rank's guard does to control groups may have moved this one since it was arranged.
            conditions::pin(pinned).map_err(|error| {
                PointError::Failed(format!("rank {} could not go back to its {error}", self.rank))
            })?;
        }
        let (rank, timepiece) = (self.rank, self.timepiece.clone());
        self.began = self.timepiece.clock.now();
        let link = match spec.begins(rank) {
            true => spec.link,
            false => spec.link.map(LinkModel::seen_from_other_end),
        };
        let Open { context, port, .. } = self.open()?;
        if let Some(reason) = port.refusal(spec.setup) {
            return Err(PointError::NotMeasured(reason));
        }
        match context.device().provider().set_link {
            Ok(_) => context.set_link(link.as_ref()).map_err(Error::from)?,
            Err(reason) if link.is_some() => return Err(PointError::NotMeasured(reason.to_owned())),
            Err(_) => {}
        }
        let waiting = Waiting::new(context, port, spec, rank, &timepiece)?;
        let prepared = waiting.prepared(spec.ranks())?;
        self.point = Stage::Prepared(Box::new((spec.clone(), waiting)));
        Ok(prepared)
    }

    fn connect(&mut self, ranks: &[Neighbour]) -> Result<(), PointError> {
        let Stage::Prepared(prepared) = self.take() else { return Err(out_of_order("connect")) };
        let (spec, waiting) = *prepared;
        let endpoints = waiting.connect(ranks)?;
        self.point = Stage::Connected(Box::new((spec, endpoints)));
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        let Stage::Connected(mut connected) = self.take() else { return Err(out_of_order("run")) };
        let (spec, endpoints) = &mut *connected;
        let clock = self.timepiece.clock;
        let spent_s = clock.ns_f64(clock.now().since(self.began)) / 1e9;
        let left_s = (spec.timeout_s - spent_s).max(0.0);
        endpoints.start(left_s)?;
        let outcome = self.measure(endpoints, spec, Duration::from_secs_f64(left_s));
        endpoints.stop();
        let oversubscribed = endpoints.oversubscribed();
        // The endpoint stays up until the other ranks, too, have finished.
        self.point = Stage::Connected(connected);
        Ok(Outcome { oversubscribed, ..outcome? })
    }

    fn calibrate(&mut self, step: &CalibrationStep) -> Result<Calibrated, PointError> {
        match step {
            CalibrationStep::Offer => {
                let (line, handle) = Line::offer()?;
                self.line = Some(line);
                Ok(Calibrated::Offered { handle: serde_json::to_value(handle).map_err(unreadable)? })
            }
            CalibrationStep::Open { handle } => {
                let handle = serde_json::from_value(handle.clone()).map_err(unreadable)?;
                self.line = Some(Line::open(&handle)?);
                Ok(Calibrated::Opened)
            }
            CalibrationStep::Run => {
                let Some(line) = &mut self.line else { return Err(out_of_order("calibrate")) };
                Ok(Calibrated::Measured { one_way_ns: line.run(self.timepiece.clock)? })
            }
        }
    }

    fn reset(&mut self) {
        self.point = Stage::Idle;
    }
}

/// What this rank stamps of messages that are timed one way.
fn one_way(
    endpoint: &mut VerbsEndpoint,
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, Error> {
    let has_one_clock = endpoint.has_one_clock();
    let (stamped, cpu) = one_way::run(endpoint, spec, rank, has_one_clock, timepiece)?;
    let Length::Iterations(messages) = spec.length else { return Ok(Outcome::default()) };
    let counters = if rank == 0 { packets(messages, spec) } else { BTreeMap::new() };
    Ok(Outcome { stamped: Some(Box::new(stamped)), counters, cpu, ..Outcome::default() })
}

fn latency(
    endpoint: &mut VerbsEndpoint,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let kind = if spec.operation.is_fetch() { LatencyKind::Rtt } else { LatencyKind::RttHalf };
    let (samples, cpu) = timed(Bounce { endpoint, spec, rank }, spec, kind, clock)?;
    Ok(Outcome { cpu, ..latency_outcome(&samples, kind, spec, 1) })
}

/// Messages that are recorded one by one.
trait Timed {
    /// Exchanges them; gives what they cost, too.
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>);
}

/// What messages record: every sample, or a histogram where there are too many or none is to be kept.
fn timed(
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
struct Bounce<'a> {
    endpoint: &'a mut VerbsEndpoint,
    spec: &'a PointSpec,
    rank: u32,
}

impl Timed for Bounce<'_> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, rank } = self;
        watched(endpoint.clock(), || {
            if spec.operation.is_fetch() {
                pattern::fetch(endpoint, recorder, spec.warmup, span(spec))
            } else {
                pattern::ping_pong(endpoint, recorder, rank == 0, spec.warmup, span(spec))
            }
        })
    }
}

/// What was recorded, with `posted` messages for each sample.
fn latency_outcome(samples: &Samples, kind: LatencyKind, spec: &PointSpec, posted: u64) -> Outcome {
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
fn per_message(latency: &Latency, spec: &PointSpec) -> Throughput {
    let messages_per_s = f64::from(spec.peers) * 1e9 / (latency.p50_ns.max(1) as f64);
    Throughput::of(messages_per_s, spec.size_bytes, Direction::Uni)
}

fn stream(endpoint: &mut VerbsEndpoint, spec: &PointSpec, rank: u32, clock: Clock) -> Result<Outcome, Error> {
    let reliable = spec.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || pattern::stream(endpoint, flow, spec.warmup, span(spec), reliable));
    let (sent, received) = done?;
    let slower = |flood: &Flood| flood.messages.saturating_mul(1 << 20).checked_div(flood.ticks).unwrap_or(0);
    // Of two directions the slower: what this end received is no faster than it could have been sent.
    let headline = [received, sent].into_iter().flatten().min_by_key(slower).unwrap_or_default();
    let mut counters = packets(sent.map_or(0, |sent| sent.total), spec);
    counters.extend(arrivals(received, spec));
    let throughput = Some(throughput(&headline, spec, clock)?);
    Ok(Outcome { throughput, counters, cpu, ..Outcome::default() })
}

/// A stream of operations that nothing announces at the target: only who posts them has a number.
fn push(endpoint: &mut VerbsEndpoint, spec: &PointSpec, rank: u32, clock: Clock) -> Result<Outcome, Error> {
    let reliable = spec.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || pattern::push(endpoint, flow, spec.warmup, span(spec), reliable));
    let Some(posted) = done? else { return Ok(Outcome { cpu, ..Outcome::default() }) };
    let throughput = Some(throughput(&posted, spec, clock)?);
    Ok(Outcome { throughput, counters: packets(posted.total, spec), cpu, ..Outcome::default() })
}

fn flow(spec: &PointSpec, rank: u32) -> pattern::Flow {
    match (spec.direction, rank) {
        (Flow::Bi, _) => pattern::Flow::Both,
        (Flow::Uni, 0) => pattern::Flow::Out,
        (Flow::Uni, _) => pattern::Flow::In,
    }
}

fn throughput(flood: &Flood, spec: &PointSpec, clock: Clock) -> Result<Throughput, Error> {
    let direction = if spec.direction == Flow::Bi { Direction::BiOne } else { Direction::Uni };
    Ok(Throughput::of(messages_per_s(flood, clock)?, spec.size_bytes, direction))
}

/// The rate of a flood of which something was done.
fn messages_per_s(flood: &Flood, clock: Clock) -> Result<f64, Error> {
    if flood.messages == 0 || flood.ticks == 0 {
        return Err(Error::TooFewMessages { messages: flood.total });
    }
    Ok(flood.messages as f64 * 1e9 / clock.ns_f64(flood.ticks))
}

/// Messages that arrived, and those that did not where the plan says how many there were.
fn arrivals(received: Option<Flood>, spec: &PointSpec) -> BTreeMap<String, u64> {
    let Some(received) = received else { return BTreeMap::new() };
    let mut counters = BTreeMap::from([("messages_received".to_owned(), received.total)]);
    if let Length::Iterations(messages) = spec.length {
        counters.insert("messages_lost".to_owned(), messages.saturating_sub(received.total));
    }
    counters
}

/// Packets that the messages were cut into: one, or as many as there are path MTUs in them (G1).
fn packets(messages: u64, spec: &PointSpec) -> BTreeMap<String, u64> {
    let each = spec.size_bytes.div_ceil(u64::from(spec.mtu_bytes.unwrap_or(u32::MAX))).max(1);
    BTreeMap::from([("packets_sent".to_owned(), messages * each)])
}

fn span(spec: &PointSpec) -> Span {
    match spec.length {
        Length::Duration(seconds) => Span::For(Duration::from_secs_f64(seconds)),
        Length::Iterations(messages) => Span::Messages(messages),
    }
}

fn unreadable(error: serde_json::Error) -> PointError {
    PointError::from(Error::PeerAddress { reason: error.to_string() })
}

fn out_of_order(what: &str) -> PointError {
    PointError::Failed(format!(
        "the agent was asked to {what} without the steps before: this is a bug, please report it"
    ))
}
