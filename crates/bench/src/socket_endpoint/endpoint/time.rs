//! How long an endpoint waits, and how it sleeps.

use std::time::Duration;

use measure::clock::Ticks;
use rustix::thread::nanosleep;

use super::watch::Woken;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::endpoint::limits::{Over, timespec};

/// Nobody sleeps for less: the alarm would go off before the sleep has begun, and be lost.
const AT_ONCE: Duration = Duration::from_micros(10);

impl SocketEndpoint {
    /// Ends the point where its time is over, or where a peer or a link has died; asks again what
    /// seems to be lost. Gives the time.
    pub(super) fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let (now, quiet) = match self.limits.look() {
            Ok(found) => found,
            Err(Over::Time(waited_s)) => {
                let advice = self.paths.first().map_or_else(String::new, |path| {
                    format!("raise it, or see what the other rank does ({path})")
                });
                return Err(Error::Deadline { what: "arrived", waited_s, advice });
            }
            Err(Over::Silence(waited_s)) => {
                let lane = self.stuck_lane();
                let said = self.lanes[lane].retransmitted();
                return Err(self.paths[lane].silent(self.awaits_room, waited_s, &said));
            }
        };
        if quiet >= self.lost_after && now.since(self.asked_at) >= self.lost_after {
            self.asked_at = now;
            self.ask_again()?;
        }
        Ok(now)
    }

    /// When there is something else to do than to wait, at the latest.
    pub(super) fn next_look(&self) -> u64 {
        let (limit, quiet_since) = self.limits.next_look();
        // Whoever has asked, over what loses messages, asks again.
        if !self.lanes.iter().filter_map(Lane::stop_and_wait).any(|stop_and_wait| stop_and_wait.asks) {
            return limit;
        }
        limit.min(quiet_since.max(self.asked_at.0).saturating_add(self.lost_after))
    }

    /// The lane that is waited for, or of several, one of those.
    fn stuck_lane(&self) -> usize {
        if self.awaits_room {
            return self.next_lane;
        }
        self.lanes.iter().position(Self::is_unanswered).unwrap_or(0)
    }

    /// The alarm went off while it slept: looks what there is to do, and sets it again.
    #[cold]
    pub(super) fn is_interrupted(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        let until = self.next_look();
        if let Some(alarm) = &mut self.alarm {
            alarm.has_ended();
            alarm.ends(self.clock, until)?;
        }
        Ok(())
    }

    /// Sleeps for what was looked for in vain, no longer than until an instant.
    pub(super) fn sleep(&mut self, now: Ticks, instant: u64) -> Result<(), Error> {
        let until = instant.min(self.next_look());
        let left = until.saturating_sub(now.0);
        if left < self.clock.ticks(AT_ONCE) {
            return Ok(());
        }
        if !self.awaits_message && !self.awaits_room && !self.has_rest {
            // What was posted is sent: there is nothing to wait for but the instant, or nothing at
            // all.
            if instant == u64::MAX {
                return Ok(());
            }
            let left = Duration::from_nanos(self.clock.ns(left));
            let _ = nanosleep(&timespec(left));
            return Ok(());
        }
        if let Some(alarm) = &mut self.alarm {
            alarm.ends(self.clock, until)?;
        }
        let is_awake = if self.awaits_room || self.has_rest {
            // Until there is room, or where a message is waited for too, until one comes.
            self.look_for_room(None)? != Woken::Signal
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
}
