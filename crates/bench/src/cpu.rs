//! The CPU time of the measuring thread while it sends and receives messages, without the
//! preparation of arrays before and the statistics afterwards.

use measure::clock::{Clock, ClockKind, Ticks};
use measure::record::Cpu;
use rustix::time::{ClockId, clock_gettime};

/// Runs `messages`, the measured part of a point. Returns its result, and the CPU time of the
/// calling thread if the kernel counts it.
pub(crate) fn watched<T>(clock: Clock, messages: impl FnOnce() -> T) -> (T, Option<Cpu>) {
    let watch = CpuWatch::start(clock);
    let done = messages();
    (done, watch.and_then(CpuWatch::end))
}

/// Counts the CPU time of a thread from its start to its end.
struct CpuWatch {
    clock: Clock,
    began: Ticks,
    before: Account,
}

impl CpuWatch {
    /// Starts to count for the calling thread. Returns `None` if the kernel does not count it, or
    /// if the clock is simulated.
    fn start(clock: Clock) -> Option<Self> {
        if clock.kind() == ClockKind::Simulated {
            return None;
        }
        Some(Self { clock, before: account()?, began: clock.now() })
    }

    /// The CPU time since the start. The calling thread must be the same.
    fn end(self) -> Option<Cpu> {
        let wall_ns = self.clock.ns(self.clock.now().since(self.began));
        let after = account()?;
        let used_ns = after.used_ns.saturating_sub(self.before.used_ns);
        let before = self.before.usage;
        let after = after.usage;
        let ns = |from: libc::timeval, to: libc::timeval| {
            let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
            u64::try_from((us(to) - us(from)) * 1000).unwrap_or(0)
        };
        let count = |from: libc::c_long, to: libc::c_long| u64::try_from(to - from).unwrap_or(0);
        let system_ns = ns(before.ru_stime, after.ru_stime).min(used_ns);
        Some(Cpu {
            wall_ns,
            user_ns: used_ns - system_ns,
            system_ns,
            voluntary_switches: count(before.ru_nvcsw, after.ru_nvcsw),
            involuntary_switches: count(before.ru_nivcsw, after.ru_nivcsw),
            messages: None,
        })
    }
}

/// The kernel's counters of a thread.
struct Account {
    usage: libc::rusage,
    /// Time on a CPU, in ns. It is exact; the times of `usage` may be as old as the last tick.
    used_ns: u64,
}

/// The counters of the calling thread (getrusage(2), clock_gettime(2)).
fn account() -> Option<Account> {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let used_ns = u64::try_from(used.tv_sec * 1_000_000_000 + used.tv_nsec).unwrap_or(0);
    Some(Account { usage: usage(libc::RUSAGE_THREAD)?, used_ns })
}

/// The kernel's counters of a thread or a process.
fn usage(of: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable.
    let result = unsafe { libc::getrusage(of, &raw mut usage) };
    (result == 0).then_some(usage)
}

/// The CPU time of all threads of this process so far: in user space and in the kernel, in ns.
pub(crate) fn of_process() -> Option<(f64, f64)> {
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    usage(libc::RUSAGE_SELF).map(|usage| (ns(usage.ru_utime), ns(usage.ru_stime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The measured time is shorter than a tick of the kernel, which is 1 to 10 ms.
    #[test]
    fn what_is_over_between_two_ticks_is_counted_too() {
        let clock = Clock::monotonic();
        for _ in 0..20 {
            let watch = CpuWatch::start(clock).unwrap();
            // CPU time, because other processes may have the CPU meanwhile.
            let until = account().unwrap().used_ns + 100_000;
            while account().unwrap().used_ns < until {}
            let cpu = watch.end().unwrap();
            let used_ns = cpu.user_ns + cpu.system_ns;
            assert!(used_ns >= 100_000 && used_ns < cpu.wall_ns + 100_000, "{cpu:?}");
        }
    }

    #[test]
    fn a_busy_thread_uses_its_cpu_and_a_sleeping_one_does_not() {
        let clock = Clock::monotonic();
        let watch = CpuWatch::start(clock).unwrap();
        let until = clock.now().0 + 50_000_000;
        while clock.now().0 < until {}
        let busy = watch.end().unwrap();
        // Other processes may have the CPU for most of the time, but not for all of it.
        assert!(busy.wall_ns >= 50_000_000 && busy.user_ns + busy.system_ns > 1_000_000, "{busy:?}");
        let watch = CpuWatch::start(clock).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let idle = watch.end().unwrap();
        assert!(idle.wall_ns >= 50_000_000 && idle.user_ns + idle.system_ns < 10_000_000, "{idle:?}");
        assert!(idle.voluntary_switches > 0, "{idle:?}");
    }
}
