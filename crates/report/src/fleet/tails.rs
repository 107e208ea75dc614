//! The 99 % latency of the pairs of a fleet. It is shown and not judged: a thousand messages say
//! little of it.

use std::collections::BTreeMap;

use measure::record::{Point, Status};
use measure::stats::{Share, quantile};

use super::quantiles::{SHARES, at_shares};

/// The 99 % latencies of each pair, in ns.
#[derive(Clone, Debug, Default)]
pub struct Tails {
    of_pairs: BTreeMap<Vec<u32>, Vec<u64>>,
}

impl Tails {
    /// Takes those of points.
    pub fn of(points: &[Point]) -> Self {
        let mut tails = Self::default();
        points.iter().for_each(|point| tails.add(point));
        tails
    }

    /// Takes that of a point, if it has one.
    pub fn add(&mut self, point: &Point) {
        let latency = point.latency.as_ref().filter(|_| point.status == Status::Measured);
        let Some((place, latency)) = point.fleet.as_ref().zip(latency) else { return };
        self.of_pairs.entry(place.members.clone()).or_default().push(latency.p99_ns);
    }

    /// The median of each pair, at [`SHARES`] of the pairs; none without a pair.
    pub(crate) fn quantiles(&self) -> Option<[f64; SHARES.len()]> {
        let medians = self.of_pairs.values().map(|all| {
            let mut all = all.clone();
            all.sort_unstable();
            quantile(&all, Share::P50)
        });
        at_shares(medians.collect::<Option<_>>()?)
    }
}
