//! The timers that tell when a step of a pipeline is due (Potter 2018, VILLASnode).

use std::os::fd::OwnedFd;
use std::time::Duration;

use measure::clock::{Clock, ClockKind, Ticks};
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::Error;
use crate::endpoint::limits::timespec;
use crate::patterns::pipeline::steps::{Tick, Timer};

/// A timer that polls the clock.
#[derive(Debug)]
pub(super) struct Spinning {
    clock: Clock,
    period: f64,
    begin: u64,
}

impl Spinning {
    pub(super) fn new(clock: Clock, rate_hz: u64) -> Self {
        Self { clock, period: clock.tick_hz() / rate_hz as f64, begin: 0 }
    }
}

impl Timer for Spinning {
    fn start(&mut self) -> Result<(), Error> {
        self.begin = self.clock.now().0;
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, step: u64, mut turn: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error> {
        let due = self.begin + ((step + 1) as f64 * self.period) as u64;
        let mut now = self.clock.now();
        let is_behind = now.0 >= due;
        while now.0 < due {
            turn(now)?;
            now = self.clock.now();
        }
        let passed = 1 + ((now.0 - due) as f64 / self.period) as u64;
        Ok(Tick { due, now, passed, is_behind })
    }

    fn period_ns(&self) -> f64 {
        self.period * 1e9 / self.clock.tick_hz()
    }
}

/// A timer of the kernel, for which the generator sleeps.
#[derive(Debug)]
pub(super) struct Sleeping {
    timer: OwnedFd,
    clock: Clock,
    period: Duration,
    /// When it started, by `CLOCK_MONOTONIC`, in ns.
    begin_ns: u64,
    /// When it last woke the generator.
    woke: Ticks,
}

/// Readings of two clocks that are farther apart than this do not belong to the same instant.
const AT_ONCE: Duration = Duration::from_micros(1);
/// The most attempts to read both clocks at the same instant.
const READINGS: u32 = 4;

impl Sleeping {
    /// Creates a timer of `rate_hz` steps per second.
    ///
    /// # Errors
    /// When the kernel has no such timer; [`Error::Impossible`] for a simulated clock, which the
    /// kernel's timer does not follow.
    pub(super) fn new(clock: Clock, rate_hz: u64) -> Result<Self, Error> {
        if clock.kind() == ClockKind::Simulated {
            let reason = "a timer of the kernel does not follow a simulated clock: give timer tsc".to_owned();
            return Err(Error::Impossible { reason });
        }
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).map_err(failed)?;
        // The kernel's timers count whole nanoseconds.
        let period = Duration::from_nanos((1e9 / rate_hz as f64).round().max(1.0) as u64);
        Ok(Self { timer, clock, period, begin_ns: 0, woke: Ticks(0) })
    }

    /// Converts an instant of `CLOCK_MONOTONIC` to the clock that stamps; returns it with a reading
    /// of that clock. Over a long run the two clocks drift apart by more than a step is late, so
    /// they are compared at each step.
    #[inline]
    fn due(&self, due_ns: u64) -> (u64, Ticks) {
        if self.clock.kind() == ClockKind::ClockMonotonic {
            return (due_ns, self.clock.now());
        }
        let mut best = (u64::MAX, 0, Ticks(0));
        let near = self.clock.ticks(AT_ONCE);
        for _ in 0..READINGS {
            let before = self.clock.now();
            let now_ns = Clock::monotonic().now().0;
            let apart = self.clock.now().since(before);
            if apart < best.0 {
                let late = Duration::from_nanos(now_ns.saturating_sub(due_ns));
                best = (apart, (before.0 + apart / 2).saturating_sub(self.clock.ticks(late)), before);
            }
            if apart < near {
                break;
            }
        }
        (best.1, best.2)
    }
}

impl Timer for Sleeping {
    fn start(&mut self) -> Result<(), Error> {
        let period_ns = self.period.as_nanos() as u64;
        self.begin_ns = Clock::monotonic().now().0;
        let first = timespec(Duration::from_nanos(self.begin_ns + period_ns));
        let times = Itimerspec { it_interval: timespec(self.period), it_value: first };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &times).map_err(failed)?;
        self.woke = self.clock.now();
        Ok(())
    }

    fn wait(&mut self, step: u64, _: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error> {
        let due_ns = self.begin_ns + (step + 1) * self.period.as_nanos() as u64;
        // A late wake-up leaves less than a period for the work, but is the timer's fault. Only
        // work that takes longer than a period is behind.
        let is_behind = self.clock.now().since(self.woke) >= self.clock.ticks(self.period);
        let mut expired = [0; size_of::<u64>()];
        loop {
            match read(&self.timer, &mut expired) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let (due, now) = self.due(due_ns);
        self.woke = now;
        // The first reading of the stamping clock may be a few ticks before the converted instant.
        Ok(Tick { due: due.min(now.0), now, passed: u64::from_ne_bytes(expired).max(1), is_behind })
    }

    fn period_ns(&self) -> f64 {
        self.period.as_nanos() as f64
    }
}

fn failed(error: Errno) -> Error {
    Error::System { what: "use a timer of the kernel".to_owned(), cause: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that each step is due a period after the one before, never noticed early, and passed
    /// once.
    fn keeps_its_period(mut timer: impl Timer, clock: Clock, rate_hz: u64) {
        timer.start().unwrap();
        let mut step = 0;
        let mut dues = Vec::new();
        while step < 200 {
            let tick = timer.wait(step, |_| Ok(())).unwrap();
            assert!(tick.now.0 >= tick.due && tick.passed > 0);
            dues.push((step, tick.due));
            step += tick.passed;
        }
        let period = clock.tick_hz() / rate_hz as f64;
        let (first, begin) = dues[0];
        for (step, due) in dues {
            let expected = begin as f64 + (step - first) as f64 * period;
            // Within 2 us: two clocks are compared.
            assert!((due as f64 - expected).abs() < clock.tick_hz() * 2e-6, "step {step}: {due} {expected}");
        }
        assert!((timer.period_ns() - 1e9 / rate_hz as f64).abs() < 0.5);
    }

    #[test]
    fn timers_keep_their_periods() {
        for clock in [Clock::calibrate(), Clock::monotonic()] {
            keeps_its_period(Spinning::new(clock, 3000), clock, 3000);
            keeps_its_period(Sleeping::new(clock, 4000).unwrap(), clock, 4000);
        }
    }

    /// A late caller gets the first step that was due, with the time at which it was due, and the
    /// number of all steps that have passed.
    #[test]
    fn steps_that_nobody_waited_for_have_passed() {
        let clock = Clock::monotonic();
        fn misses(mut timer: impl Timer) {
            timer.start().unwrap();
            let first = timer.wait(0, |_| Ok(())).unwrap();
            std::thread::sleep(Duration::from_millis(25));
            let late = timer.wait(first.passed, |_| panic!("it is due")).unwrap();
            let late_ms = (late.now.0 - late.due) as f64 / 1e6;
            // Ten milliseconds each: due ten after the first, 15 late.
            assert_eq!(late.due - first.due, 10_000_000 * first.passed);
            assert!((14.9..200.0).contains(&late_ms), "{late_ms}");
            assert_eq!((late.passed, late.is_behind), (1 + (late_ms / 10.0) as u64, true));
            assert!(!first.is_behind || first.passed > 1);
        }
        misses(Spinning::new(clock, 100));
        misses(Sleeping::new(clock, 100).unwrap());
    }

    /// The kernel takes longer than a microsecond to wake a thread: the timer misses the steps that
    /// pass in that time, not the work.
    #[test]
    fn whoever_is_woken_late_is_not_behind() {
        let mut timer = Sleeping::new(Clock::calibrate(), 1_000_000).unwrap();
        timer.start().unwrap();
        let mut step = 0;
        let mut behind = 0;
        let mut waits = 0;
        while step < 2000 {
            let tick = timer.wait(step, |_| Ok(())).unwrap();
            (behind, waits, step) = (behind + u32::from(tick.is_behind), waits + 1, step + tick.passed);
        }
        assert!(waits < 2000 && behind <= waits / 4, "{behind} of {waits}");
    }

    #[test]
    fn what_a_turn_says_ends_the_wait() {
        let mut timer = Spinning::new(Clock::monotonic(), 1);
        timer.start().unwrap();
        let mut turns = 0;
        let ended = timer.wait(0, |_| {
            turns += 1;
            if turns < 3 { Ok(()) } else { Err(Error::NoPipeline) }
        });
        assert!(ended.is_err() && turns == 3);
    }
}
