//! The time for what follows the screening.

use std::collections::BTreeMap;

use super::claim::Claim;
use super::examined::Place;

/// The rounds beside the schedule for which time is left; `None`: no limit.
pub(super) struct Budget(pub(super) Option<usize>);

impl Budget {
    /// Takes this number of rounds; false, and takes none, if less are left.
    pub(super) fn take(&mut self, rounds: usize) -> bool {
        let left = self.0.map(|left| left.checked_sub(rounds));
        let is_left = left != Some(None);
        if is_left {
            self.0 = left.flatten();
        }
        is_left
    }

    /// Splits claims into those whose places can be measured in the time that is left, the worst
    /// first, and the others. `cost` is the number of rounds of a place.
    pub(super) fn split(
        &mut self,
        mut claims: Vec<Claim>,
        cost: impl Fn(Place) -> usize,
    ) -> (Vec<Claim>, Vec<Claim>) {
        claims.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
        let mut places: BTreeMap<Place, bool> = BTreeMap::new();
        let mut is_in_time =
            |claim: &Claim| *places.entry(claim.place).or_insert_with(|| self.take(cost(claim.place)));
        claims.into_iter().partition(|claim| is_in_time(claim))
    }
}
