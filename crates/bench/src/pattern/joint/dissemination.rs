//! A barrier between ranks that share no memory, independent of the library.

use crate::Error;
use crate::endpoint::collectives::Collectives;

/// A barrier of empty messages: in each round a rank sends to the rank at twice the distance of the
/// round before (Hensgen, Finkel and Manber 1988).
pub(super) struct Dissemination {
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

impl Dissemination {
    /// For each round, the rank to which this rank sends and the rank from which it receives.
    fn rounds(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let Self { rank, ranks } = *self;
        let distances = std::iter::successors(Some(1_u32), |distance| distance.checked_mul(2));
        distances
            .take_while(move |distance| *distance < ranks)
            .map(move |distance| [(rank + distance) % ranks, (rank + ranks - distance) % ranks])
    }

    /// Returns when all ranks have called it.
    ///
    /// # Errors
    /// The errors of the endpoint.
    pub(super) fn pass<E: Collectives>(&self, endpoint: &mut E) -> Result<(), Error> {
        self.rounds().try_for_each(|[to, from]| endpoint.swap(to, from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_rounds_of_a_dissemination_each_rank_has_heard_of_all() {
        for ranks in 1..=17 {
            let rounds = |rank| Dissemination { rank, ranks }.rounds();
            let mut heard: Vec<Vec<u32>> = (0..ranks).map(|rank| vec![rank]).collect();
            for round in 0..rounds(0).count() {
                let before = heard.clone();
                for rank in 0..ranks {
                    let [to, from] = rounds(rank).nth(round).unwrap();
                    assert_eq!(rounds(from).nth(round).unwrap()[0], rank, "whom it waits for tells it");
                    assert_eq!(rounds(to).nth(round).unwrap()[1], rank);
                    heard[rank as usize].extend(&before[from as usize]);
                }
            }
            for mut of_rank in heard {
                of_rank.sort_unstable();
                of_rank.dedup();
                assert_eq!(of_rank.len(), ranks as usize);
            }
        }
    }
}
