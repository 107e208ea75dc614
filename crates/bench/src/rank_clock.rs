//! The clock of a rank: how to read it, its identity, and, for tests, its error.

use measure::clock::{Clock, Domain, Skew};
use measure::samples::Stamps;

/// The clock of a rank.
#[derive(Clone, Debug)]
pub(crate) struct RankClock {
    pub(crate) clock: Clock,
    pub(crate) domain: Domain,
    skew: Option<Skew>,
}

impl RankClock {
    /// A clock with an optional error, for tests. A clock with an error is shared with no other
    /// rank.
    pub(crate) fn new(clock: Clock, skew: Option<Skew>) -> Self {
        let mut domain = Domain::of(&clock);
        if skew.is_some() {
            domain.boot_id = None;
        }
        Self { clock, domain, skew }
    }

    /// Returns the time stamps as this clock shows them, with its error.
    pub(crate) fn shows(&self, mut stamps: Vec<u64>) -> Vec<u64> {
        if let Some(skew) = &self.skew {
            let taken = stamps.iter_mut().filter(|stamp| **stamp != Stamps::NONE);
            taken.for_each(|stamp| *stamp = skew.apply(*stamp, self.clock.tick_hz()));
        }
        stamps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_nobody_elses() {
        let clock = Clock::monotonic();
        let right = RankClock::new(clock, None);
        let wrong = RankClock::new(clock, Some("offset=1us,drift=0ppm".parse().unwrap()));
        assert!(right.domain.shares_with(&RankClock::new(clock, None).domain));
        assert!(!right.domain.shares_with(&wrong.domain) && !wrong.domain.shares_with(&wrong.domain));
        let stamps = vec![5, Stamps::NONE];
        assert_eq!(right.shows(stamps.clone()), stamps);
        assert_eq!(wrong.shows(stamps), [1005, Stamps::NONE]);
    }
}
