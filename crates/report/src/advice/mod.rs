//! What a record says about how to send: ways that were measured in rounds, which of them is best for a goal, what is equal to
//! it within the error, and what each step away from it costs. Decided from the points alone.
//!
//! *The error.* Rounds measure every way once, one after the other, so that what drifts hits all alike, and rounds are pairs.
//! Two ways differ where the ratios of the rounds that both were measured in say so by the exact signed-rank test (Wilcoxon,
//! Biometrics Bulletin 1, 1945), one-sided at 5 %, and by at least [`WORTH`]. With five rounds that is where the one is below
//! the other in every round; with fewer no two ways can be told apart. Rounds in which the machine was unstable do not count
//! where there are five others ([`lacking`] says how many to measure again); where there are not, what
//! they say is marked as not decided.
//!
//! *The choice.* Of all ways that neither the best nor the steadiest of those equal to it is better than by more than the
//! error, the simplest ([`Way::complexity`]).

mod compare;
mod rounds;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

pub use measure::quantity::arrived;
use measure::quantity::{cpu_ns_per_message, lost, posted};
use measure::record::{Axes, Point, Status};
use serde_json::Value;

use crate::grid::median;

use self::rounds::{Counted, counted};
pub use compare::{Comparison, Verdict, compare};
pub use rounds::lacking;
pub use text::text;

/// Services, the simplest first.
pub const SERVICES: [&str; 3] = ["RC", "UC", "UD"];
/// Operations, the simplest first.
pub const OPERATIONS: [&str; 2] = ["send_imm", "write_imm"];
/// Ways to wait for completions, the simplest first: who sleeps leaves its CPU to others.
pub const POLLS: [&str; 4] = ["event", "event_repoll", "hybrid", "busy"];
/// Less than this share of the smaller value is no difference: it is what one start of a program differs from the next.
pub const WORTH: f64 = 0.01;
/// Fewest rounds that tell two ways apart: to be below in each of five is an accident in one of 32 cases, of four in 16.
pub const ROUNDS_MIN: usize = 5;
/// Messages of a round from which on ten are above its p99.9.
pub const TAIL_MESSAGES: u64 = 10_000;

/// Who posts less than this share of the rate that was asked for does not keep it: queues that are never full are fast.
pub const RATE_KEPT: f64 = 0.9;

/// What a way must do besides to be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// It may lose messages.
    pub allow_loss: bool,
    /// Messages per second that it posts, but for a share of [`RATE_KEPT`]; `None` where that is no condition.
    pub rate: Option<f64>,
}

impl Conditions {
    /// These, without a rate that none of the ways keeps.
    #[must_use]
    pub fn that_can_be_met(self, candidates: &[Candidate]) -> Self {
        let is_met = candidates.iter().any(|candidate| candidate.is_eligible(self));
        Self { rate: self.rate.filter(|_| is_met), ..self }
    }
}

/// What is to be least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goal {
    /// The median of the one-way latency.
    Median,
    /// Its 99.9 % quantile.
    P999,
    /// The time of CPUs that a message takes at both ends, in user space and in the kernel.
    Cpu,
}

impl Goal {
    /// Its value for a point, in ns.
    pub fn value(self, point: &Point) -> Option<f64> {
        match self {
            Self::Median => Some(point.latency.as_ref()?.p50_ns as f64),
            Self::P999 => p999_ns(point),
            Self::Cpu => cpu_ns_per_message(point),
        }
    }

    /// The path of the value into a point, for figures.
    pub fn path(self) -> &'static str {
        match self {
            Self::Median => "latency.p50_ns",
            Self::P999 => "latency.p999_ns",
            Self::Cpu => "cpu_ns_per_message",
        }
    }

    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "one-way median",
            Self::P999 => "one-way p99.9",
            Self::Cpu => "CPU time of both ends per message",
        }
    }
}

/// The p99.9 of all messages, in ns; a lost one took for ever. `None` where more than one of a thousand did. Where fewer did,
/// the largest of the others: it is not below it, and no quantile between is in a record.
fn p999_ns(point: &Point) -> Option<f64> {
    let latency = point.latency.as_ref()?;
    match lost(point) {
        0 => Some(latency.p999_ns as f64),
        lost if lost * 1000 <= latency.count + lost => Some(latency.max_ns as f64),
        _ => None,
    }
}

/// A way to send: the settings that a developer decides.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Way {
    /// Transport service, of [`SERVICES`].
    pub service: String,
    /// Operation, of [`OPERATIONS`].
    pub operation: String,
    /// Whether the payload is copied into the work request.
    pub inline: bool,
    /// Every how many sends one asks for a completion.
    pub signal_interval: u64,
    /// How completions are waited for, of [`POLLS`].
    pub poll: String,
    /// Buffers at each end that messages take in turn.
    pub buffers: u64,
}

impl Way {
    /// The way of a point; `None` where an axis is missing.
    pub fn of(axes: &Axes) -> Option<Self> {
        let text = |name: &str| axes.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| axes.get(name).and_then(Value::as_u64);
        Some(Self {
            service: text("service")?,
            operation: text("operation")?,
            inline: axes.get("inline")?.as_bool()?,
            signal_interval: number("signal_interval")?,
            poll: text("poll")?,
            buffers: number("buffers")?,
        })
    }

    /// Sorts ways from simple to elaborate: reliable before unreliable, send before write, not inline before inline, every
    /// send signalled before few, sleeping before polling, few buffers before many; the first that differs decides.
    pub fn complexity(&self) -> [u64; 6] {
        let rank = |known: &[&str], name: &str| {
            known.iter().position(|known| *known == name).unwrap_or(known.len()) as u64
        };
        [
            rank(&SERVICES, &self.service),
            rank(&OPERATIONS, &self.operation),
            u64::from(self.inline),
            self.signal_interval,
            rank(&POLLS, &self.poll),
            self.buffers,
        ]
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { service, operation, inline, signal_interval, poll, buffers } = self;
        let inline = if *inline { ", inline" } else { "" };
        let signalled = if *signal_interval > 1 {
            format!(", every {signal_interval}th signalled")
        } else {
            String::new()
        };
        write!(f, "{service} {operation}, {poll}{inline}{signalled}, {buffers} buffers")
    }
}

/// A way with everything that was measured of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The way.
    pub way: Way,
    /// The goal's value of each round, in ns, by experiment and repetition.
    pub rounds: BTreeMap<(String, u32), f64>,
    /// Messages that count, in the round that has the fewest.
    pub messages: u64,
    /// Messages that were posted in all rounds.
    pub posted: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Rounds whose numbers should not be trusted, as in [`rounds`](Self::rounds).
    pub unstable: BTreeSet<(String, u32)>,
    /// Why a round has no value, if one has none.
    pub not_measured: Option<String>,
    /// Messages per second that the sender posted, in the median round; `None` where its time is not known.
    pub rate: Option<f64>,
}

impl Candidate {
    /// Its rounds that count, in an experiment or in all; values in ns.
    fn counted(&self, experiment: Option<&str>) -> Counted<f64> {
        let is_in = |key: &(String, u32)| experiment.is_none_or(|experiment| key.0 == experiment);
        let rounds = self.rounds.iter().filter(|(key, _)| is_in(key));
        counted(rounds.map(|(key, value)| (*value, !self.unstable.contains(key))))
    }

    /// The median of its rounds that count in an experiment, in ns; of all experiments without one.
    pub fn median(&self, experiment: Option<&str>) -> Option<f64> {
        median(self.counted(experiment).rounds)
    }

    /// The largest of its rounds that count in an experiment, in ns.
    fn largest(&self, experiment: &str) -> f64 {
        self.counted(Some(experiment)).rounds.into_iter().fold(0.0, f64::max)
    }

    /// Whether it can be recommended.
    pub fn is_eligible(&self, conditions: Conditions) -> bool {
        self.why_not_compared().is_none() && self.why_refused(conditions).is_none()
    }

    /// Which condition it does not meet, if so.
    pub fn why_refused(&self, conditions: Conditions) -> Option<String> {
        let Self { lost, posted, rate, .. } = self;
        if *lost > 0 && !conditions.allow_loss {
            return Some(format!("lost {lost} of {posted} messages (--allow-loss)"));
        }
        let (asked, kept) = conditions.rate.zip(*rate)?;
        (kept < RATE_KEPT * asked).then(|| format!("kept {kept:.0} of {asked:.0} messages per second"))
    }

    /// Why it cannot be compared, if so.
    fn why_not_compared(&self) -> Option<String> {
        let few = || format!("only {} rounds have a value", self.rounds.len());
        match &self.not_measured {
            Some(reason) => Some(reason.clone()),
            None => (self.rounds.len() < ROUNDS_MIN).then(few),
        }
    }
}

/// The ways of the points of some experiments, in the order in which they came.
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
        let (rounds, unstable) = (BTreeMap::new(), BTreeSet::new());
        let (messages, posted, lost) = (u64::MAX, 0, 0);
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
                Status::Measured => format!("the record has no {} of it", goal.name()),
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

/// The way to take of those that an experiment compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The simplest of those that are equal to the best within the error.
    pub way: Way,
    /// All of those, the best first.
    pub equal: Vec<Way>,
}

/// Chooses of the ways that were measured in an experiment; `None` where none meets the conditions.
pub fn choose(candidates: &[Candidate], experiment: &str, conditions: Conditions) -> Option<Choice> {
    let value = |candidate: &Candidate| candidate.median(Some(experiment)).unwrap_or(f64::INFINITY);
    let is_in = |candidate: &&Candidate| candidate.median(Some(experiment)).is_some();
    let mut eligible: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.is_eligible(conditions)).filter(is_in).collect();
    eligible.sort_by(|a, b| value(a).total_cmp(&value(b)));
    // Two are compared with, in the rounds of all experiments: with more, what is equal to all would be worse than one of
    // them by accident. The steadiest, as a best that is noisy is evidence against nobody.
    let is_worse = |a: &Candidate, b: &Candidate| {
        a.way != b.way && compare(a, b).is_some_and(|it| it.verdict == Verdict::Worse)
    };
    let first = *eligible.first()?;
    let largest = |candidate: &Candidate| candidate.largest(experiment);
    let steadiest = *eligible
        .iter()
        .filter(|candidate| !is_worse(candidate, first))
        .min_by(|a, b| largest(a).total_cmp(&largest(b)))?;
    let is_equal = |a: &&&Candidate| !is_worse(a, first) && !is_worse(a, steadiest);
    let mut equal: Vec<Way> =
        eligible.iter().filter(is_equal).map(|candidate| candidate.way.clone()).collect();
    if equal.is_empty() {
        equal.push(first.way.clone());
    }
    let way = equal.iter().min_by_key(|way| way.complexity())?.clone();
    Some(Choice { way, equal })
}

/// One setting changed alone.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name of the setting.
    pub setting: &'static str,
    /// Its other value, in words.
    pub instead: String,
    /// The way that it leads to, or why there is none.
    pub to: Result<Way, String>,
}

/// What is recommended and why.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was to be least.
    pub goal: Goal,
    /// What is recommended.
    pub recommended: Candidate,
    /// Ways of the last comparison that are equal to the best within the error and are not recommended.
    pub equal: Vec<Way>,
    /// What each step away from it costs.
    pub steps: Vec<(Step, Outcome)>,
    /// Rounds that were measured again because the machine was unstable; who measures knows.
    pub repeated: u32,
}

/// What is known of a step.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Beside the recommended way.
    Compared {
        /// In the rounds that both were measured in.
        comparison: Comparison,
        /// The step's way.
        candidate: Box<Candidate>,
        /// Why it is not recommended although it is better, if so.
        refused: Option<String>,
    },
    /// Why there is no number.
    NotMeasured(String),
}

/// Compares the steps away from a way with it. `None` where the way itself was not measured.
pub fn advise(
    candidates: &[Candidate],
    goal: Goal,
    choice: &Choice,
    steps: Vec<Step>,
    conditions: Conditions,
) -> Option<Advice> {
    let find = |way: &Way| candidates.iter().find(|candidate| candidate.way == *way);
    let recommended = find(&choice.way)?;
    let outcome = |step: &Step| {
        let way = step.to.as_ref().map_err(Clone::clone)?;
        let candidate = find(way).ok_or_else(|| "the run ended before".to_owned())?;
        if let Some(reason) = candidate.why_not_compared() {
            return Err(reason);
        }
        let comparison = compare(candidate, recommended).ok_or("no round has both")?;
        let refused = (comparison.verdict == Verdict::Better).then(|| why_refused(candidate, conditions));
        Ok(Outcome::Compared { comparison, candidate: Box::new(candidate.clone()), refused })
    };
    let known = |step: Step| {
        let outcome = outcome(&step).unwrap_or_else(Outcome::NotMeasured);
        (step, outcome)
    };
    let equal = choice.equal.iter().filter(|way| **way != choice.way).cloned().collect();
    let steps = steps.into_iter().map(known).collect();
    Some(Advice { goal, recommended: recommended.clone(), equal, steps, repeated: 0 })
}

/// Why what is better is not recommended.
fn why_refused(candidate: &Candidate, conditions: Conditions) -> String {
    match candidate.why_refused(conditions) {
        Some(why) => format!("refused because it {why}"),
        None => "but the search ended here: it was not so in another step, or there were too many steps"
            .to_owned(),
    }
}
