//! A delay that a test asks for.

use measure::clock::Clock;

/// Waits for this many ticks, if there are any.
#[inline]
pub(super) fn pass(clock: Clock, ticks: u64) {
    if ticks > 0 {
        let end = clock.now().0 + ticks;
        while clock.now().0 < end {
            std::hint::spin_loop();
        }
    }
}
