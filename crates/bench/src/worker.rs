//! What an agent does for its coordinator: sets points up on a device, runs their patterns and makes the statistics.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::clock::Clock;
use measure::record::{self, Direction, Environment, LatencyKind, Overhead, Throughput};
use measure::samples::{HistogramSamples, RawSamples, Samples, Scale};
use measure::step;
use serde_json::{Value, json};
use verbs::{Context, Device, Provider};

use crate::Error;
use crate::calibrate::Line;
use crate::pattern::{self, Flood, Span};
use crate::point::{Flow, Length, Pattern, PointSpec, RAW_SAMPLES_MAX, Service};
use crate::process::agent::{PointError, Worker};
use crate::process::message::{Calibrated, CalibrationStep, Description, Limits, Outcome};
use crate::verbs_endpoint::{self, Address, Unconnected, VerbsEndpoint};

/// A rank that measures through a verbs device.
pub struct VerbsWorker {
    providers: &'static [&'static Provider],
    device: Option<String>,
    /// Open once the worker has been asked to describe itself.
    context: Option<Context>,
    clock: Clock,
    pinned: Option<Vec<u32>>,
    rank: u32,
    line: Option<Line>,
    point: Stage,
}

/// How far a point has been set up.
enum Stage {
    Idle,
    Prepared(Box<(PointSpec, Unconnected)>),
    Connected(Box<(PointSpec, VerbsEndpoint)>),
}

impl VerbsWorker {
    /// A worker on the named device, or on the first that the providers have. The device is opened when the coordinator
    /// asks for its description, so that an error reaches the coordinator.
    pub fn new(
        providers: &'static [&'static Provider],
        device: Option<String>,
        pinned: Option<Vec<u32>>,
    ) -> Self {
        let clock = Clock::calibrate();
        Self { providers, device, context: None, clock, pinned, rank: 0, line: None, point: Stage::Idle }
    }

    fn context(&mut self) -> Result<&Context, Error> {
        if self.context.is_none() {
            self.context = Some(find(self.providers, self.device.as_deref())?.open()?);
        }
        Ok(self.context.as_ref().expect("it was opened above"))
    }

    fn take(&mut self) -> Stage {
        std::mem::replace(&mut self.point, Stage::Idle)
    }
}

/// The named device of the providers, or the first.
///
/// # Errors
/// When there is none of that name; the error lists those that exist.
pub fn find(providers: &[&'static Provider], name: Option<&str>) -> Result<Device, Error> {
    let mut known = Vec::new();
    for provider in providers {
        // A provider that cannot list its devices has none to offer; `rdmascope devices` says why.
        known.extend(verbs::devices(provider).unwrap_or_default());
    }
    let found = known.iter().find(|device| name.is_none_or(|name| device.name() == name));
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = known.iter().map(Device::name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::NoDevice { name: name.unwrap_or("any").to_owned(), known }
    })
}

impl Worker for VerbsWorker {
    fn describe(&mut self, rank: u32) -> Result<Description, PointError> {
        self.rank = rank;
        let cost = self.clock.overhead();
        let not_locked = RawSamples::new(1 << 17).map_err(Error::from)?.not_locked().map(str::to_owned);
        let overhead = Overhead {
            rank,
            clock: self.clock.name().to_owned(),
            tick_hz: self.clock.tick_hz(),
            tick_error_ppm: self.clock.tick_error_ppm(),
            stamp_ns: cost.stamp_ns,
            empty_loop_ns: cost.empty_loop_ns,
            not_locked,
        };
        let environment = Environment::capture(rank, self.pinned.clone());
        let context = self.context()?;
        Ok(Description {
            device: Some(describe(context, rank)?),
            limits: limits(context)?,
            environment,
            overhead,
        })
    }

    fn prepare(&mut self, spec: &PointSpec) -> Result<Value, PointError> {
        self.reset();
        if spec.signal_rate != NATIVE_RATE {
            let reason = self.context()?.device().provider().no_signal_rate;
            return Err(PointError::NotMeasured(reason.to_owned()));
        }
        let unconnected = Unconnected::new(self.context()?, spec)?;
        let address = serde_json::to_value(unconnected.address()).map_err(unreadable)?;
        self.point = Stage::Prepared(Box::new((spec.clone(), unconnected)));
        Ok(address)
    }

    fn connect(&mut self, peer: &Value) -> Result<(), PointError> {
        let Stage::Prepared(prepared) = self.take() else { return Err(out_of_order("connect")) };
        let (spec, unconnected) = *prepared;
        let peer: Address = serde_json::from_value(peer.clone()).map_err(unreadable)?;
        let endpoint = unconnected.connect(&peer, self.clock)?;
        self.point = Stage::Connected(Box::new((spec, endpoint)));
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, PointError> {
        let Stage::Connected(mut connected) = self.take() else { return Err(out_of_order("run")) };
        let (spec, endpoint) = &mut *connected;
        endpoint.start(spec.timeout_s);
        let outcome = match spec.pattern {
            Pattern::PingPong => ping_pong(endpoint, spec, self.rank, self.clock),
            Pattern::Stream => stream(endpoint, spec, self.rank, self.clock),
        };
        // The endpoint stays up until the peer, too, has finished.
        self.point = Stage::Connected(connected);
        Ok(outcome?)
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
                Ok(Calibrated::Measured { one_way_ns: line.run(self.clock)? })
            }
        }
    }

    fn reset(&mut self) {
        self.point = Stage::Idle;
    }
}

/// The link as it is.
const NATIVE_RATE: &str = "native";

fn ping_pong(
    endpoint: &mut VerbsEndpoint,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let scale = Scale::of(LatencyKind::RttHalf);
    let first = rank == 0;
    let raw = match spec.length {
        Length::Iterations(n) if n <= RAW_SAMPLES_MAX && spec.keep_samples => usize::try_from(n).ok(),
        _ => None,
    };
    let samples = if let Some(room) = raw {
        let mut samples = RawSamples::new(room)?;
        pattern::ping_pong(endpoint, &mut samples, first, spec.warmup, span(spec))?;
        samples.finish(&clock, scale)
    } else {
        let mut samples = HistogramSamples::new(&clock, scale);
        pattern::ping_pong(endpoint, &mut samples, first, spec.warmup, span(spec))?;
        samples.finish()
    };
    Ok(latency_outcome(&samples, spec))
}

fn latency_outcome(samples: &Samples, spec: &PointSpec) -> Outcome {
    let unstable = step::step(&samples.series()).map(|step| {
        let until =
            step.back_at_share.map_or(String::new(), |share| format!(" until {:.0} %", share * 100.0));
        format!(
            "the latency of the messages shifted from {:.0} to {:.0} ns at {:.0} % of the point{until}",
            step.before_ns,
            step.after_ns,
            step.at_share * 100.0
        )
    });
    Outcome {
        latency: samples.latency(LatencyKind::RttHalf, &spec.share_above_ns),
        histogram: samples.raw().is_none().then(|| samples.histogram()),
        counters: packets(samples.count(), spec),
        unstable,
        samples: samples.raw().unwrap_or_default().to_vec(),
        ..Outcome::default()
    }
}

fn stream(endpoint: &mut VerbsEndpoint, spec: &PointSpec, rank: u32, clock: Clock) -> Result<Outcome, Error> {
    let (flow, direction) = match (spec.direction, rank) {
        (Flow::Bi, _) => (pattern::Flow::Both, Direction::BiOne),
        (Flow::Uni, 0) => (pattern::Flow::Out, Direction::Uni),
        (Flow::Uni, _) => (pattern::Flow::In, Direction::Uni),
    };
    let reliable = spec.service == Service::Rc;
    let (sent, received) = pattern::stream(endpoint, flow, spec.warmup, span(spec), reliable)?;
    let slower = |flood: &Flood| flood.messages.saturating_mul(1 << 20).checked_div(flood.ticks).unwrap_or(0);
    // Of two directions the slower: what this end received is no faster than it could have been sent.
    let headline = [received, sent].into_iter().flatten().min_by_key(slower).unwrap_or_default();
    if headline.messages == 0 || headline.ticks == 0 {
        return Err(Error::TooFewMessages { messages: headline.total });
    }
    let messages_per_s = headline.messages as f64 * 1e9 / clock.ns_f64(headline.ticks);
    let mut counters = packets(sent.map_or(0, |sent| sent.total), spec);
    counters.extend(arrivals(received, spec));
    let throughput =
        Throughput { bytes_per_s: messages_per_s * spec.size_bytes as f64, messages_per_s, direction };
    Ok(Outcome { throughput: Some(throughput), counters, ..Outcome::default() })
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
    let each = spec.size_bytes.div_ceil(u64::from(spec.mtu_bytes)).max(1);
    BTreeMap::from([("packets_sent".to_owned(), messages * each)])
}

fn span(spec: &PointSpec) -> Span {
    match spec.length {
        Length::Duration(seconds) => Span::For(Duration::from_secs_f64(seconds)),
        Length::Iterations(messages) => Span::Messages(messages),
    }
}

/// The device as the record has it.
pub fn describe(context: &Context, rank: u32) -> Result<record::Device, Error> {
    let (device, limits) = (context.device(), context.limits()?);
    let port = context.port(verbs_endpoint::PORT)?;
    let gid = context.gid(verbs_endpoint::PORT, u32::from(verbs_endpoint::GID_INDEX))?;
    let attributes = [
        ("firmware", json!(limits.firmware)),
        ("node_guid", json!(format!("{:016x}", limits.node_guid))),
        ("link_layer", json!(format!("{:?}", port.link_layer))),
        ("port_state", json!(format!("{:?}", port.state))),
        ("active_mtu_bytes", json!(port.active_mtu.bytes())),
        ("max_mtu_bytes", json!(port.max_mtu.bytes())),
        ("max_message_bytes", json!(port.max_message_bytes)),
        ("lid", json!(port.lid)),
        ("gid", json!(gid.to_string())),
        ("max_qp", json!(limits.max_qp)),
        ("max_qp_wr", json!(limits.max_qp_wr)),
        ("max_sge", json!(limits.max_sge)),
    ];
    Ok(record::Device {
        rank,
        name: device.name().to_owned(),
        provider: format!("{} ({})", device.provider().name, device.provider().about),
        attributes: attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    })
}

fn limits(context: &Context) -> Result<Limits, Error> {
    let (limits, port) = (context.limits()?, context.port(verbs_endpoint::PORT)?);
    Ok(Limits {
        inline_bytes_max: Some(verbs_endpoint::inline_bytes_max(context)?),
        message_bytes_max: Some(u64::from(port.max_message_bytes)),
        mtu_bytes_max: Some(port.active_mtu.bytes()),
        depth_max: Some(limits.max_qp_wr),
    })
}

fn unreadable(error: serde_json::Error) -> PointError {
    PointError::from(Error::PeerAddress { reason: error.to_string() })
}

fn out_of_order(what: &str) -> PointError {
    PointError::Failed(format!(
        "the agent was asked to {what} without the steps before: this is a bug, please report it"
    ))
}
