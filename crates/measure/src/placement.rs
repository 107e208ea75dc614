//! Whether two CPUs were as near to each other as they are known to be on their host.
//!
//! [`crate::step`] finds a CPU that is moved while a point is measured. A CPU that sits far away
//! for a whole run is different: all numbers are those of a slower machine, and all of them agree.
//! So each calibration is compared with the best one known of the same pair of CPUs ([`Pair`]): in
//! earlier runs, which the measuring program remembers, and in the same run.
//!
//! # The rule
//!
//! A core-to-core latency above [`FAR_RATIO`] times the best is far. The regimes seen on one host
//! lie at 14 ns (two threads of one core), 24 to 50 ns (two cores), and 150 to 1100 ns (two
//! processors, or worse). Threads of one core are not faster for every pattern, so that cores are
//! not far beside them. A run as a whole is far when more than half of its compared points are.
//!
//! # Invariants
//!
//! * A CPU that sits far away for a whole run changes nothing around any point. So each point's
//!   core-to-core latency is compared with the best one known of the same pair of CPUs (host,
//!   model, what both share; their numbers, except in a virtual machine) under the same conditions,
//!   in its run and in earlier ones. Above 3 times the best, the point is unstable; if most
//!   points are, the run says so first. The record holds the best latency that each point was
//!   compared with. Programs that read the record mark the points that were on disk before a better
//!   latency was measured. Only the binary keeps what earlier runs saw, in the user's cache
//!   directory. It forgets a best latency 30 days after a measurement last came near it, and only
//!   ever marks numbers as unstable because of it. Ranks on several hosts or on one CPU, and hosts
//!   that are given other work, are compared with nothing.

mod pair;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::record::{Calibration, Point};

pub use pair::Pair;

/// The multiple of the best core-to-core latency above which a latency is far. Two cores of one
/// processor are 2 to 3 times as far from each other as two threads of one core, which need not
/// make anything faster.
pub const FAR_RATIO: f64 = 3.0;

/// A core-to-core latency that is far above the best one known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Far {
    /// The latency, in ns.
    pub ns: f64,
    /// The best known, in ns.
    pub best_ns: f64,
}

impl Far {
    /// Compares a latency with the best known, both in ns. Returns `None` if it is not far, or if
    /// the best one is 0.
    pub fn of(ns: f64, best_ns: f64) -> Option<Self> {
        let is_far = best_ns > 0.0 && ns.is_finite() && ns > FAR_RATIO * best_ns;
        is_far.then_some(Self { ns, best_ns })
    }

    /// The latency as a multiple of the best.
    pub fn ratio(&self) -> f64 {
        self.ns / self.best_ns
    }
}

/// Prints the reason why a point is unstable.
impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ns, best_ns } = *self;
        let [ns, best_ns] = [ns, best_ns].map(short);
        let ratio = self.ratio();
        write!(
            f,
            "core-to-core latency was {ns} ns, {ratio:.1} times the best seen on this host ({best_ns} ns): {CAUSE}"
        )
    }
}

/// Why a core-to-core latency is high, in a virtual machine or elsewhere.
const CAUSE: &str = "a CPU was placed far away or ran slowly";

/// Prints a time in ns: with one decimal below 10 ns, else without.
fn short(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// Compares the larger of a point's two core-to-core latencies with the best one known when the
/// point ended. Returns `None` if it was not far, or if the record has no best latency.
pub fn far(calibration: &Calibration) -> Option<Far> {
    far_from(calibration, calibration.best_ns?)
}

fn far_from(calibration: &Calibration, best_ns: f64) -> Option<Far> {
    Far::of(calibration.before_ns.max(calibration.after_ns), best_ns)
}

/// A point whose core-to-core latency was compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The point's environment: only points of the same one are compared.
    environment: Option<String>,
    calibration: Calibration,
    best_ns: f64,
}

impl Placed {
    /// Returns what is compared of a point, or `None` where nothing is.
    pub fn of(point: &Point) -> Option<Self> {
        let calibration = point.calibration.clone()?;
        let environment = point.axes.get("environment").map(ToString::to_string);
        Some(Self { environment, best_ns: calibration.best_ns?, calibration })
    }

    /// Compares the point with the best latency of the whole run.
    fn far(&self, bests: &Bests) -> Option<Far> {
        far_from(&self.calibration, *bests.get(&self.environment)?)
    }
}

/// The best latency of each environment of a run, in ns. Earlier runs are included, as each point
/// has the best latency that it was compared with.
type Bests = BTreeMap<Option<String>, f64>;

fn bests<'a>(placed: impl Iterator<Item = &'a Placed>) -> Bests {
    let mut bests = Bests::new();
    for Placed { environment, best_ns, .. } in placed {
        let best = bests.entry(environment.clone()).or_insert(*best_ns);
        *best = best.min(*best_ns);
    }
    bests
}

/// Marks as unstable the points of a run that ended before a better latency was measured. Their
/// lines on disk hold only what was known then.
pub fn mark(points: &mut [Point]) {
    let placed: Vec<Option<Placed>> = points.iter().map(Placed::of).collect();
    let bests = bests(placed.iter().flatten());
    for (point, placed) in points.iter_mut().zip(&placed) {
        let Some(far) = placed.as_ref().and_then(|placed| late(placed, &bests)) else { continue };
        let reasons = point.unstable.iter().cloned().chain([far.to_string()]);
        point.unstable = Some(reasons.collect::<Vec<_>>().join("; "));
    }
}

/// Returns how far a point was, if only a later, better latency shows that.
fn late(placed: &Placed, bests: &Bests) -> Option<Far> {
    placed.far(bests).filter(|_| far(&placed.calibration).is_none())
}

/// How a run was placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Points that were compared.
    pub compared: usize,
    /// Points that were far.
    pub far: usize,
    /// Far points that only later points show to be far.
    pub late: usize,
    /// The median of the far latencies, by their ratio.
    pub median: Far,
}

impl Verdict {
    /// The verdict on a run; `None` where no point was far.
    pub fn of(placed: &[Placed]) -> Option<Self> {
        let bests = bests(placed.iter());
        let mut far: Vec<Far> = placed.iter().filter_map(|placed| placed.far(&bests)).collect();
        far.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let median = *far.get(far.len() / 2)?;
        let late = placed.iter().filter(|placed| late(placed, &bests).is_some()).count();
        Some(Self { compared: placed.len(), far: far.len(), late, median })
    }

    /// Whether the run as a whole was far.
    pub fn is_of_all(&self) -> bool {
        2 * self.far > self.compared
    }

    /// The first line of a report on a run that was far as a whole; `None` where the marks of its
    /// points are enough.
    pub fn headline(&self) -> Option<String> {
        let Self { compared, far, median, .. } = self;
        let [ns, best_ns] = [median.ns, median.best_ns].map(short);
        let points = if *compared == 1 { "point" } else { "points" };
        let ratio = median.ratio();
        self.is_of_all().then(|| {
            format!(
                "The whole run is unstable: {CAUSE}. In {far} of {compared} {points} the core-to-core latency was far above \
                 the best seen on this host: at the median {ns} ns against {best_ns} ns, {ratio:.1} times as much"
            )
        })
    }
}
