//! A rank's share of a point of pairs.

use measure::clock::Clock;
use measure::record::{Cpu, LatencyKind};
use measure::samples::{HistogramSamples, Recorder, Scale};

use super::choices::Traffic;
use super::loops;
use super::settings::Settings;
use crate::Error;
use crate::barrier::Barrier;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::Progress;
use crate::pattern::answer::answer;
use crate::pattern::flood::FloodProgress;
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::timed::{Timed, latency_outcome, packets, timed};
use crate::point::{Length, PointSpec};
use crate::rank_clock::RankClock;

/// Runs one rank of a point of pairs.
pub(super) fn pairs<E: DrivenEndpoint>(
    mut rank: Rank<'_, E>,
) -> Result<(Outcome, Option<FloodProgress>), PointError> {
    let spec = rank.spec;
    let rank_clock = rank.rank_clock;
    let barrier = rank.barrier();
    let clock = rank_clock.clock;
    let traffic = Settings::of(spec).traffic;
    let endpoint = rank.main()?;
    let Some(mut barrier) = barrier else { return Ok((respond(endpoint, spec, traffic, clock)?, None)) };
    match traffic {
        Traffic::PingPong => Ok((bounce(endpoint, &mut barrier, spec, clock)?, None)),
        Traffic::Stream => Ok(flood(endpoint, &mut barrier, spec, rank_clock)?),
    }
}

/// Runs the rank that responds to the sender of its pair.
fn respond<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    traffic: Traffic,
    clock: Clock,
) -> Result<Outcome, Error> {
    let is_flood = traffic == Traffic::Stream;
    if spec.message.operation.is_fetch() || (is_flood && !spec.message.operation.arrives()) {
        // The adapter does all the work.
        return Ok(Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() });
    }
    let (done, cpu) = watched(clock, || match traffic {
        Traffic::PingPong => answer(endpoint),
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

/// Messages that go out and come back, started together with those of other pairs.
struct Bounce<'a, E> {
    endpoint: &'a mut E,
    barrier: &'a mut Barrier,
    skews: &'a mut HistogramSamples,
    spec: &'a PointSpec,
}

impl<E: Endpoint> Timed for Bounce<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, barrier, skews, spec } = self;
        let Length::Iterations(messages) = spec.length else { return (Ok(()), None) };
        let fetches = spec.message.operation.is_fetch();
        watched(endpoint.clock(), || {
            loops::bounce(endpoint, barrier, recorder, skews, fetches, spec.warmup, messages)
        })
    }
}

fn flood<E: Endpoint>(
    endpoint: &mut E,
    barrier: &mut Barrier,
    spec: &PointSpec,
    rank_clock: &RankClock,
) -> Result<(Outcome, Option<FloodProgress>), Error> {
    let mut progress = Progress::new();
    let (done, cpu) = watched(rank_clock.clock, || {
        loops::flood(endpoint, barrier, &mut progress, spec.warmup, spec.length)
    });
    let burst = done?;
    let counters = packets(burst.total, spec);
    let (throughput, passed) = burst.told(progress, spec.message.size_bytes, rank_clock)?;
    Ok((Outcome { throughput: Some(throughput), counters, cpu, ..Outcome::default() }, Some(passed)))
}
