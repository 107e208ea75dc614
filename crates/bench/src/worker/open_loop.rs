//! A point with messages at a set rate: what its ranks do, and what they say of it.

use measure::clock::Clock;
use measure::record::{Cpu, Direction, LatencyKind, Throughput};
use measure::samples::{HistogramSamples, Recorder, Scale};

use super::endpoints::Endpoints;
use super::{Timed, latency_outcome, timed};
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::pattern::open_loop::{self, Kept, Schedule, Times};
use crate::pattern::{self, Progress};
use crate::point::{Length, Part, PointSpec};
use crate::process::message::Outcome;
use crate::timepiece::Timepiece;
use crate::verbs_endpoint::VerbsEndpoint;

/// One rank of it.
pub(super) fn open_loop(
    endpoints: &mut Endpoints,
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, Error> {
    if spec.is_loader(rank) {
        return load(endpoints, spec, timepiece);
    }
    let clock = timepiece.clock;
    match endpoints.of(Part::Main) {
        Some(_) if rank == 0 => ask(endpoints, spec, clock),
        Some(endpoint) if !spec.operation.is_fetch() => {
            let (done, cpu) = watched(clock, || pattern::spoke(endpoint));
            done.map(|()| Outcome { cpu, ..Outcome::default() })
        }
        // Its adapter does all there is to do.
        _ => Ok(Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() }),
    }
}

/// Rank 0: exchanges the messages while others load the device, if there are some.
fn ask(endpoints: &mut Endpoints, spec: &PointSpec, clock: Clock) -> Result<Outcome, Error> {
    if let Some(control) = endpoints.of(Part::Control) {
        open_loop::begin(control)?;
    }
    let asked =
        endpoints.of(Part::Main).map_or_else(|| Ok(Outcome::default()), |main| exchange(main, spec, clock));
    // Whatever became of it: the others wait for that.
    let ended = endpoints.of(Part::Control).map_or(Ok(()), open_loop::end);
    asked.and_then(|outcome| ended.map(|()| outcome))
}

fn exchange(endpoint: &mut VerbsEndpoint, spec: &PointSpec, clock: Clock) -> Result<Outcome, Error> {
    let Length::Iterations(messages) = spec.length else { return Ok(Outcome::default()) };
    let schedule = Schedule {
        period: clock.tick_hz() / spec.rate_hz.unwrap_or(1) as f64,
        warmup: spec.warmup,
        messages,
        window: spec.tx_depth.min(spec.rx_fill) as usize,
        fetches: spec.operation.is_fetch(),
    };
    let [mut rtt, mut lateness] = [(); 2].map(|()| HistogramSamples::new(&clock, Scale::Whole));
    let mut kept = Kept::default();
    let ask = Ask { endpoint, schedule, rtt: &mut rtt, lateness: &mut lateness, kept: &mut kept };
    let (samples, cpu) = timed(ask, spec, LatencyKind::Response, clock)?;
    let outcome = latency_outcome(&samples, LatencyKind::Response, spec, 1);
    let of = |kind, samples: HistogramSamples| {
        let samples = samples.finish();
        let latency = samples.latency(kind, &spec.share_above_ns)?;
        Some(measure::record::Timed { latency, samples: None, histogram: Some(samples.histogram()) })
    };
    let kinds = [of(LatencyKind::Rtt, rtt), of(LatencyKind::Lateness, lateness)];
    let mut counters = outcome.counters;
    counters.insert("messages_late".to_owned(), kept.late);
    Ok(Outcome {
        kinds: kinds.into_iter().flatten().collect(),
        throughput: held(&kept, spec, clock),
        counters,
        unstable: not_held(&kept, messages, spec).or(outcome.unstable),
        cpu,
        ..outcome
    })
}

/// The rate at which messages were posted; none of a single one.
fn held(kept: &Kept, spec: &PointSpec, clock: Clock) -> Option<Throughput> {
    let messages_per_s = (kept.messages - 1) as f64 * 1e9 / clock.ns_f64(kept.ticks);
    let bytes_per_s = messages_per_s * spec.size_bytes as f64;
    let throughput = Throughput { bytes_per_s, messages_per_s, direction: Direction::Uni };
    (kept.messages > 1 && kept.ticks > 0).then_some(throughput)
}

/// What is wrong where the rate was not held.
fn not_held(kept: &Kept, messages: u64, spec: &PointSpec) -> Option<String> {
    let rate_hz = spec.rate_hz.unwrap_or(1);
    if kept.messages < messages {
        let posted = kept.messages;
        return Some(format!(
            "the rate of {rate_hz}/s was not held: {posted} of {messages} messages were posted in twice their time and a second"
        ));
    }
    let (late, share) = (kept.late, kept.late as f64 / messages as f64);
    (share > LATE_SHARE_MAX).then(|| {
        format!(
            "the rate of {rate_hz}/s was not held: {late} of {messages} messages were posted when the next was due already"
        )
    })
}

/// Above this share of late messages the device was not asked at the rate that is said.
const LATE_SHARE_MAX: f64 = 0.01;

/// Messages that are posted when they are due.
struct Ask<'a> {
    endpoint: &'a mut VerbsEndpoint,
    schedule: Schedule,
    rtt: &'a mut HistogramSamples,
    lateness: &'a mut HistogramSamples,
    kept: &'a mut Kept,
}

impl Timed for Ask<'_> {
    fn run<R: Recorder>(self, response: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, schedule, rtt, lateness, kept } = self;
        let mut times = Times { response, rtt, lateness };
        let (done, cpu) = watched(endpoint.clock(), || open_loop::ask(endpoint, &mut times, &schedule));
        (done.map(|done| *kept = done), cpu)
    }
}

/// A rank that loads the device.
fn load(endpoints: &mut Endpoints, spec: &PointSpec, timepiece: &Timepiece) -> Result<Outcome, Error> {
    let Some((endpoint, control)) = endpoints.loading() else { return Ok(Outcome::default()) };
    let mut progress = Progress::new();
    let (done, cpu) = watched(timepiece.clock, || open_loop::load(endpoint, control, &mut progress));
    let outcome = done?.outcome(progress, spec.load_bytes, timepiece)?;
    Ok(Outcome { cpu, ..outcome })
}
