//! The time for what follows the screening.

use std::collections::BTreeMap;

use super::claim::Claim;
use super::examined::Place;
use super::probe::TimeLeft;

/// The time that is left beside the schedule; `None`: no limit.
pub(super) struct Budget(pub(super) Option<TimeLeft>);

/// The rounds that places cost.
pub(super) struct Cost<F> {
    /// Those that all places share.
    pub(super) once: usize,
    /// Those of one place, which follow each other.
    pub(super) of: F,
    /// The number of places that are measured at the same time.
    pub(super) at_once: usize,
}

impl Budget {
    /// Takes this number of rounds; false, and takes none, if less are left.
    pub(super) fn take(&mut self, rounds: usize) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let after = left.rounds.checked_sub(rounds);
        left.rounds = after.unwrap_or(left.rounds);
        after.is_some()
    }

    /// The time before a visit, in rounds; 0 without a limit.
    pub(super) fn before_visit(&self) -> usize {
        self.0.map_or(0, |left| left.before_visit)
    }

    /// Splits claims into those whose places can be measured in the time that is left, the worst
    /// first, and the others.
    pub(super) fn split(
        &mut self,
        mut claims: Vec<Claim>,
        cost: &Cost<impl Fn(Place) -> usize>,
    ) -> (Vec<Claim>, Vec<Claim>) {
        claims.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
        let mut is_first = true;
        let mut places: BTreeMap<Place, bool> = BTreeMap::new();
        let mut is_in_time = |claim: &Claim| {
            *places.entry(claim.place).or_insert_with(|| {
                let own = (cost.of)(claim.place);
                let rounds = match is_first {
                    true => cost.once.saturating_add(own),
                    false => own.div_ceil(cost.at_once),
                };
                let is_in_time = self.take(rounds);
                is_first &= !is_in_time;
                is_in_time
            })
        };
        claims.into_iter().partition(|claim| is_in_time(claim))
    }
}
