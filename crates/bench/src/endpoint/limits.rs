//! When an endpoint gives up: when the point's time is over, or when a peer or the network to it
//! has failed.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::time::Timespec;

use crate::Error;
use crate::topology::PartSpec;

/// How long nothing may happen before a peer or a link counts as failed. TCP has retransmitted five
/// times by then.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest delay in noticing a pause: a rank that sleeps does not read the clock with every
/// message.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// Converts a duration to the kernel's type.
pub(crate) fn timespec(time: Duration) -> Timespec {
    let tv_sec = time.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// How long an endpoint may wait.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    clock: Clock,
    began: Ticks,
    /// The end of the point's time, in ticks.
    deadline: u64,
    /// How long nothing may happen, in ticks; `None` if a pause does not mean a failure.
    patience: Option<u64>,
    /// Whether something has happened since `quiet_since` was last updated.
    has_moved: bool,
    quiet_since: Ticks,
}

/// Why the wait is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Over {
    /// The point's time is over, after this many seconds.
    Time(f64),
    /// Nothing has happened for this many seconds.
    Silence(f64),
}

impl Limits {
    pub(crate) fn new(spec: &PartSpec, clock: Clock) -> Self {
        let now = clock.now();
        // The pattern itself pauses, so a pause does not mean a failure.
        let patience = (!spec.usage.pauses).then(|| clock.ticks(PATIENCE));
        Self { clock, began: now, deadline: u64::MAX, patience, has_moved: false, quiet_since: now }
    }

    /// The end of the point's time, in ticks.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Multiplies the time after which silence means a failure by `times`; with `None`, it never
    /// does.
    pub(crate) fn bearing(mut self, times: Option<u64>) -> Self {
        self.patience = self.patience.zip(times).map(|(patience, times)| patience.saturating_mul(times));
        self
    }

    /// Starts the point's time.
    pub(crate) fn start(&mut self, timeout: Duration) {
        self.began = self.clock.now();
        self.quiet_since = self.began;
        self.deadline = self.began.0.saturating_add(self.clock.ticks(timeout));
    }

    /// Notes that something has happened.
    #[inline]
    pub(crate) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// Returns how long nothing has happened.
    pub(crate) fn quiet(&self) -> Duration {
        if self.has_moved {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.clock.ns(self.clock.now().since(self.quiet_since)))
    }

    /// Reads the clock; returns the time, and for how many ticks nothing has happened.
    pub(crate) fn look(&mut self) -> Result<(Ticks, u64), Over> {
        let now = self.clock.now();
        if self.has_moved {
            (self.has_moved, self.quiet_since) = (false, now);
        }
        let quiet = now.since(self.quiet_since);
        let seconds = |ticks: u64| self.clock.ns_f64(ticks) / 1e9;
        if now.0 >= self.deadline {
            return Err(Over::Time(seconds(now.since(self.began))));
        }
        if self.patience.is_some_and(|patience| quiet >= patience) {
            return Err(Over::Silence(seconds(quiet)));
        }
        Ok((now, quiet))
    }

    /// Returns when the wait is over if nothing happens after the last [`look`](Self::look).
    pub(crate) fn end(&self) -> u64 {
        self.patience
            .map_or(self.deadline, |patience| self.deadline.min(self.quiet_since.0.saturating_add(patience)))
    }

    /// Reads the clock, for endpoints that can report nothing about a failure except the path.
    /// Returns the time.
    ///
    /// # Errors
    /// [`Error::Deadline`] when the point's time is over, [`Error::Silent`] when the other rank
    /// seems to have died.
    #[cold]
    pub(crate) fn check(&mut self, awaits_room: bool, path: impl FnOnce() -> String) -> Result<Ticks, Error> {
        match self.look() {
            Ok((now, _)) => Ok(now),
            Err(Over::Time(waited_s)) => {
                let advice = format!("raise it, or check what the other rank does ({})", path());
                Err(Error::Deadline { what: "arrived", waited_s, advice })
            }
            Err(Over::Silence(waited_s)) => {
                let what = if awaits_room { "was taken by the peer" } else { "came from the peer" };
                let path = path();
                let advice = "its program has stopped: check its host";
                Err(Error::Silent { what, path, waited_s, said: String::new(), advice })
            }
        }
    }

    /// Returns when to look again at the latest, and when something last happened, as far as is
    /// known.
    pub(crate) fn next_look(&self) -> (u64, u64) {
        let now = self.clock.now().0;
        let quiet = if self.has_moved { now } else { self.quiet_since.0 };
        let patience = self.patience.map_or(u64::MAX, |patience| {
            quiet.saturating_add(patience).min(now.saturating_add(self.clock.ticks(LOOKS_EVERY)))
        });
        (self.deadline.min(patience), quiet)
    }
}
