//! A point of several pairs: what its ranks do, and what they say of it.

use measure::clock::Clock;
use measure::record::{Cpu, Direction, LatencyKind, Throughput};
use measure::samples::{HistogramSamples, Recorder, Scale};

use super::loops::{self, Burst};
use crate::Error;
use crate::barrier::Barrier;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::pattern::{Progress, Span};
use crate::patterns::fan_out::spoke;
use crate::patterns::stream::Flood;
use crate::point::{PointSpec, Traffic};
use crate::process::message::{Outcome, Passed};
use crate::timepiece::Timepiece;
use crate::worker::patterns::{Timed, latency_outcome, messages_per_s, packets, span, timed};

/// One rank of a point of several pairs.
pub(crate) fn pairs<E: Endpoint>(
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
        Traffic::PingPong => spoke(endpoint),
        Traffic::Stream => loops::drain(endpoint, spec.warmup).map(drop),
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
            loops::bounce(endpoint, barrier, (recorder, skews), fetches, (spec.warmup, messages))
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
        watched(clock, || loops::flood(endpoint, barrier, &mut progress, spec.warmup, span(spec)));
    let burst = done?;
    let total = burst.total;
    let outcome = burst.outcome(progress, spec.message.size_bytes, timepiece)?;
    Ok(Outcome { counters: packets(total, spec), cpu, ..outcome })
}

impl Burst {
    /// What is said of a flood of messages of so many bytes.
    pub(crate) fn outcome(
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
