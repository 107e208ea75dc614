//! The measured configurations, and which of them may be recommended.

use std::collections::{BTreeMap, BTreeSet};

use measure::quantity::{lost, posted};
use measure::record::{Point, Status};

use super::counted::{Counted, ROUNDS_MIN, counted};
use super::goal::Goal;
use super::way::Way;
use crate::series_table::median;

/// A sender that posts less than this share of the asked rate does not keep the rate: a queue that
/// is never full looks fast.
pub const RATE_KEPT: f64 = 0.9;

/// The conditions under which a configuration may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Messages may be lost.
    pub allow_loss: bool,
    /// Messages per second that the sender has to post, or at least [`RATE_KEPT`] of them; `None`
    /// without this condition.
    pub rate: Option<f64>,
}

impl Conditions {
    /// Drops the rate if no configuration keeps it.
    #[must_use]
    pub fn that_can_be_met(self, candidates: &[Candidate]) -> Self {
        let is_met = candidates.iter().any(|candidate| candidate.is_eligible(self));
        Self { rate: self.rate.filter(|_| is_met), ..self }
    }
}

/// A configuration with its measurements.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The configuration.
    pub way: Way,
    /// The value of the goal in each round, in ns, by experiment and repetition.
    pub rounds: BTreeMap<(String, u32), f64>,
    /// Messages that count, in the round with the fewest.
    pub messages: u64,
    /// Messages that were posted in all rounds.
    pub posted: u64,
    /// Messages that were lost, of these.
    pub lost: u64,
    /// Rounds that were unstable, by the keys of [`rounds`](Self::rounds).
    pub unstable: BTreeSet<(String, u32)>,
    /// Why a round has no value; `None` if all have one.
    pub not_measured: Option<String>,
    /// Messages per second that the sender posted, in the median round; `None` where its time is
    /// not known.
    pub rate: Option<f64>,
}

impl Candidate {
    /// Its rounds that count, in an experiment or in all; values in ns.
    pub(super) fn counted(&self, experiment: Option<&str>) -> Counted<f64> {
        let is_in = |key: &(String, u32)| experiment.is_none_or(|experiment| key.0 == experiment);
        let rounds = self.rounds.iter().filter(|(key, _)| is_in(key));
        counted(rounds.map(|(key, value)| (*value, !self.unstable.contains(key))))
    }

    /// The median of its rounds that count in an experiment, in ns; of all experiments without one.
    pub fn median(&self, experiment: Option<&str>) -> Option<f64> {
        median(self.counted(experiment).rounds)
    }

    /// The largest of its rounds that count in an experiment, in ns.
    pub(super) fn largest(&self, experiment: &str) -> f64 {
        self.counted(Some(experiment)).rounds.into_iter().fold(0.0, f64::max)
    }

    /// Whether it can be recommended.
    pub fn is_eligible(&self, conditions: Conditions) -> bool {
        self.why_not_compared().is_none() && self.why_refused(conditions).is_none()
    }

    /// The condition that it does not meet, if there is one.
    pub fn why_refused(&self, conditions: Conditions) -> Option<String> {
        let Self { lost, posted, rate, .. } = self;
        if *lost > 0 && !conditions.allow_loss {
            return Some(format!("lost {lost} of {posted} messages (--allow-loss)"));
        }
        let (asked, kept) = conditions.rate.zip(*rate)?;
        (kept < RATE_KEPT * asked).then(|| format!("kept {kept:.0} of {asked:.0} messages per second"))
    }

    /// Why it cannot be compared, if it cannot.
    pub(super) fn why_not_compared(&self) -> Option<String> {
        let few = || format!("only {} rounds have a value", self.rounds.len());
        match &self.not_measured {
            Some(reason) => Some(reason.clone()),
            None => (self.rounds.len() < ROUNDS_MIN).then(few),
        }
    }
}

/// The configurations of the points of some experiments, in the order of the points.
pub fn candidates(points: &[Point], goal: Goal, is_shown: impl Fn(&str) -> bool) -> Vec<Candidate> {
    let mut found: Vec<(Candidate, Vec<f64>)> = Vec::new();
    for point in points.iter().filter(|point| is_shown(&point.experiment)) {
        let Some(way) = Way::of(&point.axes) else { continue };
        let at = found.iter().position(|(known, _)| known.way == way).unwrap_or_else(|| {
            found.push((Candidate::new(way), Vec::new()));
            found.len() - 1
        });
        let (candidate, rates) = &mut found[at];
        candidate.take(point, goal);
        rates.extend(rate(point));
    }
    let finished = |(candidate, rates): (Candidate, Vec<f64>)| Candidate { rate: median(rates), ..candidate };
    found.into_iter().map(finished).collect()
}

impl Candidate {
    fn new(way: Way) -> Self {
        let rounds = BTreeMap::new();
        let unstable = BTreeSet::new();
        let messages = u64::MAX;
        let posted = 0;
        let lost = 0;
        Self { way, rounds, messages, posted, lost, unstable, not_measured: None, rate: None }
    }

    fn take(&mut self, point: &Point, goal: Goal) {
        let value = goal.value(point).filter(|_| point.status == Status::Measured);
        let Some(value) = value else {
            self.not_measured.get_or_insert_with(|| match &point.status {
                Status::Failed { error } => format!("failed: {error}"),
                Status::NotMeasured { reason } => reason.clone(),
                Status::Measured if goal == Goal::P999 && point.latency.is_some() => {
                    format!("its p99.9 is infinite: it lost {} messages in a round", lost(point))
                }
                Status::Measured => format!("the record has no {} for it", goal.name()),
            });
            return;
        };
        let round = (point.experiment.clone(), point.repetition);
        if point.unstable.is_some() {
            self.unstable.insert(round.clone());
        }
        self.rounds.insert(round, value);
        self.messages = self.messages.min(point.latency.as_ref().map_or(0, |latency| latency.count));
        self.posted += posted(point).unwrap_or(0);
        self.lost += lost(point);
    }
}

/// Messages per second that the sender posted.
fn rate(point: &Point) -> Option<f64> {
    let wall_ns = point.ends.first()?.cpu?.wall_ns;
    (wall_ns > 0).then(|| posted(point).map(|messages| messages as f64 * 1e9 / wall_ns as f64)).flatten()
}
