//! Messages under way on a modelled link.

use std::time::Duration;

use crate::objects::work::Work;
use crate::transport::local::link::{Link, Ticks};

/// Messages under way, and acknowledgements.
#[derive(Default)]
pub(crate) struct Flights {
    /// The link model, if there is one.
    pub(crate) link: Option<Link>,
    /// Requests that have arrived and asked for a completion, with the time when it is due.
    pub(crate) acknowledged: std::collections::VecDeque<(Ticks, Work)>,
    pub(crate) lead: Lead,
}

/// How long before a message is due its delivery begins, in nanoseconds. The time to notice that it
/// is due and to deliver it is part of the link's latency, not added to it.
///
/// The lead follows the observations of single messages, so that nine of ten are not there before
/// their time. (The others are early by less than an iteration of the program's polling loop.)
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead(pub(crate) u64);

impl Lead {
    /// No delivery takes longer, unless the program has not polled: then nothing is learnt.
    pub(crate) const MAX_NS: u64 = 400;
    /// The steps after a late message, and after an early one.
    const MORE: u64 = 1;
    const LESS: u64 = 9;

    /// Whether the delivery of a message that is due at `due` has to begin.
    pub(crate) fn is_up(self, due: Ticks, now: Ticks) -> bool {
        due <= now.after(Duration::from_nanos(self.0))
    }

    /// Learns from a message that was due at `due` and is there at `now`.
    pub(crate) fn learn(&mut self, due: Ticks, now: Ticks) {
        if now.ns_since(due) > 0 && now.ns_since(due) <= Self::MAX_NS {
            self.0 = (self.0 + Self::MORE).min(Self::MAX_NS);
        } else if now <= due {
            self.0 = self.0.saturating_sub(Self::LESS);
        }
    }
}

impl Flights {
    pub(crate) fn on(link: Option<Link>) -> Self {
        Self { link, ..Self::default() }
    }

    /// Whether no acknowledgement is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.acknowledged.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Ticks = Ticks::from_ns(1_000_000);

    fn ns(ns: u64) -> Duration {
        Duration::from_nanos(ns)
    }

    #[test]
    fn a_delivery_begins_so_early_that_nine_of_ten_are_not_before_their_time() {
        let mut lead = Lead::default();
        let mut early = 0;
        let mut late = 0;
        // In a polling loop, a delivery takes 100 to 163 ns.
        for i in 0..20_000_u64 {
            let due = START;
            let takes = 100 + i * 37 % 64;
            let there = Ticks::from_ns(1_000_000 + takes - lead.0.min(takes));
            lead.learn(due, there);
            if i > 1000 {
                *if there <= due { &mut early } else { &mut late } += 1;
            }
        }
        assert!((90..=120).contains(&lead.0), "{} ns", lead.0);
        assert!(early * 8 < late, "{early} early, {late} late");
        assert!(lead.is_up(START, START) && !lead.is_up(START.after(ns(200)), START));
    }

    #[test]
    fn nothing_is_learnt_of_a_program_that_does_not_poll() {
        let mut lead = Lead::default();
        lead.learn(START, START.after(ns(Lead::MAX_NS + 1)));
        assert_eq!(lead.0, 0);
    }
}
