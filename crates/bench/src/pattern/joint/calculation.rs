//! A computation that runs while the library carries messages.
//!
//! The computation is a fixed number of turns of a loop, which was timed before. Whatever takes the
//! CPU from the rank (the library's thread, an interrupt, another process) makes it longer, as it
//! makes a real computation longer. A loop that ran until a given time would end on time however
//! little it had computed, and the CPU time taken from it would count as overlap.

use std::hint::black_box;

use measure::clock::Clock;

/// A number of turns of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calculation {
    turns: u64,
}

impl Calculation {
    /// Returns a computation that takes this many ticks while the rank keeps its CPU. The shortest
    /// of several timed runs determines the cost of a turn.
    pub(super) fn of(clock: Clock, ticks: f64) -> Self {
        let time = |_| {
            let begin = clock.now();
            Self { turns: TIMED_TURNS }.run();
            clock.now().since(begin)
        };
        let least = (0..TIMES).map(time).min().unwrap_or(1).max(1);
        Self { turns: (ticks * TIMED_TURNS as f64 / least as f64).round() as u64 }
    }

    /// The largest number of parts, each of at least one turn.
    pub(super) fn parts(self) -> u64 {
        self.turns.max(1)
    }

    /// One of the parts of [`split`](Self::split). Together they have all turns: the first `more`
    /// parts have one turn more.
    #[inline]
    pub(super) fn part(self, part: u64, [each, more]: [u64; 2]) -> Self {
        debug_assert!(each <= self.turns);
        Self { turns: each + u64::from(part < more) }
    }

    /// Returns the turns of each of `parts` parts, and how many parts have one more.
    pub(super) fn split(self, parts: u64) -> [u64; 2] {
        let parts = parts.max(1);
        [self.turns / parts, self.turns % parts]
    }

    /// Runs the computation: a multiplication and an addition per turn, each of which depends on
    /// the one before (the generator of Knuth's MMIX).
    #[inline]
    pub(super) fn run(self) {
        let mut value = black_box(1u64);
        for _ in 0..self.turns {
            value = black_box(
                value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
            );
        }
        black_box(value);
    }
}

/// Some microseconds: much longer than two stamps, much shorter than a time slice of the scheduler.
const TIMED_TURNS: u64 = 2000;
const TIMES: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calculation_of_twice_the_time_has_twice_the_turns() {
        let clock = Clock::monotonic();
        let one = Calculation::of(clock, 1e6).turns as f64;
        let two = Calculation::of(clock, 2e6).turns as f64;
        // The CPU may change its speed for a moment; no clock of a machine is off by half.
        assert!(two / one > 1.0 && one > 0.0, "{one} {two}");
        assert_eq!(Calculation::of(clock, 0.0).turns, 0);
    }

    #[test]
    fn parts_have_all_turns_and_no_more() {
        for turns in [0, 1, 10, 100] {
            let whole = Calculation { turns };
            for parts in 1..=whole.parts() {
                let split = whole.split(parts);
                let of_parts: Vec<u64> = (0..parts).map(|part| whole.part(part, split).turns).collect();
                assert_eq!(of_parts.iter().sum::<u64>(), turns, "{parts}");
                assert!(of_parts.iter().all(|own| *own > 0 || turns == 0), "{of_parts:?}");
            }
        }
    }

    #[test]
    fn a_calculation_takes_the_time_that_it_was_made_for() {
        let clock = Clock::monotonic();
        let calculation = Calculation::of(clock, clock.ticks(std::time::Duration::from_micros(200)) as f64);
        // Whatever takes the CPU makes the computation longer, never shorter.
        let time = |_| {
            let begin = clock.now();
            calculation.run();
            clock.ns(clock.now().since(begin))
        };
        let least = (0..50).map(time).min().unwrap();
        assert!(least > 100_000, "{least} ns");
    }
}
