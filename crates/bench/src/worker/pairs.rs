//! A point of several pairs: what its ranks do, and what they say of it.

use measure::clock::Clock;
use measure::record::{Cpu, Direction, LatencyKind, Throughput};
use measure::samples::{HistogramSamples, Recorder, Scale};

use super::patterns::{Timed, latency_outcome, messages_per_s, packets, span, timed};
use crate::Error;
use crate::barrier::Barrier;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::pattern::pairs::Burst;
use crate::pattern::{self, Flood, Progress, Span};
use crate::point::{PointSpec, Traffic};
use crate::process::message::{Outcome, Passed};
use crate::timepiece::Timepiece;

/// One rank of a point of several pairs.
pub(super) fn pairs<E: Endpoint>(
    (endpoint, barrier): (&mut E, Option<Barrier>),
    spec: &PointSpec,
    timepiece: &Timepiece,
) -> Result<Outcome, Error> {
    let clock = timepiece.clock;
    let Some(mut barrier) = barrier else { return answer(endpoint, spec, clock) };
    match spec.traffic {
        Traffic::PingPong => bounce(endpoint, &mut barrier, spec, clock),
        Traffic::Stream => flood(endpoint, &mut barrier, spec, timepiece),
    }
}

/// The rank that does what the other end of its pair wants.
fn answer<E: Endpoint>(endpoint: &mut E, spec: &PointSpec, clock: Clock) -> Result<Outcome, Error> {
    if spec.message.operation.is_fetch()
        || (spec.traffic == Traffic::Stream && !spec.message.operation.arrives())
    {
        // Its adapter does all there is to do.
        return Ok(Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() });
    }
    let (done, cpu) = watched(clock, || match spec.traffic {
        Traffic::PingPong => pattern::spoke(endpoint),
        Traffic::Stream => pattern::pairs::drain(endpoint, spec.warmup).map(drop),
    });
    done.map(|()| Outcome { cpu, ..Outcome::default() })
}

fn bounce<E: Endpoint>(
    endpoint: &mut E,
    barrier: &mut Barrier,
    spec: &PointSpec,
    clock: Clock,
) -> Result<Outcome, Error> {
    let kind = if spec.message.operation.is_fetch() { LatencyKind::Rtt } else { LatencyKind::RttHalf };
    let mut skews = HistogramSamples::new(&clock, Scale::Whole);
    let messages = Bounce { endpoint, barrier, skews: &mut skews, spec };
    let (samples, cpu) = timed(messages, spec, kind, clock)?;
    let skew = skews.finish().latency(LatencyKind::StartSkew, &spec.share_above_ns);
    Ok(Outcome { cpu, skew, ..latency_outcome(&samples, kind, spec, 1) })
}

/// A message that goes forth and back while others do.
struct Bounce<'a, E> {
    endpoint: &'a mut E,
    barrier: &'a mut Barrier,
    skews: &'a mut HistogramSamples,
    spec: &'a PointSpec,
}

impl<E: Endpoint> Timed for Bounce<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, barrier, skews, spec } = self;
        let Span::Messages(messages) = span(spec) else { return (Ok(()), None) };
        let fetches = spec.message.operation.is_fetch();
        watched(endpoint.clock(), || {
            pattern::pairs::bounce(endpoint, barrier, (recorder, skews), fetches, (spec.warmup, messages))
        })
    }
}

fn flood<E: Endpoint>(
    endpoint: &mut E,
    barrier: &mut Barrier,
    spec: &PointSpec,
    timepiece: &Timepiece,
) -> Result<Outcome, Error> {
    let clock = timepiece.clock;
    let mut progress = Progress::new();
    let (done, cpu) =
        watched(clock, || pattern::pairs::flood(endpoint, barrier, &mut progress, spec.warmup, span(spec)));
    let burst = done?;
    let total = burst.total;
    let outcome = burst.outcome(progress, spec.message.size_bytes, timepiece)?;
    Ok(Outcome { counters: packets(total, spec), cpu, ..outcome })
}

impl Burst {
    /// What is said of a flood of messages of so many bytes.
    pub(super) fn outcome(
        self,
        progress: Progress,
        bytes: u64,
        timepiece: &Timepiece,
    ) -> Result<Outcome, Error> {
        let clock = timepiece.clock;
        let Self { messages, total, .. } = self;
        let flood = Flood { messages, ticks: self.end.since(self.begin), total };
        let messages_per_s = messages_per_s(&flood, clock)?;
        let passed = Passed {
            clock: timepiece.domain.clone(),
            tick_hz: clock.tick_hz(),
            span: [self.begin.0, self.end.0],
            seen: progress.into_seen(),
        };
        Ok(Outcome {
            throughput: Some(Throughput::of(messages_per_s, bytes, Direction::Uni)),
            passed: Some(Box::new(passed)),
            ..Outcome::default()
        })
    }
}
