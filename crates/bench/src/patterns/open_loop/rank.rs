//! A rank's share of a point with messages at a set rate.

use std::time::Duration;

use measure::clock::Clock;
use measure::record::{Cpu, Direction, LatencyKind, Throughput};
use measure::samples::{HistogramSamples, Recorder, Scale};
use serde::{Deserialize, Serialize};

use super::layout::{CONTROL, LOAD};
use super::schedule::{self, RateKept, Schedule, Times};
use super::settings::Settings;
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::Progress;
use crate::pattern::flood::{FloodProgress, Window};
use crate::pattern::outcome::{self, Outcome};
use crate::pattern::rank::Rank;
use crate::pattern::timed::{Timed, latency_outcome, timed};
use crate::point::{Length, PointSpec, Service};
use crate::rank_clock::RankClock;
use crate::topology::Part;

/// What a rank reports.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    /// When its messages were timed, to count the load in that time.
    pub(super) timed: Option<Window>,
    /// The progress of its load.
    pub(super) passed: Option<FloodProgress>,
}

impl outcome::Told for Told {}

/// Runs one rank of a point.
pub(super) fn open_loop<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Told>), PointError> {
    let spec = rank.spec;
    let number = rank.rank;
    let left = rank.left;
    let rank_clock = rank.rank_clock;
    let settings = Settings::of(spec);
    if settings.is_loader(number) {
        return Ok(load(rank, settings.load_bytes)?);
    }
    let rate_hz = settings.rate_hz;
    let clock = rank_clock.clock;
    let [main, control] = rank.two(Part::MAIN, CONTROL);
    match main {
        Some(endpoint) if number == 0 => {
            let schedule = Schedule {
                period: clock.tick_hz() / rate_hz as f64,
                warmup: spec.warmup,
                messages: messages(spec),
                window: window(spec),
                fetches: spec.message.operation.is_fetch(),
                limit: limit(spec, rate_hz).min(left.mul_f64(LIMIT_SHARE)),
                is_reliable: spec.message.service == Service::Rc,
            };
            let (outcome, window) = ask(endpoint, control, &schedule, spec, rank_clock)?;
            Ok((outcome, Some(Told { timed: Some(window), passed: None })))
        }
        Some(endpoint) if !spec.message.operation.is_fetch() => {
            let period = Duration::from_secs_f64(1.0 / rate_hz as f64);
            let (done, cpu) = watched(clock, || schedule::answer(endpoint, period));
            done?;
            Ok((Outcome { cpu, ..Outcome::default() }, None))
        }
        // The adapter does all the work.
        _ => Ok((Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() }, None)),
    }
}

/// The number of messages that count; a plan's duration has been converted to it.
fn messages(spec: &PointSpec) -> u64 {
    match spec.length {
        Length::Iterations(messages) => messages,
        Length::Duration(_) => 1,
    }
}

/// The most outstanding messages. Where each takes a receive, one receive is always held by a rank
/// that has just received a message.
fn window(spec: &PointSpec) -> usize {
    let receives = spec.message.rx_fill.saturating_sub(1).max(1);
    let window = if spec.message.operation.is_fetch() {
        spec.message.tx_depth
    } else {
        spec.message.tx_depth.min(receives)
    };
    window as usize
}

/// The time limit of a point whose rate is not held: twice the time of all its messages, and a
/// second.
fn limit(spec: &PointSpec, rate_hz: u64) -> Duration {
    let all = (spec.warmup + messages(spec)) as f64 / rate_hz as f64;
    Duration::try_from_secs_f64(2.0 * all + 1.0).unwrap_or(Duration::MAX)
}

/// The share of the remaining time that the messages may take: their last answers take time, too.
const LIMIT_SHARE: f64 = 0.75;

/// Rank 0: exchanges the messages while loaders, if any, load the device.
fn ask<E: Endpoint>(
    endpoint: &mut E,
    control: Option<&mut E>,
    schedule: &Schedule,
    spec: &PointSpec,
    rank_clock: &RankClock,
) -> Result<(Outcome, Window), Error> {
    let clock = rank_clock.clock;
    let [mut rtt, mut lateness] = [(); 2].map(|()| HistogramSamples::new(&clock, Scale::Whole));
    let mut kept = RateKept::default();
    let times = [&mut rtt, &mut lateness];
    let asks = Ask { endpoint, control, schedule, times, kept: &mut kept };
    let (samples, cpu) = timed(asks, spec, LatencyKind::Response, clock)?;
    let seconds = clock.ns_f64(kept.end.saturating_sub(kept.posts[0])) / 1e9;
    if kept.messages < schedule.messages && !kept.is_cut {
        let rate_hz = Settings::of(spec).rate_hz;
        let answered = kept.messages;
        return Err(Error::NotKeptUp { rate_hz, answered, seconds, answered_hz: answered as f64 / seconds });
    }
    let outcome = latency_outcome(&samples, LatencyKind::Response, spec, 1);
    let of = |kind, samples: HistogramSamples| {
        let samples = samples.finish();
        let latency = samples.latency(kind, &spec.share_above_ns)?;
        Some(measure::record::Timed { latency, samples: None, histogram: Some(samples.histogram()) })
    };
    let kinds = [of(LatencyKind::Rtt, rtt), of(LatencyKind::Lateness, lateness)];
    let mut counters = outcome.counters;
    counters.insert("messages_late".to_owned(), kept.late);
    if kept.lost > 0 {
        counters.insert("messages_lost".to_owned(), kept.lost);
        counters.insert("messages_received".to_owned(), kept.messages - kept.lost);
    }
    counters.insert("messages_that_waited_for_room".to_owned(), kept.waited);
    let reasons: Vec<_> = not_held(&kept, schedule, spec).into_iter().chain(outcome.unstable).collect();
    let window = Window { clock: rank_clock.domain.clone(), span: [kept.posts[0], kept.end] };
    let outcome = Outcome {
        kinds: kinds.into_iter().flatten().collect(),
        throughput: posted(&kept, spec, clock),
        counters,
        unstable: (!reasons.is_empty()).then(|| reasons.join("; ")),
        cpu,
        ..outcome
    };
    Ok((outcome, window))
}

/// The rate at which messages were posted; `None` for a single message.
fn posted(kept: &RateKept, spec: &PointSpec, clock: Clock) -> Option<Throughput> {
    let [first, last] = kept.posts;
    let messages_per_s =
        kept.messages.saturating_sub(1) as f64 * 1e9 / clock.ns_f64(last.saturating_sub(first));
    let is_rate = messages_per_s.is_finite() && messages_per_s > 0.0;
    is_rate.then(|| Throughput::of(messages_per_s, spec.message.size_bytes, Direction::Uni))
}

/// Why the point is unstable, where the rate was not held.
fn not_held(kept: &RateKept, schedule: &Schedule, spec: &PointSpec) -> Option<String> {
    let RateKept { messages, late, waited, .. } = kept;
    (*late as f64 > LATE_SHARE_MAX * *messages as f64).then(|| {
        let rate_hz = Settings::of(spec).rate_hz;
        let percent = 100.0 * *late as f64 / *messages as f64;
        let late = format!("{percent:.1} % of {messages} messages were posted after the next was due");
        let waited = match waited {
            0 => String::new(),
            waited => format!(
                ", and {waited} waited because {} were outstanding (the limit of tx_depth and rx_depth)",
                schedule.window
            ),
        };
        format!("the rate of {rate_hz}/s was not held: {late}{waited}")
    })
}

/// Above this share of late messages, the rate was not held.
const LATE_SHARE_MAX: f64 = 0.01;

/// Messages that are posted when they are due, while loaders load the device.
struct Ask<'a, E> {
    endpoint: &'a mut E,
    control: Option<&'a mut E>,
    schedule: &'a Schedule,
    /// The recorders of rtt and lateness.
    times: [&'a mut HistogramSamples; 2],
    kept: &'a mut RateKept,
}

impl<E: Endpoint> Timed for Ask<'_, E> {
    fn run<R: Recorder>(self, response: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, mut control, schedule, times: [rtt, lateness], kept } = self;
        if let Err(error) = control.as_deref_mut().map_or(Ok(()), schedule::begin) {
            return (Err(error), None);
        }
        let mut times = Times { response, rtt, lateness };
        let (asked, cpu) = watched(endpoint.clock(), || schedule::ask(endpoint, &mut times, schedule));
        // The loaders wait for this, also after an error.
        let ended = control.map_or(Ok(()), schedule::end);
        (asked.and_then(|asked| ended.map(|()| *kept = asked)), cpu)
    }
}

/// Runs a rank that loads the device.
fn load<E: DrivenEndpoint>(rank: Rank<'_, E>, load_bytes: u64) -> Result<(Outcome, Option<Told>), Error> {
    let rank_clock = rank.rank_clock;
    let [Some(endpoint), Some(control)] = rank.two(LOAD, CONTROL) else {
        return Ok((Outcome::default(), None));
    };
    let mut progress = Progress::new();
    let (done, cpu) = watched(rank_clock.clock, || schedule::load(endpoint, control, &mut progress));
    let (throughput, passed) = done?.told(progress, load_bytes, rank_clock)?;
    let outcome = Outcome { throughput: Some(throughput), cpu, ..Outcome::default() };
    Ok((outcome, Some(Told { timed: None, passed: Some(passed) })))
}
