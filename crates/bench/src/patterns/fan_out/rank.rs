//! A rank's share of a fan-out.

use measure::record::{Cpu, Direction, Latency, LatencyKind, Throughput};
use measure::samples::Recorder;

use super::choices::Notify;
use super::rounds;
use super::settings::Settings;
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::answer::answer;
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::timed::{Timed, latency_outcome, timed};
use crate::point::{Operation, PointSpec};

/// The rank that exchanges messages with all others.
const ROOT: u32 = 0;

/// Runs one rank of a fan-out.
pub(super) fn fan_out<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<Outcome, PointError> {
    let spec = rank.spec;
    let clock = rank.clock();
    let is_root = rank.rank == ROOT;
    let endpoint = rank.main()?;
    if !is_root && !spec.message.operation.is_fetch() {
        let (done, cpu) = watched(clock, || answer(endpoint));
        done?;
        return Ok(Outcome { cpu, ..Outcome::default() });
    }
    let kind = match (spec.message.operation.is_fetch(), is_root) {
        (false, _) => LatencyKind::FanHalf,
        (true, true) => LatencyKind::Fan,
        (true, false) => LatencyKind::Rtt,
    };
    let posted = endpoint.lanes();
    let (samples, cpu) = timed(Rounds { endpoint, spec, is_root }, spec, kind, clock)?;
    let outcome = Outcome { cpu, ..latency_outcome(&samples, kind, spec, posted) };
    if !is_root {
        return Ok(outcome);
    }
    let throughput = outcome.latency.as_ref().map(|latency| per_message(latency, spec));
    Ok(Outcome { throughput, ..outcome })
}

/// The throughput as size by latency (Hoefler et al. 2006, section 4.1): the payload that the root
/// sends to all leaves, or fetches from them, in the median time.
fn per_message(latency: &Latency, spec: &PointSpec) -> Throughput {
    let messages_per_s = f64::from(Settings::of(spec).peers) * 1e9 / (latency.p50_ns.max(1) as f64);
    Throughput::of(messages_per_s, spec.message.size_bytes, Direction::Uni)
}

/// The rounds of a rank that times them.
struct Rounds<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    is_root: bool,
}

impl<E: Endpoint> Timed for Rounds<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, is_root } = self;
        let Settings { peers, notify, .. } = Settings::of(spec);
        // A Write causes no completion at its target.
        let is_silent = spec.message.operation == Operation::Write;
        let notify = notify.unwrap_or(if is_silent { Notify::Memory } else { Notify::Completion });
        let warmup = spec.warmup;
        let length = spec.length;
        watched(endpoint.clock(), || match (spec.message.operation.is_fetch(), is_root) {
            (false, _) => rounds::root(endpoint, recorder, u64::from(peers), warmup, length),
            (true, true) => rounds::fetching_root(endpoint, recorder, notify, warmup, length),
            (true, false) => rounds::fetching_leaf(endpoint, recorder, notify, warmup),
        })
    }
}
