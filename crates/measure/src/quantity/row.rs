//! What a row says of a number.

use super::statistic::Statistic;
use crate::figure::Better;
use crate::record::{Latency, LatencyKind, Point};
use crate::stats::shape;
use crate::units::Dimension;

/// A number of a point, or the numbers of one of its latencies.
#[derive(Debug)]
pub struct Quantity {
    /// Path into a point, e.g. `pipeline.missed_share`. `N` stands for a rank and `KIND` for a kind
    /// of latency; a `*` at the end stands for every [`Statistic`] of a latency, elsewhere for any
    /// name.
    pub path: &'static str,
    /// How the number is read.
    pub reading: Reading,
    /// What it is, in words. Of a latency, `{}` stands for the statistic.
    pub help: &'static str,
    /// Whether it is offered where a path resembles no other.
    pub is_offered: bool,
    /// What it is counted in, where only a point says that.
    pub counted: Option<OfCounted>,
}

/// How a point says what a number is counted in.
pub type OfCounted = fn(&Point, At<'_>) -> Option<Counted>;

/// What a number is counted in, of which only a point knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Its unit, in the words of the program that said it; may be empty.
    pub unit: String,
    /// Which of such numbers are the better ones.
    pub better: Better,
}

/// How a number is read from a point.
#[derive(Debug)]
pub enum Reading {
    /// One number.
    Number {
        /// What it measures.
        unit: Dimension,
        /// The number; `None` where the point has none.
        of: fn(&Point, At<'_>) -> Option<f64>,
        /// How sure it is within this run.
        interval: fn(&Point, f64) -> Interval,
    },
    /// The statistics of a latency.
    Latency {
        /// The latency; `None` where the point has none.
        of: for<'a> fn(&'a Point, At<'_>) -> Option<&'a Latency>,
        /// The messages that each number is divided by.
        messages: fn(&Point) -> f64,
        /// The rows that such a path can end in.
        statistics: &'static [&'static Statistic],
    },
}

/// What stands in a path in the places that its row leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub struct At<'p> {
    /// In the place of `N`.
    pub rank: u32,
    /// In the place of `KIND` or of a last `*`.
    pub name: &'p str,
    /// Behind the name of a statistic: the threshold of a share.
    pub threshold: &'p str,
}

/// How sure a number is within one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The ends of its 95 % interval; absent where only other runs can tell.
    pub ends: Option<[f64; 2]>,
    /// The samples that the number was made of.
    pub samples: Option<u64>,
}

impl Interval {
    /// That of a share of so many: Wilson's.
    pub fn of_share(share: f64, count: u64) -> Self {
        let estimate = shape::share(share, count);
        Self { ends: Some([estimate.low, estimate.high]), samples: Some(count) }
    }
}

impl Quantity {
    /// Its path with rank 0, for each kind of latency where it stands for all, without what `*`
    /// stands for.
    pub(super) fn begun(&self) -> impl Iterator<Item = String> + use<> {
        let kinds: &[LatencyKind] = if self.path.contains("KIND") { LatencyKind::ALL } else { &[] };
        let path = self.path.replace(".N.", ".0.");
        let of_kinds = kinds.iter().map(|kind| kind.name());
        let of_kinds: Vec<String> = of_kinds.map(|name| path.replace("KIND", name)).collect();
        if kinds.is_empty() { vec![path].into_iter() } else { of_kinds.into_iter() }
    }

    /// Every path to it that begins with a group; none to what has any name.
    pub(super) fn paths(&self, group: &str) -> Vec<String> {
        let of_group = self.begun().filter(|path| path.split('.').next() == Some(group));
        let all = of_group.flat_map(|path| match (&self.reading, path.strip_suffix('*')) {
            (_, None) => vec![path],
            (Reading::Latency { statistics, .. }, Some(start)) => {
                statistics.iter().filter_map(|row| Some(format!("{start}{}", row.example?))).collect()
            }
            (Reading::Number { .. }, Some(_)) => Vec::new(),
        });
        all.collect()
    }
}
