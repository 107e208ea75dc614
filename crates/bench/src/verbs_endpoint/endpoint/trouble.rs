//! The errors of an endpoint whose request failed, or to which nothing arrives any more.

use std::time::Duration;

use measure::clock::Ticks;
use verbs::Completion;
use verbs::abi::IBV_WC_WR_FLUSH_ERR;

use super::super::lane::Lane;
use super::super::waiting::SENDS;
use super::VerbsEndpoint;
use crate::Error;
use crate::endpoint::limits::Over;

impl VerbsEndpoint {
    /// Returns the failure of a request, or the failure that caused it: a queue pair that fails
    /// flushes all its other requests, and these may be seen first.
    #[cold]
    pub(super) fn failure(&mut self, seen: Completion, what: &'static str) -> Error {
        /// The device has done both by then: it flushes right after a failure.
        const PATIENCE: Duration = Duration::from_millis(100);
        let is_flush = |completion: &Completion| completion.status().0 == IBV_WC_WR_FLUSH_ERR;
        let mut failed = (seen, what);
        let until = self.clock.now().0.saturating_add(self.clock.ticks(PATIENCE));
        while is_flush(&failed.0) && self.clock.now().0 < until {
            for (queue, what) in [(&self.queues.send, "sent"), (&self.queues.receive, "received")] {
                let polled = queue.poll(&mut self.sent).unwrap_or_default();
                let cause =
                    |completion: &&Completion| !completion.status().is_success() && !is_flush(completion);
                if let Some(cause) = polled.iter().find(cause) {
                    failed = (*cause, what);
                }
            }
        }
        let (completion, what) = failed;
        // The requests of a lane count from 0; receives have no number.
        let message = (what == "sent").then(|| Lane::of(completion.id()).1 - 1);
        let status = completion.status();
        let lane = if what == "sent" { Lane::of(completion.id()).0 } else { completion.id() as usize };
        let path = self.others.paths.get(lane).or(self.others.paths.first());
        let advice = path.map_or_else(String::new, |path| path.advice(status));
        Error::Completion { message, what, status, advice }
    }

    /// Ends the point if its time is over, or if the peer has been silent for too long; returns the
    /// time.
    pub(super) fn check_deadline(&mut self) -> Result<Ticks, Error> {
        let over = match self.limits.look() {
            Ok((now, _)) => return Ok(now),
            Err(over) => over,
        };
        // A receiver has also sent messages that the peer's device should have acknowledged, even
        // if the peer's program has ended.
        self.reap()?;
        let is_unacknowledged = self.waiting.is_for(SENDS) || self.outstanding >= self.signal_interval;
        match (over, self.others.paths.first()) {
            (Over::Silence(waited_s), Some(path)) => Err(path.silent(is_unacknowledged, waited_s)),
            (Over::Time(waited_s) | Over::Silence(waited_s), path) => {
                let what = if is_unacknowledged { "was acknowledged" } else { "arrived" };
                let advice = path.map_or_else(String::new, |path| path.advice_on_silence(is_unacknowledged));
                Err(Error::Deadline { what, waited_s, advice })
            }
        }
    }
}
