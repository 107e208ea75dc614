//! A time limit for calls that have none: `ibv_get_cq_event` and reads of sockets sleep until an
//! event comes, but a signal ends them.
//!
//! A poll(2) before each sleep would also set a limit, but costs one more system call. On rxe this
//! call reduced the rate of small messages by 8 %, and neither perftest nor applications make it.
//!
//! # Invariants
//!
//! * The sleep of a rank that times messages ends when the awaited event comes or when there is
//!   other work, never only to check. The alarm for its limit is set lazily, so that no message
//!   costs an additional system call.

use std::time::Duration;

use measure::clock::Clock;

use crate::{Error, signal};

/// The interval after a first time that was soon, in case that signal was lost. Such an alarm means
/// work to do, and not a limit.
const AGAIN: Duration = Duration::from_micros(200);

/// An alarm that repeatedly interrupts the system calls of the thread that has set it, until it is
/// dropped.
pub(crate) struct Alarm {
    timer: libc::timer_t,
    then: Duration,
    /// When it goes off, in ticks, if it follows the sleeps ([`following`](Self::following)); 0 if
    /// it has gone off.
    at: Option<u64>,
}

impl Alarm {
    /// Sets an alarm for the first time after `first`, then every `then`. Once would not be enough,
    /// because a thread may be interrupted right before it sleeps.
    pub(crate) fn set(first: Duration, then: Duration) -> Result<Self, Error> {
        extern "C" fn nothing(_: libc::c_int) {}
        // No flags: system calls are not restarted. Nothing else in this program uses the signal.
        let action = signal::action(nothing as extern "C" fn(libc::c_int) as usize, 0);
        signal::install(libc::SIGALRM, &action).map_err(|error| failed("sigaction", &error))?;
        // SAFETY: all zeroes is a valid sigevent.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
        let mut timer = std::ptr::null_mut();
        // SAFETY: the event is readable and the timer writable.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0 {
            return Err(failed("timer_create", &std::io::Error::last_os_error()));
        }
        let alarm = Self { timer, then, at: None };
        alarm.again(first)?;
        Ok(alarm)
    }

    /// Makes it follow the ends of sleeps ([`ends`](Self::ends)). It is currently set to `at`.
    pub(crate) fn following(mut self, at: u64) -> Self {
        self.at = Some(at);
        self
    }

    /// Makes it go off at `instant` or earlier, if it follows the ends of sleeps. While messages
    /// come, it is not set again, so that it does not cost a system call for each message.
    pub(crate) fn ends(&mut self, clock: Clock, instant: u64) -> Result<(), Error> {
        let now = clock.now().0;
        // It may have gone off while the thread did not sleep; then `has_ended` was not called.
        if self.at.is_some_and(|at| at <= now || instant < at) {
            self.again(Duration::from_nanos(clock.ns(instant.saturating_sub(now))))?;
            self.at = Some(instant);
        }
        Ok(())
    }

    /// Notes that it has gone off.
    pub(crate) fn has_ended(&mut self) {
        self.at = self.at.map(|_| 0);
    }

    /// Sets it again: for the first time after `first`, then at the same interval as before, or at
    /// [`AGAIN`] if `first` is shorter.
    fn again(&self, first: Duration) -> Result<(), Error> {
        // A first time of zero would switch it off.
        let first = first.max(Duration::from_nanos(1));
        let then = if first < self.then { AGAIN } else { self.then };
        let times = libc::itimerspec { it_value: spec(first), it_interval: spec(then) };
        // SAFETY: the timer lives as long as the value, and the times are readable.
        if unsafe { libc::timer_settime(self.timer, 0, &raw const times, std::ptr::null_mut()) } != 0 {
            return Err(failed("timer_settime", &std::io::Error::last_os_error()));
        }
        Ok(())
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer was made by timer_create and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

fn spec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn failed(call: &'static str, error: &std::io::Error) -> Error {
    Error::Alarm { call, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    use super::*;

    /// How long a read of an empty pipe takes until it is interrupted.
    fn interrupted(reader: &std::io::PipeReader) -> Duration {
        let start = Instant::now();
        let mut byte = 0_u8;
        // SAFETY: the descriptor is open and the byte is writable.
        let read = unsafe { libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) };
        let error = std::io::Error::last_os_error();
        assert_eq!((read, error.kind()), (-1, std::io::ErrorKind::Interrupted));
        start.elapsed()
    }

    #[test]
    fn it_ends_sleep_after_sleep_and_then_no_more() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let first = Duration::from_millis(60);
        let then = Duration::from_millis(20);
        let alarm = Alarm::set(first, then).unwrap();
        assert!(interrupted(&reader) >= Duration::from_millis(50));
        interrupted(&reader);
        interrupted(&reader);
        drop(alarm);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(3 * then);
                drop(writer);
            });
            // std's read would continue after an interruption, but this read is not interrupted.
            let mut byte = [0];
            assert_eq!(reader.read(&mut byte).unwrap(), 0);
        });
    }

    #[test]
    fn it_follows_what_is_slept_for_and_goes_off_no_later() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let clock = Clock::monotonic();
        let far = clock.now().0 + 3_600_000_000_000;
        let alarm = Alarm::set(Duration::from_secs(3600), Duration::from_millis(20)).unwrap();
        let mut alarm = alarm.following(far);
        let mut sleep = |ms: u64| {
            alarm.ends(clock, clock.now().0 + ms * 1_000_000).unwrap();
            let slept = interrupted(&reader);
            alarm.has_ended();
            slept
        };
        assert!(sleep(60) >= Duration::from_millis(50));
        assert!(sleep(90) >= Duration::from_millis(80), "it is set again once it has gone off");
        alarm.ends(clock, clock.now().0 + 1_000_000).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert!(
            interrupted(&reader) < Duration::from_millis(15),
            "a lost alarm that was soon comes again at once"
        );
        alarm.has_ended();
        alarm.ends(clock, clock.now().0 + 60_000_000).unwrap();
        alarm.ends(clock, far).unwrap();
        assert!(interrupted(&reader) < Duration::from_secs(3000), "it stays as it was");
    }

    #[test]
    fn others_are_not_interrupted() {
        let _alarm = Alarm::set(Duration::from_millis(1), Duration::from_millis(1)).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let nap = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                rustix::event::poll(&mut [], Some(&nap))
            });
            assert_eq!(other.join().unwrap(), Ok(0));
        });
    }
}
