//! A point of parametrised round trips: what its ranks do.

use std::time::Duration;

use measure::clock::Clock;
use measure::record::{Cpu, LatencyKind};
use measure::samples::Recorder;

use super::rounds::{Burst, answer, prtt as rounds};
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::point::PointSpec;
use crate::process::message::Outcome;
use crate::worker::patterns::{Timed, latency_outcome, span, timed};

/// Times the rounds, at rank 0, or answers them.
pub(crate) fn prtt<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let messages = spec.burst.unwrap_or(1);
    if rank > 0 {
        let (done, cpu) = watched(clock, || answer(endpoint, messages));
        return done.map(|()| Outcome { cpu, ..Outcome::default() });
    }
    let burst = Burst { messages, pause: Duration::from_nanos(spec.pause_ns) };
    let (samples, cpu) = timed(Rounds { endpoint, spec, burst }, spec, LatencyKind::Prtt, clock)?;
    Ok(Outcome { cpu, ..latency_outcome(&samples, LatencyKind::Prtt, spec, messages.into()) })
}

/// Rounds that are timed.
struct Rounds<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    burst: Burst,
}

impl<E: Endpoint> Timed for Rounds<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, burst } = self;
        watched(endpoint.clock(), || rounds(endpoint, recorder, burst, spec.warmup, span(spec)))
    }
}
