//! When an endpoint gives up: at the end of its point's time, or where a peer or what lies between
//! has died.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use rustix::time::Timespec;

use crate::Error;
use crate::topology::PartSpec;

/// How long nothing happens where a peer or a link has died. TCP has asked five times again by
/// then.
const PATIENCE: Duration = Duration::from_secs(10);
/// How late a pause is noticed, at most: who sleeps does not look at the clock with every message.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// A time for the kernel to sleep.
pub(crate) fn timespec(time: Duration) -> Timespec {
    let tv_sec = time.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// What an endpoint may wait for.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    clock: Clock,
    began: Ticks,
    /// The end of the point's time, in ticks.
    deadline: u64,
    /// How long nothing may happen, in ticks; absent where a pause is no sign of a failure.
    patience: Option<u64>,
    /// Whether something happened since `quiet_since` was looked at last.
    has_moved: bool,
    quiet_since: Ticks,
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Over {
    /// The point's time, after so many seconds.
    Time(f64),
    /// Nothing happened for so many seconds.
    Silence(f64),
}

impl Limits {
    pub(crate) fn new(spec: &PartSpec, clock: Clock) -> Self {
        let now = clock.now();
        // A pause is no sign of a failure where the pattern makes some.
        let patience = (!spec.usage.pauses).then(|| clock.ticks(PATIENCE));
        Self { clock, began: now, deadline: u64::MAX, patience, has_moved: false, quiet_since: now }
    }

    /// The end of the point's time, in ticks.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Takes silence for a failure only after so many times as long, or never.
    pub(crate) fn bearing(mut self, times: Option<u64>) -> Self {
        self.patience = self.patience.zip(times).map(|(patience, times)| patience.saturating_mul(times));
        self
    }

    /// The point's time begins.
    pub(crate) fn start(&mut self, timeout: Duration) {
        self.began = self.clock.now();
        self.quiet_since = self.began;
        self.deadline = self.began.0.saturating_add(self.clock.ticks(timeout));
    }

    /// Something has happened.
    #[inline]
    pub(crate) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// How long nothing has happened.
    pub(crate) fn quiet(&self) -> Duration {
        if self.has_moved {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.clock.ns(self.clock.now().since(self.quiet_since)))
    }

    /// Looks at the clock; gives the time, and for how many ticks nothing has happened.
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

    /// When it is over if nothing happens after the last [`look`](Self::look).
    pub(crate) fn end(&self) -> u64 {
        self.patience
            .map_or(self.deadline, |patience| self.deadline.min(self.quiet_since.0.saturating_add(patience)))
    }

    /// Looks at the clock where a failure has nothing to say but the way on which it was. Gives the
    /// time.
    ///
    /// # Errors
    /// [`Error::Deadline`] when the point's time is over, [`Error::Silent`] when the other rank
    /// seems to have died.
    #[cold]
    pub(crate) fn check(&mut self, awaits_room: bool, path: impl FnOnce() -> String) -> Result<Ticks, Error> {
        match self.look() {
            Ok((now, _)) => Ok(now),
            Err(Over::Time(waited_s)) => {
                let advice = format!("raise it, or see what the other rank does ({})", path());
                Err(Error::Deadline { what: "arrived", waited_s, advice })
            }
            Err(Over::Silence(waited_s)) => {
                let what = if awaits_room { "was taken by the peer" } else { "came from the peer" };
                let path = path();
                let advice = "its program has stopped: look there";
                Err(Error::Silent { what, path, waited_s, said: String::new(), advice })
            }
        }
    }

    /// When to look again at the latest, and when something happened last, as far as is known.
    pub(crate) fn next_look(&self) -> (u64, u64) {
        let now = self.clock.now().0;
        let quiet = if self.has_moved { now } else { self.quiet_since.0 };
        let patience = self.patience.map_or(u64::MAX, |patience| {
            quiet.saturating_add(patience).min(now.saturating_add(self.clock.ticks(LOOKS_EVERY)))
        });
        (self.deadline.min(patience), quiet)
    }
}
