//! The completion queues that an endpoint waits for, and how it sleeps.

use std::time::Duration;

use measure::clock::Clock;
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use super::setup::Queues;
use crate::Error;
use crate::alarm::Alarm;
use crate::endpoint::limits::timespec;
use crate::point::QueuePoll;
use crate::topology::PartSpec;

/// Completion queues, one bit each.
type QueueSet = u8;
/// The queue of receives.
pub(super) const RECEIVES: QueueSet = 1;
/// The queue of sends.
pub(super) const SENDS: QueueSet = 2;

/// The shortest sleep: in a shorter one, the alarm could ring before the sleep begins, and be lost.
const AT_ONCE: Duration = Duration::from_micros(10);

/// The events that are awaited, and how they are announced.
pub(super) struct Waiting {
    /// Queues that were polled without success since the last [`forget`](Self::forget): a
    /// completion of these is awaited.
    awaited: QueueSet,
    /// Queues that announce their next completion.
    armed: QueueSet,
    /// Queues that the endpoint sleeps for.
    sleepers: QueueSet,
    /// Queues of these that announce their next completion before they are polled.
    armed_first: QueueSet,
    /// The alarm that ends a sleep.
    alarm: Option<Alarm>,
}

impl Waiting {
    pub(super) fn new(spec: &PartSpec) -> Self {
        let set = |is_in: fn(QueuePoll) -> bool| {
            let receives = if is_in(spec.message.poll) { RECEIVES } else { 0 };
            receives | if is_in(spec.message.send_poll) { SENDS } else { 0 }
        };
        let armed_first = set(|poll| poll == QueuePoll::Event);
        Self { awaited: 0, armed: 0, sleepers: set(QueuePoll::sleeps), armed_first, alarm: None }
    }

    /// Notes whether a completion of a queue is awaited.
    #[inline]
    pub(super) fn awaits(&mut self, queue: QueueSet, is_awaited: bool) {
        self.awaited = if is_awaited { self.awaited | queue } else { self.awaited & !queue };
    }

    /// Forgets what is awaited. A caller that still waits polls again; an answer that is no longer
    /// awaited must not keep the rank awake.
    pub(super) fn forget(&mut self) {
        self.awaited = 0;
    }

    /// Returns whether a completion of a queue is awaited.
    pub(super) fn is_for(&self, queue: QueueSet) -> bool {
        self.awaited & queue != 0
    }

    /// Returns whether the endpoint sleeps for a queue.
    pub(super) fn sleeps_for(&self, queue: QueueSet) -> bool {
        self.sleepers & queue != 0
    }

    /// Returns whether the endpoint sleeps for everything that is awaited.
    #[inline]
    pub(super) fn sleeps(&self) -> bool {
        self.awaited != 0 && self.awaited & !self.sleepers == 0
    }

    /// Sets the alarm that ends sleeps from now on, if any.
    pub(super) fn end_with(&mut self, alarm: Option<Alarm>) {
        self.alarm = alarm;
    }

    /// Arms the queues. If called again without an event in between, sleeps until a queue announces
    /// a completion, or until the alarm interrupts the sleep at `until` or earlier.
    pub(super) fn sleep(&mut self, queues: &Queues, clock: Clock, until: u64) -> Result<(), Error> {
        let Some(channel) = &queues.channel else { return Ok(()) };
        if self.awaited & !self.armed != 0 {
            return self.arm(queues, self.awaited);
        }
        if let Some(alarm) = &mut self.alarm {
            if until.saturating_sub(clock.now().0) < clock.ticks(AT_ONCE) {
                return Ok(());
            }
            alarm.ends(clock, until)?;
        }
        match channel.event() {
            Ok(()) => {}
            Err(error) if error.is_interruption() => self.is_interrupted(),
            Err(error) => return Err(error.into()),
        }
        self.armed = 0;
        self.arm(queues, self.awaited & self.armed_first)
    }

    /// Sleeps for `time`, whatever completes, or until the alarm interrupts the sleep at `until` or
    /// earlier.
    pub(super) fn nap(&mut self, time: Duration, clock: Clock, until: u64) -> Result<(), Error> {
        if let Some(alarm) = &mut self.alarm {
            alarm.ends(clock, until)?;
        }
        if let NanosleepRelativeResult::Interrupted(_) = nanosleep(&timespec(time)) {
            self.is_interrupted();
        }
        Ok(())
    }

    fn is_interrupted(&mut self) {
        self.alarm.iter_mut().for_each(Alarm::has_ended);
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
