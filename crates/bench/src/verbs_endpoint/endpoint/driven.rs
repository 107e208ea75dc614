//! The worker's operations on an endpoint of queue pairs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::VerbsEndpoint;
use crate::Error;
use crate::alarm::Alarm;
use crate::endpoint::calls::CallsVisitor;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::collectives::{CALLS, CollectivesVisitor, WRITES};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::host_counters::Ways;

impl DrivenEndpoint for VerbsEndpoint {
    const CAPABILITIES: Capabilities = Capabilities::COUNTED
        .and(Capabilities::VERBS_CALLS)
        .and(Capabilities::ADDRESSED)
        .and(Capabilities::COLLECTIVES);

    fn visit_calls<V: CallsVisitor>(&mut self, visitor: V) -> Option<V::Done> {
        Some(visitor.visit(self))
    }

    fn visit_collectives<V: CollectivesVisitor>(&mut self, visitor: V) -> Option<V::Done> {
        Some(visitor.visit(self))
    }

    fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        /// Long enough to cost nothing, and short enough to notice the end of a stream, and to keep
        /// a limit even if the alarm rang right before the sleep that it should end.
        const PATIENCE: Duration = Duration::from_millis(50);
        let timeout = Duration::from_secs_f64(timeout_s);
        self.limits.start(timeout);
        self.waiting.end_with(match (&self.queues.channel, self.is_patient) {
            (None, _) => None,
            (Some(_), true) => Some(Alarm::set(timeout, PATIENCE)?.following(self.limits.deadline())),
            // A rank that sleeps must notice that the end of a stream was lost.
            (Some(_), false) => Some(Alarm::set(PATIENCE, PATIENCE)?),
        });
        Ok(())
    }

    fn stop(&mut self) {
        self.waiting.end_with(None);
    }

    fn ways(&self) -> Ways {
        self.origin.port.ways()
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let Some(joined) = &self.joined else { return BTreeMap::new() };
        let counted = [(CALLS, joined.measured.number), (WRITES, joined.measured.written)];
        counted.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }
}
