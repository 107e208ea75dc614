//! The verbs calls of an endpoint that are timed in batches: through the wrapper, without counting
//! messages.

use verbs::Route;

use super::VerbsEndpoint;
use crate::Error;
use crate::endpoint::calls::{Calls, Step};
use crate::endpoint::limits::Limits;
use crate::verbs_endpoint::Objects;

impl VerbsEndpoint {
    /// Returns the route to the peer.
    ///
    /// # Errors
    /// If there is no rank to connect to.
    pub(crate) fn route(&self) -> Result<Route, Error> {
        let nobody = || Error::PeerAddress { reason: "there is no rank to connect to".to_owned() };
        self.others.routes.first().copied().ok_or_else(nobody)
    }

    /// Returns the point's time limits.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }
}

impl Calls for VerbsEndpoint {
    type Objects<'a> = Objects<'a>;

    fn objects(&self, step: Step, batch: u32) -> Result<Objects<'_>, Error> {
        Objects::new(&self.origin, self, step, batch)
    }

    fn accept(&self, step: Step, batch: u32, batches: u64) -> Result<(), Error> {
        Objects::new(&self.origin, self, step, batch)?.accept(batches)
    }

    #[inline]
    fn post_sends(&mut self, calls: u32) -> Result<(), Error> {
        let lane = &mut self.lanes[0];
        (0..calls).try_for_each(|_| lane.post_alike())
    }

    #[inline]
    fn poll_sends(&mut self, calls: u32) -> Result<u32, Error> {
        let mut taken = 0;
        for _ in 0..calls {
            if let [completion] = self.queues.send.poll(&mut self.sent[..1])? {
                if !completion.status().is_success() {
                    let completion = *completion;
                    return Err(self.failure(completion, "sent"));
                }
                taken += 1;
            }
        }
        Ok(taken)
    }

    #[inline]
    fn poll_receives(&mut self, calls: u32) -> Result<u32, Error> {
        let mut taken = 0;
        for _ in 0..calls {
            if let [completion] = self.queues.receive.poll(&mut self.arrived[..1])? {
                if !completion.status().is_success() {
                    let completion = *completion;
                    return Err(self.failure(completion, "received"));
                }
                taken += 1;
            }
        }
        Ok(taken)
    }

    #[inline]
    fn post_receives(&mut self, calls: u32) -> Result<(), Error> {
        let lane = &mut self.lanes[0];
        for _ in 0..calls {
            lane.post_receive(&mut self.buffers.receives[self.next_receive])?;
            self.next_receive += 1;
            if self.next_receive == self.buffers.receives.len() {
                self.next_receive = 0;
            }
        }
        Ok(())
    }
}
