//! Which completion queues an endpoint waits for, and how it sleeps.

use std::time::Duration;

use measure::clock::Clock;
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use super::setup::Queues;
use crate::Error;
use crate::alarm::Alarm;
use crate::endpoint::limits::timespec;
use crate::point::QueuePoll;
use crate::topology::PartSpec;

/// Completion queues, a bit each.
type QueueSet = u8;
/// The one of receives.
pub(super) const RECEIVES: QueueSet = 1;
/// The one of sends.
pub(super) const SENDS: QueueSet = 2;

/// Nobody sleeps for less: the alarm would go off before the sleep has begun, and be lost.
const AT_ONCE: Duration = Duration::from_micros(10);

/// What is waited for, and what announces it.
pub(super) struct Waiting {
    /// Queues that were looked at in vain since somebody [rested](Self::forget): of those a
    /// completion is waited for.
    awaited: QueueSet,
    /// Those that announce their next completion.
    armed: QueueSet,
    /// Those that are slept for.
    sleepers: QueueSet,
    /// Those of them that announce their next completion before they are polled.
    armed_first: QueueSet,
    /// What ends a sleep.
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

    /// Takes note whether a completion of a queue is waited for.
    #[inline]
    pub(super) fn awaits(&mut self, queue: QueueSet, is_awaited: bool) {
        self.awaited = if is_awaited { self.awaited | queue } else { self.awaited & !queue };
    }

    /// Forgets what is waited for. Whoever still waits for it looks at it again; an answer that was
    /// given up is no reason to keep an end awake.
    pub(super) fn forget(&mut self) {
        self.awaited = 0;
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

    /// From now on sleeps end with the alarm, or with none.
    pub(super) fn end_with(&mut self, alarm: Option<Alarm>) {
        self.alarm = alarm;
    }

    /// Arms the queues; called again without anything having happened, sleeps until one announces a
    /// completion or the alarm interrupts it, at an instant or earlier.
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

    /// Sleeps for a time, whatever completes, or until the alarm interrupts it, at an instant or
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
