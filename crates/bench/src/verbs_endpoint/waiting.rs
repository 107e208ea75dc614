//! Which completion queues an endpoint waits for, and how it sleeps.

use super::setup::Queues;
use crate::Error;
use crate::point::{PointSpec, QueuePoll};

/// Completion queues, a bit each.
type QueueSet = u8;
/// The one of receives.
pub(super) const RECEIVES: QueueSet = 1;
/// The one of sends.
pub(super) const SENDS: QueueSet = 2;

/// What is waited for, and what announces it.
pub(super) struct Waiting {
    /// Queues of which a completion is waited for.
    awaited: QueueSet,
    /// Those that announce their next completion.
    armed: QueueSet,
    /// Those that are slept for.
    sleepers: QueueSet,
    /// Those of them that announce their next completion before they are polled.
    armed_first: QueueSet,
}

impl Waiting {
    pub(super) fn new(spec: &PointSpec) -> Self {
        let set = |is_in: fn(QueuePoll) -> bool| {
            let receives = if is_in(spec.poll) { RECEIVES } else { 0 };
            receives | if is_in(spec.send_poll) { SENDS } else { 0 }
        };
        let armed_first = set(|poll| poll == QueuePoll::Event);
        Self { awaited: 0, armed: 0, sleepers: set(QueuePoll::sleeps), armed_first }
    }

    /// Takes note whether a completion of a queue is waited for.
    #[inline]
    pub(super) fn awaits(&mut self, queue: QueueSet, is_awaited: bool) {
        self.awaited = if is_awaited { self.awaited | queue } else { self.awaited & !queue };
    }

    /// Whether a completion of a queue is waited for.
    pub(super) fn is_for(&self, queue: QueueSet) -> bool {
        self.awaited & queue != 0
    }

    /// Whether a queue is slept for.
    pub(super) fn sleeps_for(&self, queue: QueueSet) -> bool {
        self.sleepers & queue != 0
    }

    /// Whether all that is waited for is slept for.
    #[inline]
    pub(super) fn sleeps(&self) -> bool {
        self.awaited != 0 && self.awaited & !self.sleepers == 0
    }

    /// Arms the queues; called again without anything having happened, sleeps until one announces a completion or the alarm
    /// interrupts it.
    pub(super) fn sleep(&mut self, queues: &Queues) -> Result<(), Error> {
        let Some(channel) = &queues.channel else { return Ok(()) };
        if self.awaited & !self.armed != 0 {
            return self.arm(queues, self.awaited);
        }
        match channel.event() {
            Err(error) if !error.is_interruption() => return Err(error.into()),
            _ => self.armed = 0,
        }
        self.arm(queues, self.awaited & self.armed_first)
    }

    /// Lets queues announce their next completion.
    fn arm(&mut self, queues: &Queues, set: QueueSet) -> Result<(), Error> {
        if set & RECEIVES != 0 {
            queues.receive.arm()?;
        }
        if set & SENDS != 0 {
            queues.send.arm()?;
        }
        self.armed |= set;
        Ok(())
    }
}
