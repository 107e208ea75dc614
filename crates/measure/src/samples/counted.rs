//! Samples as the values that occur, each with how often it does.

/// Values in ns, rising, and how often each occurs: a few thousand of them where there are millions
/// of samples.
#[derive(Debug)]
pub struct Counted(pub Vec<(u64, u64)>);

impl Counted {
    /// Counts samples: those near the least in an array with a place for each value, so that only
    /// the rest has to be sorted.
    pub fn new(samples: &[u64]) -> Self {
        let least = samples.iter().copied().min().unwrap_or_default();
        let most = samples.iter().copied().max().unwrap_or_default();
        // As many places as fit a processor's cache, and not many more than there are samples.
        let places = (most - least).saturating_add(1).min(PLACES).min(16 * samples.len() as u64);
        let mut counts = vec![0u64; places as usize];
        let mut rest = Vec::new();
        for sample in samples {
            match counts.get_mut((sample - least) as usize) {
                Some(count) => *count += 1,
                None => rest.push(*sample),
            }
        }
        rest.sort_unstable();
        let near = (0..).zip(counts).filter(|(_, count)| *count > 0);
        let near = near.map(|(place, count)| (least + place, count));
        Self(near.chain(rest.chunk_by(u64::eq).map(|same| (same[0], same.len() as u64))).collect())
    }

    /// How many samples there are.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<u64> {
        self.0.first().map(|(value, _)| *value)
    }

    /// The largest sample.
    pub fn max(&self) -> Option<u64> {
        self.0.last().map(|(value, _)| *value)
    }

    /// The value at a rank, the least of which is 1.
    pub fn at(&self, rank: u64) -> Option<u64> {
        let mut seen = 0u64;
        let found = self.0.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        found.map(|(value, _)| *value)
    }
}

/// Places of the array that samples are counted in: 1 MiB of it.
const PLACES: u64 = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_whether_near_the_least_or_far() {
        let far = u64::MAX;
        let samples = [7, far, 5, 7, 5 + PLACES, 4 + PLACES, 7, 5 + PLACES, 900];
        let counted = Counted::new(&samples);
        let values = [(5, 1), (7, 3), (900, 1), (4 + PLACES, 1), (5 + PLACES, 2), (far, 1)];
        assert_eq!(counted.0, values);
        assert_eq!((counted.total(), counted.min(), counted.max()), (9, Some(5), Some(far)));
        assert_eq!([1, 2, 4, 5, 9].map(|rank| counted.at(rank).unwrap()), [5, 7, 7, 900, far]);
        assert!(Counted::new(&[]).0.is_empty() && Counted::new(&[far]).0 == [(far, 1)]);
    }
}
