//! The time for what follows the screening.

use std::collections::BTreeMap;

use super::claim::Claim;
use super::examined::Place;
use super::probe::TimeLeft;

/// The time that is left beside the schedule; `None`: no limit.
pub(super) struct Budget(pub(super) Option<TimeLeft>);

impl Budget {
    /// Takes this number of rounds; false, and takes none, if less are left.
    pub(super) fn take(&mut self, rounds: usize) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let after = left.rounds.checked_sub(rounds);
        left.rounds = after.unwrap_or(left.rounds);
        after.is_some()
    }

    /// The rounds of visits that are not spent on measuring.
    pub(super) fn before_visits(&self, visits: usize) -> usize {
        self.0.map_or(0, |left| visits.saturating_mul(left.before_visit))
    }

    /// Splits claims into those whose places can be measured in the time that is left, the worst
    /// first, and the others. `cost` is the number of rounds of a place, and `once` the number of
    /// those that all places share.
    pub(super) fn split(
        &mut self,
        mut claims: Vec<Claim>,
        once: usize,
        cost: impl Fn(Place) -> usize,
    ) -> (Vec<Claim>, Vec<Claim>) {
        claims.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
        let mut once = once;
        let mut places: BTreeMap<Place, bool> = BTreeMap::new();
        let mut is_in_time = |claim: &Claim| {
            *places.entry(claim.place).or_insert_with(|| {
                let is_in_time = self.take(once.saturating_add(cost(claim.place)));
                once = if is_in_time { 0 } else { once };
                is_in_time
            })
        };
        claims.into_iter().partition(|claim| is_in_time(claim))
    }
}
