//! The clock of completion time stamps, and of imitated links.
//!
//! It is the kernel's `CLOCK_MONOTONIC` in nanoseconds: all processes of a host share it, so a
//! requester can stamp what it completes for its peer, and a program can compare a stamp with its
//! own readings. (Processes in time namespaces of different offsets are the exception.)

use rustix::time::{ClockId, clock_gettime};

/// Its frequency (`hca_core_clock`): a tick is a nanosecond.
pub(crate) const CLOCK_KHZ: u64 = 1_000_000;
/// Bits of a stamp that count (`completion_timestamp_mask`): 64 bits of nanoseconds last for
/// centuries.
pub(crate) const CLOCK_MASK: u64 = u64::MAX;

/// Its time, about 20 ns per reading and no system call.
#[inline]
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Its time at the kernel's last tick, 1 to 10 ms ago, for a few nanoseconds.
#[inline]
pub(crate) fn coarse() -> u64 {
    nanoseconds(ClockId::MonotonicCoarse)
}

/// The last moment whose low bits are these, as far as a line has room for them; now for 0: what is
/// flushed says nothing of the time, and comes into being when it is found.
pub(crate) fn recent(bits: u64) -> u64 {
    before(now(), bits)
}

fn before(now: u64, bits: u64) -> u64 {
    const RANGE: u64 = 1 << STAMP_BITS;
    if bits == 0 { now } else { now.saturating_sub(now.wrapping_sub(bits) & (RANGE - 1)) }
}

/// Bits of a time stamp that a line has room for: three days of nanoseconds, so that a completion
/// that is polled within so long tells which.
const STAMP_BITS: u32 = 48;

/// What has to be added to a stamp, wrapping, for nanoseconds since 1970.
pub(crate) fn to_wallclock() -> u64 {
    // The wall clock is read between two readings of the other, so that the two are of one moment,
    // nearly.
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
        // Whoever sets the clock meanwhile fails this; a CPU that is taken away between readings
        // must not.
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
        assert_eq!(before(10, 20), 0, "what no requester of ours says");
    }
}
