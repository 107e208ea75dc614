//! The rows that define numbers.

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
    /// The description of the number. Of a latency, `{}` stands for the statistic.
    pub help: &'static str,
    /// Whether hints offer it when a wrong path resembles no other.
    pub is_offered: bool,
    /// Reads its unit, where only a point says it.
    pub counted: Option<OfCounted>,
    /// Whether it counts what happened: a disturbance of the machine makes no such number wrong.
    pub is_count: bool,
    /// Lists the names that a point has in the place of a last `*` that stands for any name.
    pub names: Option<OfNames>,
}

/// A function that reads from a point the unit that a number is counted in.
pub type OfCounted = fn(&Point, At<'_>) -> Option<Counted>;

/// A function that lists the names in a point.
pub type OfNames = fn(&Point) -> Vec<String>;

/// The unit that a number is counted in, where only a point says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Its unit, as the program that printed the number names it; may be empty.
    pub unit: String,
    /// Whether larger or smaller numbers are better.
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
        /// Its interval within this run.
        interval: fn(&Point, f64) -> Interval,
    },
    /// The statistics of a latency.
    Latency {
        /// The latency; `None` where the point has none.
        of: for<'a> fn(&'a Point, At<'_>) -> Option<&'a Latency>,
        /// The messages that each number is divided by.
        messages: fn(&Point) -> f64,
        /// The statistics that such a path can end in.
        statistics: &'static [&'static Statistic],
    },
}

/// The parts of a path that fill the placeholders of its row.
#[derive(Clone, Copy, Debug, Default)]
pub struct At<'p> {
    /// In the place of `N`.
    pub rank: u32,
    /// In the place of `KIND` or of a last `*`.
    pub name: &'p str,
    /// Behind the name of a statistic: the threshold of a share.
    pub threshold: &'p str,
}

/// The uncertainty of a number within one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The bounds of its 95 % interval; absent where only several runs show it.
    pub ends: Option<[f64; 2]>,
    /// The samples that the number was made of.
    pub samples: Option<u64>,
}

impl Interval {
    /// Wilson's interval of a share of `count` samples.
    pub fn of_share(share: f64, count: u64) -> Self {
        let estimate = shape::share(share, count);
        Self { ends: Some([estimate.low, estimate.high]), samples: Some(count) }
    }
}

impl Quantity {
    /// Its paths with rank 0, one for each kind of latency if it has `KIND`; a last `*` stays.
    pub(super) fn begun(&self) -> impl Iterator<Item = String> + use<> {
        let kinds: &[LatencyKind] = if self.path.contains("KIND") { LatencyKind::ALL } else { &[] };
        let path = self.path.replace(".N.", ".0.");
        let of_kinds = kinds.iter().map(|kind| kind.name());
        let of_kinds: Vec<String> = of_kinds.map(|name| path.replace("KIND", name)).collect();
        if kinds.is_empty() { vec![path].into_iter() } else { of_kinds.into_iter() }
    }

    /// Its paths that a point may have a number at: with each rank, kind of latency and name.
    pub(super) fn paths_of(&self, point: &Point) -> Vec<String> {
        let ranks = match self.path.contains(".N.") {
            true => {
                (0..point.ends.len()).map(|rank| self.path.replace(".N.", &format!(".{rank}."))).collect()
            }
            false => vec![self.path.to_owned()],
        };
        // The main latency has paths of its own.
        let main = point.latency.as_ref().map(|latency| latency.kind);
        let kinds = point.kinds.iter().map(|timed| timed.latency.kind).filter(|kind| Some(*kind) != main);
        let of_kinds = |path: String| match path.starts_with("KIND") {
            true => kinds.clone().map(|kind| path.replace("KIND", kind.name())).collect(),
            false => vec![path],
        };
        let paths = ranks.into_iter().flat_map(of_kinds);
        paths.flat_map(|path| self.ended(path, point)).collect()
    }

    /// A path with each statistic or name in the place of its last `*`.
    fn ended(&self, path: String, point: &Point) -> Vec<String> {
        let Some(start) = path.strip_suffix('*') else { return vec![path] };
        let ends = match &self.reading {
            Reading::Number { .. } => self.names.map(|names| names(point)).unwrap_or_default(),
            Reading::Latency { statistics, .. } => {
                statistics.iter().flat_map(|row| row.ends(point.latency.as_ref())).collect()
            }
        };
        ends.into_iter().map(|end| format!("{start}{end}")).collect()
    }

    /// Its paths in a group; none if the last part is a free name.
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
