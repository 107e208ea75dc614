//! The recommended configuration, and the cost of each step away from it.

use super::candidate::{Candidate, Conditions};
use super::compare::{Comparison, Verdict, compare};
use super::goal::Goal;
use super::way::Way;

/// The choice among the configurations that an experiment compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The simplest of the configurations that are equal to the best within the error.
    pub way: Way,
    /// All of these, the best first.
    pub equal: Vec<Way>,
}

/// Chooses among the configurations that an experiment measured; `None` where none meets the
/// conditions.
pub fn choose(candidates: &[Candidate], experiment: &str, conditions: Conditions) -> Option<Choice> {
    let value = |candidate: &Candidate| candidate.median(Some(experiment)).unwrap_or(f64::INFINITY);
    let is_in = |candidate: &&Candidate| candidate.median(Some(experiment)).is_some();
    let mut eligible: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.is_eligible(conditions)).filter(is_in).collect();
    eligible.sort_by(|a, b| value(a).total_cmp(&value(b)));
    // Each is compared with two others, in the rounds of all experiments. With more comparisons,
    // a configuration that is equal to all would be worse than one of them by accident. The
    // second is the steadiest, because a noisy best proves nothing.
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
    /// The resulting configuration, or why there is none.
    pub to: Result<Way, String>,
}

/// The recommendation and its evidence.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The quantity that is minimised.
    pub goal: Goal,
    /// The recommended configuration.
    pub recommended: Candidate,
    /// Configurations of the last comparison that are equal to the best within the error and are
    /// not recommended.
    pub equal: Vec<Way>,
    /// The cost of each step away from it.
    pub steps: Vec<(Step, Outcome)>,
    /// Rounds that were measured again because the machine was unstable; the caller counts them.
    pub repeated: u32,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was compared with the recommended configuration.
    Compared {
        /// In the rounds in which both were measured.
        comparison: Comparison,
        /// The step's configuration.
        candidate: Box<Candidate>,
        /// Why it is not recommended although it is better, if so.
        refused: Option<String>,
    },
    /// There is no number, for this reason.
    NotMeasured(String),
}

/// Compares the steps away from a configuration with it. `None` where the configuration itself was
/// not measured.
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
        let candidate = find(way).ok_or_else(|| "the run ended before this step".to_owned())?;
        if let Some(reason) = candidate.why_not_compared() {
            return Err(reason);
        }
        let comparison = compare(candidate, recommended).ok_or("no round measured both")?;
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

/// Why a better configuration is not recommended.
fn why_refused(candidate: &Candidate, conditions: Conditions) -> String {
    match candidate.why_refused(conditions) {
        Some(why) => format!("refused because it {why}"),
        None => {
            "but the search ended here: another step contradicted it, or there were too many steps".to_owned()
        }
    }
}
