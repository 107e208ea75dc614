//! How long an endpoint waits, and how it sleeps.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::thread::nanosleep;
use rustix::time::Timespec;

use super::watch::Woken;
use super::{Alternation, LOST_AFTER, Lane, SocketEndpoint};
use crate::Error;
use crate::point::{Part, Pattern, PointSpec};

/// How long nothing happens where a peer or a link has died. TCP has asked five times again by then.
const PATIENCE: Duration = Duration::from_secs(10);
/// How late a pause is noticed, at most: who sleeps does not look at the clock with every message.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// Nobody sleeps for less: the alarm would go off before the sleep has begun, and be lost.
const AT_ONCE: Duration = Duration::from_micros(10);

/// When an endpoint gives up.
pub(super) struct Limits {
    clock: Clock,
    began: Ticks,
    /// The end of the point's time, in ticks.
    deadline: u64,
    /// How long nothing may happen, in ticks; absent where a pause is no sign of a failure.
    patience: Option<u64>,
    lost_after: u64,
    /// Whether something happened since `quiet_since` was looked at last.
    has_moved: bool,
    quiet_since: Ticks,
    /// When it was asked again last.
    asked_at: Ticks,
}

impl Limits {
    pub(super) fn new(spec: &PointSpec, clock: Clock) -> Self {
        let now = clock.now();
        let never_pauses =
            matches!(spec.pattern, Pattern::FanOut | Pattern::Pairs | Pattern::PingPong | Pattern::Stream);
        let patience = (never_pauses && spec.part == Part::Main).then(|| clock.ticks(PATIENCE));
        Self {
            clock,
            began: now,
            deadline: u64::MAX,
            patience,
            lost_after: clock.ticks(LOST_AFTER),
            has_moved: false,
            quiet_since: now,
            asked_at: now,
        }
    }

    /// The point's time begins.
    pub(super) fn start(&mut self, timeout: Duration) {
        self.began = self.clock.now();
        self.quiet_since = self.began;
        self.deadline = self.began.0.saturating_add(self.clock.ticks(timeout));
    }

    /// Whether something has come on a lane: bytes of a stream are something, however long their message takes.
    #[inline]
    pub(super) fn has_come(&mut self, filled: bool, lane: &Lane) {
        self.has_moved |= filled && matches!(lane, Lane::Stream { .. });
    }

    /// Something has happened.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// How long nothing has happened.
    pub(super) fn quiet(&self) -> Duration {
        if self.has_moved {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.clock.ns(self.clock.now().since(self.quiet_since)))
    }

    /// When there is something else to do than to wait, at the latest.
    pub(super) fn next_look(&self, is_asking: bool) -> u64 {
        let now = self.clock.now().0;
        let quiet = if self.has_moved { now } else { self.quiet_since.0 };
        let after = |ticks: u64| quiet.saturating_add(ticks);
        let patience = self.patience.map_or(u64::MAX, |patience| {
            after(patience).min(now.saturating_add(self.clock.ticks(LOOKS_EVERY)))
        });
        let lost =
            if is_asking { after(self.lost_after).max(self.asked_at.0 + self.lost_after) } else { u64::MAX };
        self.deadline.min(patience).min(lost)
    }
}

impl SocketEndpoint {
    /// Ends the point where its time is over, or where a peer or a link has died; asks again what seems to be lost. Gives the
    /// time.
    pub(super) fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let lane = self.stuck_lane();
        let limits = &mut self.limits;
        let now = limits.clock.now();
        if limits.has_moved {
            (limits.has_moved, limits.quiet_since) = (false, now);
        }
        let quiet = now.since(limits.quiet_since);
        let clock = limits.clock;
        let waited_s = |since: u64| clock.ns_f64(since) / 1e9;
        if now.0 >= limits.deadline {
            let waited_s = waited_s(now.since(limits.began));
            let advice = self.paths.first().map_or_else(String::new, |path| {
                format!("raise it, or see what the other rank does ({path})")
            });
            return Err(Error::Deadline { what: "arrived", waited_s, advice });
        }
        if limits.patience.is_some_and(|patience| quiet >= patience) {
            let waited_s = waited_s(quiet);
            let said = self.lanes[lane].retransmitted();
            return Err(self.paths[lane].silent(self.awaits_room, waited_s, &said));
        }
        if quiet >= limits.lost_after && now.since(limits.asked_at) >= limits.lost_after {
            limits.asked_at = now;
            self.ask_again()?;
        }
        Ok(now)
    }

    /// The lane that is waited for, or of several, one of those.
    fn stuck_lane(&self) -> usize {
        if self.awaits_room {
            return self.next_lane;
        }
        self.lanes.iter().position(|lane| Self::is_unanswered(lane, self.size)).unwrap_or(0)
    }

    /// Whether it has asked, over what loses messages, and has no answer.
    pub(super) fn is_asking(&self) -> bool {
        let asks = |lane: &Lane| match lane {
            Lane::Datagram(datagram) => datagram.alternation.as_ref().is_some_and(Alternation::asks),
            Lane::Stream { .. } => false,
        };
        self.lanes.iter().any(asks)
    }

    /// The alarm went off while it slept: looks what there is to do, and sets it again.
    #[cold]
    pub(super) fn is_interrupted(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        let until = self.limits.next_look(self.is_asking());
        if let Some(alarm) = &mut self.alarm {
            alarm.has_ended();
            alarm.ends(self.clock, until)?;
        }
        Ok(())
    }

    /// Sleeps for what was looked for in vain, no longer than until an instant.
    pub(super) fn sleep(&mut self, now: Ticks, instant: u64) -> Result<(), Error> {
        let until = instant.min(self.limits.next_look(self.is_asking()));
        let left = until.saturating_sub(now.0);
        if left < self.clock.ticks(AT_ONCE) {
            return Ok(());
        }
        if !self.awaits_message && !self.awaits_room && !self.has_rest {
            // What was posted is sent: there is nothing to wait for but the instant, or nothing at all.
            if instant == u64::MAX {
                return Ok(());
            }
            let left = Duration::from_nanos(self.clock.ns(left));
            let tv_sec = left.as_secs().try_into().unwrap_or(i64::MAX);
            let _ = nanosleep(&Timespec { tv_sec, tv_nsec: left.subsec_nanos().into() });
            return Ok(());
        }
        if let Some(alarm) = &mut self.alarm {
            alarm.ends(self.clock, until)?;
        }
        let is_awake = if self.awaits_room || self.has_rest {
            self.await_room()?
        } else if let Some(is_awake) = self.await_much(now)? {
            is_awake
        } else if let Some(ready) = &mut self.ready {
            ready.look(true)?
        } else {
            self.fill(0, true)?
        };
        if !is_awake {
            self.is_interrupted()?;
        }
        Ok(())
    }

    /// Sleeps until there is room, or where a message is waited for too, until one comes; whether no signal came.
    fn await_room(&mut self) -> Result<bool, Error> {
        Ok(self.look_for_room(None)? != Woken::Signal)
    }
}
