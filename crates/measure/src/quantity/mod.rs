//! The numbers of a point, a row for each.
//!
//! A row holds the path by which plans, findings and tables name the number, what it measures, how
//! it is read from a point, its interval within one run, and its description. Plans check their
//! paths against the rows, and reports read points through them, so that a number is defined once.
//! The rows here are those that points of any pattern may have. The numbers of one pattern are rows
//! in that pattern's module (`Presentation::quantities`).

mod row;
mod rows;
mod statistic;
#[cfg(test)]
mod tests;

use crate::record::{Latency, LatencyKind, Point};
use crate::stats::shape::Estimate;
use crate::units::Dimension;

pub use row::{At, Counted, Interval, OfCounted, OfNames, Quantity, Reading};
pub use rows::{
    ALL, COST, OfLatency, OfNumber, arrived, cpu_ns_per_message, kinds, latency, lost, number, posted,
};
pub use statistic::{STATISTICS, Statistic, bound_ns, share_bounds};

/// A number with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The number and its 95 % interval, which is the number itself where there is none.
    pub estimate: Estimate,
    /// The samples that it was made of.
    pub samples: Option<u64>,
    /// Whether it has an interval within one run, or needs none.
    pub has_interval: bool,
}

/// A row that a path names.
#[derive(Clone, Copy, Debug)]
pub struct Found<'p> {
    /// The row.
    pub quantity: &'static Quantity,
    statistic: Option<&'static Statistic>,
    at: At<'p>,
}

/// Finds the row that a path names, among those of every pattern.
pub fn find(path: &str) -> Option<Found<'_>> {
    find_in(ALL, path)
}

/// The same among given rows, such as those of one pattern.
pub fn find_in<'p>(rows: impl IntoIterator<Item = &'static Quantity>, path: &'p str) -> Option<Found<'p>> {
    rows.into_iter().find_map(|quantity| lead(quantity, path))
}

/// Lists the paths of a row that a point may have a number at.
pub fn paths_of(row: &Quantity, point: &Point) -> Vec<String> {
    row.paths_of(point)
}

/// Lists the paths in the group that a path begins with. If there is no such group, lists the paths
/// that hints offer.
pub fn examples(rows: impl Iterator<Item = &'static Quantity> + Clone, path: &str) -> Vec<String> {
    let group = path.split('.').next().unwrap_or_default();
    let of_group: Vec<String> = rows.clone().flat_map(|quantity| quantity.paths(group)).collect();
    if !of_group.is_empty() {
        return of_group;
    }
    let offered = rows.filter(|quantity| quantity.is_offered);
    offered.flat_map(|quantity| quantity.begun().map(|path| path.replace('*', "p50_ns"))).collect()
}

/// Returns a row if a path names it.
fn lead<'p>(quantity: &'static Quantity, path: &'p str) -> Option<Found<'p>> {
    let mut at = At::default();
    let mut rest = path;
    let mut statistic = None;
    for segment in quantity.path.split('.') {
        if segment == "*" {
            match &quantity.reading {
                Reading::Number { .. } => at.name = Some(rest).filter(|name| !name.is_empty())?,
                Reading::Latency { statistics, .. } => {
                    let (row, threshold) = statistics.iter().find_map(|row| row.matches(rest))?;
                    at.threshold = threshold;
                    statistic = Some(row);
                }
            }
            rest = "";
            continue;
        }
        let (head, tail) = rest.split_once('.').unwrap_or((rest, ""));
        match segment {
            "N" => at.rank = head.parse().ok()?,
            "KIND" => at.name = LatencyKind::ALL.iter().find(|kind| kind.name() == head)?.name(),
            literal if literal == head => {}
            _ => return None,
        }
        rest = tail;
    }
    rest.is_empty().then_some(Found { quantity, statistic, at })
}

impl Found<'_> {
    /// What the number measures.
    pub fn unit(&self) -> Dimension {
        match (&self.quantity.reading, self.statistic) {
            (_, Some(statistic)) => statistic.unit,
            // The suffix of a free name says what it measures.
            (Reading::Number { .. }, _) if self.at.name.ends_with("_ns") => Dimension::Time,
            (Reading::Number { unit, .. }, _) => *unit,
            (Reading::Latency { .. }, None) => Dimension::Number,
        }
    }

    /// Describes the number in words.
    pub fn help(&self) -> String {
        let threshold = || crate::text::time(self.at.threshold.parse().unwrap_or_default());
        match self.statistic {
            Some(statistic) if self.at.threshold.is_empty() => {
                self.quantity.help.replace("{}", statistic.help)
            }
            Some(statistic) => {
                self.quantity.help.replace("{}", &format!("{} {}", statistic.help, threshold()))
            }
            None if self.at.name.is_empty() => self.quantity.help.to_owned(),
            None => self.quantity.help.replace("{}", self.at.name),
        }
    }

    /// The latency that the number belongs to; `None` where it belongs to none, or the point does
    /// not have it.
    pub fn latency<'a>(&self, point: &'a Point) -> Option<&'a Latency> {
        match &self.quantity.reading {
            Reading::Latency { of, .. } => of(point, self.at),
            Reading::Number { .. } => None,
        }
    }

    /// The unit that the number is counted in, where only the point says it.
    pub fn counted(&self, point: &Point) -> Option<Counted> {
        (self.quantity.counted?)(point, self.at)
    }

    /// The number of a point, in the base of its unit.
    pub fn number(&self, point: &Point) -> Option<f64> {
        match (&self.quantity.reading, self.statistic) {
            (Reading::Number { of, .. }, _) => of(point, self.at),
            (Reading::Latency { of, messages, .. }, Some(statistic)) => {
                Some((statistic.of)(of(point, self.at)?, self.at.threshold)? / messages(point))
            }
            (Reading::Latency { .. }, None) => None,
        }
    }

    /// The number of a point with its 95 % interval.
    ///
    /// The interval of a median is in the record; that of a share follows from the count. Other
    /// numbers have none within a run. The bound of two clocks and the width of a histogram's
    /// bucket widen the interval.
    pub fn measured(&self, point: &Point) -> Option<Measured> {
        let value = self.number(point)?;
        let (Interval { ends, samples }, bound, blur) = match (&self.quantity.reading, self.statistic) {
            (Reading::Latency { of, messages, .. }, Some(statistic)) => {
                let latency = of(point, self.at)?;
                let messages = messages(point);
                let ends = (statistic.interval)(latency, value).map(|ends| ends.map(|end| end / messages));
                let is_time = statistic.unit == Dimension::Time;
                let blur = latency.resolution.filter(|_| is_time).unwrap_or_default();
                let interval = Interval { ends, samples: Some(latency.count) };
                (interval, self.bound(point).unwrap_or_default(), blur)
            }
            (Reading::Number { interval, .. }, _) => (interval(point, value), 0.0, 0.0),
            (Reading::Latency { .. }, None) => return None,
        };
        let has_interval = ends.is_some() || self.unit() == Dimension::Share;
        let [low, high] = ends.unwrap_or([value; 2]);
        let estimate = Estimate { value, low, high };
        let estimate = match (self.unit(), self.statistic) {
            (_, None) => estimate,
            (Dimension::Share, _) => widened(estimate, bound),
            // With a histogram, every time is known to within a bucket.
            _ => Estimate {
                low: (estimate.low * (1.0 - blur) - bound).max(0.0),
                high: estimate.high * (1.0 + blur) + bound,
                ..estimate
            },
        };
        Some(Measured { estimate, samples, has_interval })
    }

    /// The largest error of the number from comparing two clocks: a time, in ns, or a share.
    pub fn bound(&self, point: &Point) -> Option<f64> {
        let latency = self.latency(point)?;
        let statistic = self.statistic?;
        if statistic.unit == Dimension::Share {
            let seen = latency.share_above.get(self.at.threshold)?;
            let bounds = share_bounds(point, latency, self.at.threshold);
            return bounds.map(|[least, largest]| (seen - least).max(largest - seen));
        }
        bound_ns(point, latency.kind).filter(|_| statistic.is_shifted)
    }
}

/// Widens the interval of a share by a bound.
pub fn widened(share: Estimate, bound: f64) -> Estimate {
    Estimate { low: (share.low - bound).max(0.0), high: (share.high + bound).min(1.0), ..share }
}
