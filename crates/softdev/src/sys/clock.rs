//! The clock of completion time stamps and of link models.
//!
//! The clock is the kernel's `CLOCK_MONOTONIC` in nanoseconds. All processes of a host share it, so
//! a requester can stamp a completion for its peer, and a program can compare a stamp with its own
//! readings. (Processes in time namespaces with different offsets are the exception.)

use rustix::time::{ClockId, clock_gettime};

/// The frequency of the clock (`hca_core_clock`): a tick is a nanosecond.
pub(crate) const CLOCK_KHZ: u64 = 1_000_000;
/// The valid bits of a stamp (`completion_timestamp_mask`): 64 bits of nanoseconds last for
/// centuries.
pub(crate) const CLOCK_MASK: u64 = u64::MAX;

/// Returns the time: about 20 ns per reading, and no system call.
#[inline]
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Returns the time at the kernel's last tick, 1 to 10 ms ago: a few nanoseconds per reading.
#[inline]
pub(crate) fn coarse() -> u64 {
    nanoseconds(ClockId::MonotonicCoarse)
}

/// Returns the last moment with these low bits, of which a slot has [`STAMP_BITS`]; now for 0. A
/// flushed receive has no stamp, and completes when it is found.
pub(crate) fn recent(bits: u64) -> u64 {
    before(now(), bits)
}

fn before(now: u64, bits: u64) -> u64 {
    const RANGE: u64 = 1 << STAMP_BITS;
    if bits == 0 { now } else { now.saturating_sub(now.wrapping_sub(bits) & (RANGE - 1)) }
}

/// The number of bits of a time stamp that fit in a slot: three days of nanoseconds. A completion
/// that is polled within that time has an unambiguous stamp.
const STAMP_BITS: u32 = 48;

/// Returns what to add to a stamp, wrapping, for nanoseconds since 1970.
pub(crate) fn to_wallclock() -> u64 {
    // The wall clock is read between two readings of the other clock, so that both times are of
    // nearly the same moment.
    let before = now();
    let wall = nanoseconds(ClockId::Realtime);
    let after = now();
    wall.wrapping_sub(before.midpoint(after))
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_stamp_becomes_the_time_of_day() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let wall = Duration::from_nanos(now().wrapping_add(to_wallclock()));
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        // The test fails if the wall clock is set meanwhile; it must not fail if the thread is
        // preempted between readings.
        let slack = Duration::from_millis(200);
        assert!(before < wall + slack && wall < after + slack, "{before:?} {wall:?} {after:?}");
    }

    #[test]
    fn a_short_stamp_is_of_the_last_moment_that_it_fits() {
        let range = 1_u64 << STAMP_BITS;
        for now in [5 * range + 7, 5 * range - 1, range / 2] {
            for age in [0, 1, 6, 1000, range / 3] {
                let then = now - age;
                assert_eq!(before(now, then % range), then, "{age} before {now}");
            }
            assert_eq!(before(now, 0), now);
        }
        assert_eq!(before(10, 20), 0, "no requester writes this");
    }
}
