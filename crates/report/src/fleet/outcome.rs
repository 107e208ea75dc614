//! How an examination ended, for a script.

use std::collections::BTreeSet;

use measure::record::Fleet;
use verdict::fleet::{Against, Congestion, Examined, Place, Undecided, Verdict};

/// How an examination ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Every member was examined, and none is slow.
    Healthy,
    /// At least one culprit is named.
    Culprits,
    /// No culprit, but not every member could be examined.
    Undecided,
}

/// Returns the outcome of an examination.
pub fn outcome(fleet: &Fleet, examined: &Examined) -> Outcome {
    match examined.verdict {
        Verdict::Culprits => Outcome::Culprits,
        _ if !fleet.left.is_empty() || open(fleet, examined).next().is_some() => Outcome::Undecided,
        Verdict::Healthy | Verdict::Undecided => Outcome::Healthy,
    }
}

/// The places that are to blame, each once: a host may be slow in several quantities.
pub(crate) fn culprits(examined: &Examined) -> BTreeSet<Place> {
    examined.culprits.iter().map(|culprit| culprit.place).collect()
}

/// What misses a stated expectation under load alone: no culprit, and yet no healthy fleet.
pub(crate) fn missed(examined: &Examined) -> impl Iterator<Item = &Congestion> {
    examined.congestion.iter().filter(|one| one.against == Against::Floor)
}

/// What is slower than the others under load alone, which leaves a fleet healthy.
pub(crate) fn congested(examined: &Examined) -> impl Iterator<Item = &Congestion> {
    examined.congestion.iter().filter(|one| one.against == Against::Others)
}

/// What could not be decided, without members that are left out: these are listed by themselves.
pub(crate) fn open<'a>(fleet: &'a Fleet, examined: &'a Examined) -> impl Iterator<Item = &'a Undecided> {
    let has_left = |member: usize| fleet.left.contains_key(&u32::try_from(member).unwrap_or(u32::MAX));
    let is_left = move |undecided: &&Undecided| match undecided.place {
        Some(Place::Host(member)) => has_left(member),
        Some(Place::Pair { a, b }) => has_left(a) || has_left(b),
        _ => false,
    };
    examined.undecided.iter().filter(move |undecided| !is_left(undecided))
}
