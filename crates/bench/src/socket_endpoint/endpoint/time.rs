//! How long an endpoint waits, and how it sleeps.

use std::time::Duration;

use measure::clock::Ticks;
use rustix::thread::nanosleep;

use super::watch::Woken;
use super::{Lane, SocketEndpoint};
use crate::Error;
use crate::endpoint::limits::{Over, timespec};

/// The shortest sleep: in a shorter one, the alarm could ring before the sleep begins, and be lost.
const AT_ONCE: Duration = Duration::from_micros(10);

impl SocketEndpoint {
    /// Ends the point if its time is over, or if a peer or a link has died. Sends messages again
    /// that seem to be lost. Returns the time.
    pub(super) fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let (now, quiet) = match self.limits.look() {
            Ok(found) => found,
            Err(Over::Time(waited_s)) => {
                let advice = self.paths.first().map_or_else(String::new, |path| {
                    format!("raise it, or check what the other rank does ({path})")
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

    /// Returns the latest time at which waiting must be interrupted.
    pub(super) fn next_look(&self) -> u64 {
        let (limit, quiet_since) = self.limits.next_look();
        // On a lossy lane, the asking rank repeats its message.
        if !self.lanes.iter().filter_map(Lane::stop_and_wait).any(|stop_and_wait| stop_and_wait.asks) {
            return limit;
        }
        limit.min(quiet_since.max(self.asked_at.0).saturating_add(self.lost_after))
    }

    /// Returns the lane that the endpoint waits for, or one of several.
    fn stuck_lane(&self) -> usize {
        if self.awaits_room {
            return self.next_lane;
        }
        self.lanes.iter().position(Self::is_unanswered).unwrap_or(0)
    }

    /// Handles an alarm during a sleep: does what is due, and sets the alarm again.
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

    /// Sleeps for the events that were checked without success, until `instant` at the latest.
    pub(super) fn sleep(&mut self, now: Ticks, instant: u64) -> Result<(), Error> {
        let until = instant.min(self.next_look());
        let left = until.saturating_sub(now.0);
        if left < self.clock.ticks(AT_ONCE) {
            return Ok(());
        }
        if !self.awaits_message && !self.awaits_room && !self.has_rest {
            // All posted messages are sent: there is only the instant to wait for, or nothing.
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
            // Until there is room; if a message is awaited, too, until one arrives.
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
