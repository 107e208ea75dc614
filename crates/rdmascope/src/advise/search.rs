//! Chooses the points to measure next: a trial, which shows how many messages the budget allows;
//! all services, operations and ways to poll; then the steps away from the best until none is
//! better.

use std::time::Duration;

use bench::plan::Resolved;
use measure::record::Point;
use measure::text::counted;
use measure::units;
use report::advice::{
    Advice, Candidate, Choice, Conditions, Way, advise, arrived, candidates, choose, lacking,
};

use super::ask::Ask;
use crate::failure::Usage;

/// The stage that only shows how long messages take.
pub(super) const TRIAL: &str = "trial";
/// The stage of all services, operations and ways to poll.
const COARSE: &str = "coarse";
/// Messages of the trial: enough to estimate the time of a message, few enough to end soon.
const TRIAL_MESSAGES: u64 = 200;
/// Longest trial of a configuration, in s, if messages are far apart and more than the fewest.
const TRIAL_S: f64 = 1.0;
/// Fewest messages of a trial.
const TRIAL_MESSAGES_MIN: u64 = 10;
/// Fewest messages of a round that the budget chooses: they show a median to some percent.
const MESSAGES_MIN: u64 = 100;
/// Most messages of a round that the budget chooses: ten of them are above p99.9.
const MESSAGES_MAX: u64 = report::advice::TAIL_MESSAGES;
/// Most times that the search goes on from another configuration.
const STEPS_MAX: usize = 5;
/// Usual number of comparisons of steps: around the best and around one or two others.
const STEPS_USUAL: f64 = 2.0;
/// Time of a point besides its messages, in s: connecting, and the calibration around it.
const POINT_S: f64 = 0.05;

/// The share of the budget that is left for rounds in which the machine was unstable.
const AGAIN_SHARE: f64 = 0.2;

/// A search that would take more than this many times its budget is refused.
const OVERTIME_MAX: f64 = 2.0;

/// The stage of a search.
#[derive(Debug)]
enum Stage {
    Start,
    Trial,
    Coarse,
    /// Around the last of the centres.
    Steps,
    Done,
}

/// The search. The caller adds the points that were measured.
pub(super) struct Search {
    ask: Ask,
    stage: Stage,
    iterations: u64,
    points: Vec<Point>,
    /// The configurations from which the search has gone on, in order.
    centres: Vec<Way>,
    choice: Option<Choice>,
    planned: u64,
    /// The configurations of the current comparison.
    compared: Vec<Way>,
    /// Rounds of the current comparison that were measured again.
    again: u32,
    /// Rounds of all comparisons that were measured again.
    repeated: u32,
    /// Expected time of all comparisons in s, estimated by the trial.
    estimate_s: Option<f64>,
}

impl Search {
    pub(super) fn new(ask: Ask) -> Self {
        let iterations = ask.iterations.unwrap_or(MESSAGES_MAX);
        let points = Vec::new();
        let centres = Vec::new();
        Self {
            ask,
            stage: Stage::Start,
            iterations,
            points,
            centres,
            choice: None,
            planned: 0,
            compared: Vec::new(),
            again: 0,
            repeated: 0,
            estimate_s: None,
        }
    }

    /// Adds a point.
    pub(super) fn take(&mut self, point: Point) {
        self.points.push(point);
    }

    /// Returns the points to measure next, with a text about them; none when the search is over.
    pub(super) fn next(&mut self) -> Result<Option<(String, Resolved)>, bench::Error> {
        match self.stage {
            Stage::Start if self.ask.iterations.is_none() => self.trial().map(Some),
            Stage::Start => self.coarse().map(Some),
            Stage::Trial => {
                self.iterations = self.affordable();
                self.coarse().map(Some)
            }
            Stage::Coarse | Stage::Steps => match self.once_more()? {
                Some(again) => Ok(Some(again)),
                None => self.go_on(),
            },
            Stage::Done => Ok(None),
        }
    }

    /// Returns the advice that follows from all points.
    pub(super) fn advice(&self) -> Option<Advice> {
        let choice = self.choice.as_ref()?;
        let all = self.candidates();
        let advice = advise(&all, self.ask.goal, choice, self.ask.steps(&choice.way), self.conditions(&all))?;
        Some(Advice { repeated: self.repeated, ..advice })
    }

    /// Returns the conditions of a recommendation, without a rate that no configuration keeps.
    fn conditions(&self, all: &[Candidate]) -> Conditions {
        self.ask.conditions().that_can_be_met(all)
    }

    /// Returns the configurations that were measured, without the trial.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        candidates(&self.points, self.ask.goal, |experiment| experiment != TRIAL)
    }

    /// Returns what the user asked for.
    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// Returns all points so far.
    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the messages of a round.
    pub(super) fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Returns the names of the comparisons so far.
    pub(super) fn stages(&self) -> Vec<String> {
        let steps = (1..=self.centres.len()).map(steps_name);
        std::iter::once(COARSE.to_owned()).chain(steps).collect()
    }

    fn trial(&mut self) -> Result<(String, Resolved), bench::Error> {
        self.stage = Stage::Trial;
        let pause_s = self.ask.pause().as_secs_f64();
        let fitting = if pause_s > 0.0 { (TRIAL_S / pause_s) as u64 } else { TRIAL_MESSAGES };
        let messages = fitting.clamp(TRIAL_MESSAGES_MIN, TRIAL_MESSAGES);
        self.measure(TRIAL, &self.ask.coarse(), 1, messages)
    }

    /// Fails if the pauses between even the fewest messages take much longer than the budget.
    pub(super) fn check_budget(&self) -> Result<(), Usage> {
        let Ask { rounds, iterations, budget, .. } = &self.ask;
        let least = self.points_usual(self.ask.coarse().len()) * MESSAGES_MIN as f64;
        let least_s = least * self.ask.pause().as_secs_f64();
        if iterations.is_some() || least_s <= OVERTIME_MAX * budget.as_secs_f64() {
            return Ok(());
        }
        let least = units::format_duration(rounded(least_s));
        let budget = units::format_duration(*budget);
        Err(Usage(format!(
            "--rate: {MESSAGES_MIN} messages of each configuration in {rounds} rounds take about {least} at this rate, more \
             than {OVERTIME_MAX} times the budget of {budget}: give a larger --budget, fewer configurations (-c, --operation) \
             or -n"
        )))
    }

    /// Returns the points of the usual comparisons.
    fn points_usual(&self, coarse: usize) -> f64 {
        f64::from(self.ask.rounds) * (coarse as f64 + STEPS_USUAL * self.around())
    }

    /// Returns the number of steps away from a configuration.
    fn around(&self) -> f64 {
        self.ask.coarse().first().map_or(0, |way| self.ask.steps(way).len()) as f64
    }

    fn coarse(&mut self) -> Result<(String, Resolved), bench::Error> {
        self.stage = Stage::Coarse;
        let ways = self.ask.coarse();
        // A configuration that failed or could not be measured is not tried again.
        let is_possible = |way: &&Way| {
            let tried = self.points.iter().find(|point| Way::of(&point.axes).as_ref() == Some(*way));
            tried.is_none_or(|point| point.latency.is_some())
        };
        let possible: Vec<Way> = ways.iter().filter(is_possible).cloned().collect();
        let ways = if possible.is_empty() { ways } else { possible };
        let (about, resolved) = self.measure(COARSE, &ways, self.ask.rounds, self.iterations)?;
        let estimate = self
            .estimate_s
            .map(|s| format!("# expected time of the search: {}\n", units::format_duration(rounded(s))));
        Ok((estimate.unwrap_or_default() + &about, resolved))
    }

    /// Goes on from the best configuration of the last comparison, or ends if the search was there
    /// before. If none of them may be recommended, for example because all lost messages, the
    /// comparison before it decides again, without the configurations that are ruled out by now.
    fn go_on(&mut self) -> Result<Option<(String, Resolved)>, bench::Error> {
        let all = self.candidates();
        let mut stages = self.stages().into_iter().rev();
        let conditions = self.conditions(&all);
        let choice = stages.find_map(|stage| choose(&all, &stage, conditions));
        let is_new = |choice: &&Choice| !self.centres.contains(&choice.way) && self.centres.len() < STEPS_MAX;
        let Some(next) = choice.as_ref().filter(is_new) else {
            self.finish(choice, &all);
            return Ok(None);
        };
        self.centres.push(next.way.clone());
        self.stage = Stage::Steps;
        let steps = self.ask.steps(&next.way);
        let ways: Vec<Way> = std::iter::once(next.way.clone())
            .chain(steps.into_iter().filter_map(|step| step.to.ok()))
            .collect();
        self.measure(&steps_name(self.centres.len()), &ways, self.ask.rounds, self.iterations).map(Some)
    }

    /// Ends at the choice of the last comparison if its steps were measured. If there were too many
    /// steps, ends at the last centre that may be recommended.
    fn finish(&mut self, last: Option<Choice>, all: &[Candidate]) {
        self.stage = Stage::Done;
        let conditions = self.conditions(all);
        self.choice = last.and_then(|choice| {
            if self.centres.contains(&choice.way) {
                return Some(choice);
            }
            let is_eligible =
                |way: &&Way| all.iter().any(|known| known.way == **way && known.is_eligible(conditions));
            let way = self.centres.iter().rev().find(is_eligible)?.clone();
            let equal = if choice.equal.contains(&way) { choice.equal } else { Vec::new() };
            Some(Choice { way, equal })
        });
    }

    /// Returns rounds of the last comparison to measure again, because the machine was unstable in
    /// some: at most as many as it had, and as the budget allows.
    fn once_more(&mut self) -> Result<Option<(String, Resolved)>, bench::Error> {
        let Some(stage) = self.stages().pop() else { return Ok(None) };
        let rounds = self.ask.rounds;
        let all = self.candidates();
        // A configuration that failed is not measured again.
        self.compared.retain(|way| all.iter().any(|known| known.way == *way && known.not_measured.is_none()));
        let lacking = u32::try_from(lacking(&all, &stage, rounds as usize)).unwrap_or(u32::MAX);
        let count = lacking.min(rounds - self.again).min(self.rounds_left(&stage, &all));
        if count == 0 || self.compared.is_empty() {
            return Ok(None);
        }
        let mut resolved = self.ask.points(&stage, &self.compared, count, self.iterations, self.planned)?;
        self.planned += resolved.points.len() as u64;
        resolved.points.iter_mut().for_each(|spec| spec.repetition += rounds + self.again);
        self.again += count;
        self.repeated += count;
        let again = counted(count.into(), "round");
        Ok(Some((format!("# {stage}: {again} again, because the machine was unstable\n"), resolved)))
    }

    /// Returns how many rounds of a comparison the budget allows, after the time of the comparisons
    /// that usually follow, if any will.
    fn rounds_left(&self, stage: &str, all: &[Candidate]) -> u32 {
        let seconds = |point: &Point| point.wall_ns as f64 / 1e9;
        let spent_s: f64 = self.points.iter().map(seconds).sum();
        let of_stage: Vec<f64> =
            self.points.iter().filter(|point| point.experiment == stage).map(seconds).collect();
        let one_s = of_stage.iter().sum::<f64>() / of_stage.len() as f64;
        let choice = choose(all, stage, self.conditions(all));
        let to_come = match choice.is_some_and(|choice| self.centres.contains(&choice.way)) {
            true => 0.0,
            false => (STEPS_USUAL - self.centres.len() as f64).max(0.0) * self.around(),
        };
        let left_s = self.ask.budget.as_secs_f64() - spent_s - f64::from(self.ask.rounds) * to_come * one_s;
        (left_s / (self.compared.len() as f64 * one_s)) as u32
    }

    fn measure(
        &mut self,
        stage: &str,
        ways: &[Way],
        rounds: u32,
        messages: u64,
    ) -> Result<(String, Resolved), bench::Error> {
        let resolved = self.ask.points(stage, ways, rounds, messages, self.planned)?;
        self.planned += resolved.points.len() as u64;
        self.compared = ways.to_vec();
        self.again = 0;
        let rounds = counted(rounds.into(), "round");
        let ways = counted(ways.len() as u64, "configuration");
        Ok((format!("# {stage}: {ways}, {rounds} of {messages} messages\n"), resolved))
    }

    /// Returns the messages of a round that the budget allows, by the times of the trial.
    fn affordable(&mut self) -> u64 {
        let trial: Vec<f64> = self.points.iter().filter_map(seconds_per_message).collect();
        if trial.is_empty() {
            return MESSAGES_MIN;
        }
        // Steps are expected to take as long as the coarse configurations on average.
        let points = self.points_usual(trial.len());
        let one_s = trial.iter().sum::<f64>() / trial.len() as f64;
        let left_s = (1.0 - AGAIN_SHARE) * self.ask.budget.as_secs_f64() - points * POINT_S;
        let messages = ((left_s / (points * one_s)) as u64).clamp(MESSAGES_MIN, MESSAGES_MAX);
        self.estimate_s = Some(points * (POINT_S + messages as f64 * one_s));
        messages
    }
}

/// Rounds up to whole seconds: an estimate is not more exact.
fn rounded(seconds: f64) -> Duration {
    Duration::from_secs(seconds.ceil() as u64)
}

fn steps_name(number: usize) -> String {
    format!("steps-{number}")
}

/// Returns the wall time of a message, in the warm-up or after it.
fn seconds_per_message(point: &Point) -> Option<f64> {
    let wall_ns = point.ends.first()?.cpu?.wall_ns as f64;
    Some(wall_ns / 1e9 / arrived(point)? as f64).filter(|s| s.is_finite())
}
