//! Calls that are timed by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::clock::Clock;
use measure::record::{Cost, LatencyKind};
use measure::samples::{RawSamples, Scale};
use measure::step::step as step_of;
use verbs::Context;

use super::batches::{Count, answer, overhead as overhead_of, time};
use crate::Error;
use crate::point::{Length, PointSpec};
use crate::process::message::Outcome;
use crate::verbs_endpoint::{LocalPort, Objects, VerbsEndpoint};
use crate::worker::patterns::latency_outcome;

/// Times the step of the point, or does for the rank that times it what a peer does.
pub(crate) fn overhead(
    endpoint: &mut VerbsEndpoint,
    (context, port): (&Context, &Arc<LocalPort>),
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let (Some(step), Length::Iterations(batches)) = (spec.step, spec.length) else {
        return Ok(Outcome::default());
    };
    let is_answered = step.has_messages() && spec.message.operation.arrives();
    if rank != step.rank() {
        let (takes, gives) = if step.is_of_receiver() { (1, spec.batch) } else { (spec.batch, 1) };
        if is_answered {
            answer(endpoint, takes, gives)?;
        }
        return Ok(Outcome::default());
    }
    let stamp_ns = clock.overhead().stamp_ns;
    let count = Count { calls: spec.batch, warmup: spec.warmup, batches };
    let mut samples = RawSamples::new(usize::try_from(batches).unwrap_or(usize::MAX))?;
    let incomplete = if step.is_hot() {
        overhead_of(endpoint, &mut samples, step, is_answered, count)?
    } else {
        let topology = spec.topology();
        let [main] = &topology.parts[..] else { return Ok(Outcome::default()) };
        let mut objects = Objects::new(context, port, endpoint, clock, (main, step, spec.batch))?;
        time(&mut objects, &mut samples, clock, count)?
    };
    let counters = BTreeMap::from([("batches_incomplete".to_owned(), incomplete)]);
    let samples = samples.finish(&clock, Scale::of(LatencyKind::Call));
    let unstable = step_of(&samples.series()).map(|shift| shift.of("the time of a batch"));
    let outcome = latency_outcome(&samples, LatencyKind::Call, spec, 1);
    let mut outcome = Outcome { counters, unstable, ..outcome };
    outcome.cost =
        outcome.latency.as_ref().map(|batches| Cost::new(step.name(), spec.batch, batches, stamp_ns));
    if !spec.keep_samples {
        outcome.samples.clear();
        outcome.histogram = Some(samples.histogram());
    }
    Ok(outcome)
}
