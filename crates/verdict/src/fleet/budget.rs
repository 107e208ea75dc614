//! The time for what follows the screening.

use std::collections::BTreeSet;

use super::claim::Claim;
use super::examined::Place;
use super::probe::TimeLeft;

/// The time that is left beside the schedule; `None`: no limit.
pub(super) struct Budget(pub(super) Option<TimeLeft>);

/// How many suspects may be passed over because they cost more time than is left: a group costs
/// more than a host.
const PASSED_OVER: usize = 8;

impl Budget {
    /// Takes this number of rounds; false, and takes none, if less are left.
    pub(super) fn take(&mut self, rounds: usize) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let after = left.rounds.checked_sub(rounds);
        left.rounds = after.unwrap_or(left.rounds);
        after.is_some()
    }

    /// Whether so many rounds are left.
    pub(super) fn holds(&self, rounds: usize) -> bool {
        self.0.is_none_or(|left| rounds <= left.rounds)
    }

    /// The time before a visit, in rounds; 0 without a limit.
    pub(super) fn before_visit(&self) -> usize {
        self.0.map_or(0, |left| left.before_visit)
    }

    /// Splits claims into those for whose places time is left, in [`Claim::order`], and the others.
    /// `kept` rounds of that time are for other measurements. `cost` is the number of rounds of
    /// some places, which grows with each.
    pub(super) fn split(
        &mut self,
        mut claims: Vec<Claim>,
        kept: usize,
        cost: impl Fn(&[Place]) -> usize,
    ) -> (Vec<Claim>, Vec<Claim>) {
        claims.sort_by(Claim::order);
        let Some(left) = &mut self.0 else { return (claims, Vec::new()) };
        let most = left.rounds.saturating_sub(kept);
        let mut seen = BTreeSet::new();
        let places: Vec<Place> =
            claims.iter().map(|claim| claim.place).filter(|place| seen.insert(*place)).collect();
        let mut taken: Vec<Place> = Vec::new();
        let mut rest = &places[..];
        for _ in 0..=PASSED_OVER {
            let fits = |count: usize| cost(&[&taken, &rest[..count]].concat()) <= most;
            let count = longest(rest.len(), fits);
            taken.extend(&rest[..count]);
            rest = rest.get(count + 1..).unwrap_or_default();
        }
        if !taken.is_empty() {
            left.rounds -= cost(&taken);
        }
        let taken: BTreeSet<Place> = taken.into_iter().collect();
        claims.into_iter().partition(|claim| taken.contains(&claim.place))
    }
}

/// Returns the largest number from 0 to `most` for which `fits` holds. It has to hold for all
/// numbers below one for which it holds; it is not asked about 0.
fn longest(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let [mut fitting, mut first_too_many] = [0, most + 1];
    while fitting + 1 < first_too_many {
        let middle = usize::midpoint(fitting, first_too_many);
        if fits(middle) {
            fitting = middle;
        } else {
            first_too_many = middle;
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::examined::{Against, Way};

    fn claim(place: Place, screened: f64) -> Claim {
        let against = Against::Others;
        Claim { quantity: 0, place, way: Way::Send, against, screened, bound: -0.05, peers: 1 }
    }

    #[test]
    fn the_longest_run_that_fits_is_found() {
        for most in 0..9 {
            for fitting in 0..12 {
                assert_eq!(longest(most, |count| count <= fitting), most.min(fitting), "{fitting} of {most}");
            }
        }
    }

    #[test]
    fn what_is_too_costly_is_passed_over_and_pairs_come_last() {
        let group = Place::Group { grouping: 0, group: 1 };
        let pair = Place::Pair { a: 3, b: 4 };
        let claims =
            [claim(pair, -0.9), claim(Place::Host(1), -0.1), claim(group, -0.4), claim(Place::Host(2), -0.2)];
        let cost = |places: &[Place]| places.iter().map(|place| if *place == group { 100 } else { 10 }).sum();
        let taken = |rounds: usize, kept: usize| {
            let mut budget = Budget(Some(TimeLeft { rounds, before_visit: 0 }));
            let (taken, late) = budget.split(claims.to_vec(), kept, cost);
            assert_eq!(taken.len() + late.len(), claims.len());
            (taken.iter().map(|claim| claim.place).collect::<Vec<_>>(), budget.0.map(|left| left.rounds))
        };
        let [one, two] = [1, 2].map(Place::Host);
        assert_eq!(taken(130, 0), (vec![group, two, one, pair], Some(0)));
        assert_eq!(taken(129, 0), (vec![group, two, one], Some(9)));
        assert_eq!(taken(99, 0), (vec![two, one, pair], Some(69)));
        assert_eq!(taken(99, 75), (vec![two, one], Some(79)));
        assert_eq!(taken(9, 0), (vec![], Some(9)));
        assert_eq!(taken(9, 10), (vec![], Some(9)));
    }
}
