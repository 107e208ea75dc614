//! Whether two CPUs were as near to each other as they are known to be on their host.
//!
//! [`crate::step`] finds a CPU that is moved while a point is measured. A CPU that sits far away
//! for a whole run changes nothing that a point or its neighbours could show: every number is that
//! of another machine, and every number agrees. So each calibration stands beside the best one
//! known of the same pair of CPUs ([`Pair`]): of earlier runs, as whoever measures remembers them,
//! and of the same run.
//!
//! # The rule
//!
//! A core-to-core latency above [`FAR_RATIO`] times the best is far. The regimes seen on one host
//! lie at 24 to 35, 50, 188, 246 and 370 to 1100 ns: what one of them varies by is below that
//! ratio, and the next one is above it. A run is far as a whole where more than half of its points
//! that were compared are.
//!
//! # Invariants
//!
//! * A CPU that sits far away for a whole run changes nothing around any point. So each point's
//!   cache-line time is compared with the best one known of the same pair of CPUs (host, model,
//!   what both share; their numbers, but in a virtual machine) under the same conditions: of its
//!   run and of earlier ones. Above 1.5 times it the point is unstable; where most points are, the
//!   run says so first. The record holds what was compared with; points that were on disk before a
//!   better time came are marked by who reads them. What earlier runs saw is kept by the binary
//!   alone, in the user's cache directory, forgotten 30 days after a time last came near to it, and
//!   only ever makes a number doubted. Ranks on several hosts or on one CPU, and hosts that are
//!   given other work, are compared with nothing.

mod pair;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::record::{Calibration, Point};

pub use pair::Pair;

/// How many times the best core-to-core latency is far.
pub const FAR_RATIO: f64 = 1.5;

/// A core-to-core latency that is far above the best one known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Far {
    /// The latency, in ns.
    pub ns: f64,
    /// The best known, in ns.
    pub best_ns: f64,
}

impl Far {
    /// Compares a latency with the best known, both in ns; `None` where it is not far, and where
    /// one of them is no time.
    pub fn of(ns: f64, best_ns: f64) -> Option<Self> {
        let is_far = best_ns > 0.0 && ns.is_finite() && ns > FAR_RATIO * best_ns;
        is_far.then_some(Self { ns, best_ns })
    }

    /// How many times the best it is.
    pub fn ratio(&self) -> f64 {
        self.ns / self.best_ns
    }
}

/// A reason not to trust a point.
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

/// What puts two CPUs far from each other, in a virtual machine and elsewhere.
const CAUSE: &str = "a CPU was placed far away or ran slowly";

/// A time in ns, as many digits of it as say something.
fn short(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// Whether a point was far, as was known when it ended: the larger of its two times against the
/// best. None where it was compared with nothing, as in records of programs that compared nothing.
pub fn far(calibration: &Calibration) -> Option<Far> {
    far_from(calibration, calibration.best_ns?)
}

fn far_from(calibration: &Calibration, best_ns: f64) -> Option<Far> {
    Far::of(calibration.before_ns.max(calibration.after_ns), best_ns)
}

/// A point whose core-to-core latency was compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The point's environment: points of another one are no measure for it.
    environment: Option<String>,
    calibration: Calibration,
    best_ns: f64,
}

impl Placed {
    /// What is compared of a point; `None` where nothing is.
    pub fn of(point: &Point) -> Option<Self> {
        let calibration = point.calibration.clone()?;
        let environment = point.axes.get("environment").map(ToString::to_string);
        Some(Self { environment, best_ns: calibration.best_ns?, calibration })
    }

    /// Whether the point was far, as is known when the run has ended.
    fn far(&self, bests: &Bests) -> Option<Far> {
        far_from(&self.calibration, *bests.get(&self.environment)?)
    }
}

/// The best latency of each environment of a run, in ns: those of earlier runs are in what its
/// points were compared with.
type Bests = BTreeMap<Option<String>, f64>;

fn bests<'a>(placed: impl Iterator<Item = &'a Placed>) -> Bests {
    let mut bests = Bests::new();
    for Placed { environment, best_ns, .. } in placed {
        let best = bests.entry(environment.clone()).or_insert(*best_ns);
        *best = best.min(*best_ns);
    }
    bests
}

/// Marks the points of a run that ended before a better time was seen. They were on disk by then,
/// so that their lines say what they were compared with and not what came later.
pub fn mark(points: &mut [Point]) {
    let placed: Vec<Option<Placed>> = points.iter().map(Placed::of).collect();
    let bests = bests(placed.iter().flatten());
    for (point, placed) in points.iter_mut().zip(&placed) {
        let Some(far) = placed.as_ref().and_then(|placed| late(placed, &bests)) else { continue };
        let reasons = point.unstable.iter().cloned().chain([far.to_string()]);
        point.unstable = Some(reasons.collect::<Vec<_>>().join("; "));
    }
}

/// Whether only what came later shows that a point was far.
fn late(placed: &Placed, bests: &Bests) -> Option<Far> {
    placed.far(bests).filter(|_| far(&placed.calibration).is_none())
}

/// How a run was placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Points that were compared.
    pub compared: usize,
    /// Those of them that were far.
    pub far: usize,
    /// Those of them that only later points show to have been.
    pub late: usize,
    /// The median of the far ones, by their ratio.
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

    /// The first line of a report on a run that was far as a whole; `None` where its points' own
    /// marks say enough.
    pub fn headline(&self) -> Option<String> {
        let Self { compared, far, median, .. } = self;
        let [ns, best_ns] = [median.ns, median.best_ns].map(short);
        let points = if *compared == 1 { "point" } else { "points" };
        let ratio = median.ratio();
        self.is_of_all().then(|| {
            format!(
                "Do not trust this run as a whole: in {far} of {compared} {points} the core-to-core latency was far above \
                 the best seen on this host, at the median {ns} ns against {best_ns} ns, {ratio:.1} times as much: {CAUSE}"
            )
        })
    }
}
