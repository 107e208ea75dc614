//! A point of one to n: what its ranks do, and what becomes of what they record.

use measure::clock::Clock;
use measure::record::{Cpu, LatencyKind};
use measure::samples::Recorder;

use super::rounds;
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::point::PointSpec;
use crate::process::message::Outcome;
use crate::worker::patterns::{Timed, latency_outcome, per_message, span, timed};

/// One rank of a point of one to n.
pub(crate) fn fan_out<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let is_hub = spec.is_hub(rank);
    if !is_hub && !spec.message.operation.is_fetch() {
        let (done, cpu) = watched(clock, || rounds::spoke(endpoint));
        return done.map(|()| Outcome { cpu, ..Outcome::default() });
    }
    let kind = match (spec.message.operation.is_fetch(), is_hub) {
        (false, _) => LatencyKind::FanHalf,
        (true, true) => LatencyKind::Fan,
        (true, false) => LatencyKind::Rtt,
    };
    let posted = endpoint.lanes();
    let (samples, cpu) = timed(Rounds { endpoint, spec, is_hub }, spec, kind, clock)?;
    let outcome = Outcome { cpu, ..latency_outcome(&samples, kind, spec, posted) };
    if !is_hub {
        return Ok(outcome);
    }
    let throughput = outcome.latency.as_ref().map(|latency| per_message(latency, spec));
    Ok(Outcome { throughput, ..outcome })
}

/// What a rank that records does.
struct Rounds<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    is_hub: bool,
}

impl<E: Endpoint> Timed for Rounds<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, is_hub } = self;
        let (notify, warmup, span) = (spec.notify, spec.warmup, span(spec));
        watched(endpoint.clock(), || match (spec.message.operation.is_fetch(), is_hub) {
            (false, _) => rounds::hub(endpoint, recorder, u64::from(spec.peers), warmup, span),
            (true, true) => rounds::fetching_hub(endpoint, recorder, notify, warmup, span),
            (true, false) => rounds::fetching_spoke(endpoint, recorder, notify, warmup),
        })
    }
}
