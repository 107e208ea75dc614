//! Which points are measured next: a trial that says how many messages the budget allows, all
//! services, operations and ways to poll, then the steps away from the best until none leads on.

use std::time::Duration;

use bench::plan::Resolved;
use measure::record::Point;
use measure::units;
use report::advice::{
    Advice, Candidate, Choice, Conditions, Way, advise, arrived, candidates, choose, lacking,
};

use super::ask::Ask;
use crate::failure::Usage;

/// The stage that only says how long messages take.
pub(super) const TRIAL: &str = "trial";
/// The stage of all services, operations and ways to poll.
const COARSE: &str = "coarse";
/// Messages of the trial: enough for a time, few enough to be over soon.
const TRIAL_MESSAGES: u64 = 200;
/// Where messages are far apart, the trial of a way takes no longer than this many seconds, but for
/// its least messages.
const TRIAL_S: f64 = 1.0;
/// Fewest messages of a trial.
const TRIAL_MESSAGES_MIN: u64 = 10;
/// Fewest messages of a round that the budget chooses: a median is known to some percent.
const MESSAGES_MIN: u64 = 100;
/// Most: ten of them are above p99.9.
const MESSAGES_MAX: u64 = report::advice::TAIL_MESSAGES;
/// Times that the search goes on from another way.
const STEPS_MAX: usize = 5;
/// Comparisons of steps that are usual: there and at one or two others.
const STEPS_USUAL: f64 = 2.0;
/// What a point takes besides its messages, in seconds: connecting, and the calibration around it.
const POINT_S: f64 = 0.05;

/// The share of the budget that is left for rounds in which the machine turns out to be unstable.
const AGAIN_SHARE: f64 = 0.2;

/// A search that is bound to take so many times its budget is not begun.
const OVERTIME_MAX: f64 = 2.0;

/// Where the search is.
#[derive(Debug)]
enum Stage {
    Start,
    Trial,
    Coarse,
    /// Around the last of the centres.
    Steps,
    Done,
}

/// The search, fed with the points that were measured.
pub(super) struct Search {
    ask: Ask,
    stage: Stage,
    iterations: u64,
    points: Vec<Point>,
    /// What the search has gone on from, in turn.
    centres: Vec<Way>,
    choice: Option<Choice>,
    planned: u64,
    /// The ways of the comparison that is under way.
    compared: Vec<Way>,
    /// Rounds of it that were measured again.
    again: u32,
    /// Rounds of all comparisons that were measured again.
    repeated: u32,
    /// What all comparisons are expected to take, by the trial.
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

    /// Takes a point in.
    pub(super) fn take(&mut self, point: Point) {
        self.points.push(point);
    }

    /// The points to measure next, with what they are in words; none when the search is over.
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

    /// What follows from all points.
    pub(super) fn advice(&self) -> Option<Advice> {
        let choice = self.choice.as_ref()?;
        let all = self.candidates();
        let advice = advise(&all, self.ask.goal, choice, self.ask.steps(&choice.way), self.conditions(&all))?;
        Some(Advice { repeated: self.repeated, ..advice })
    }

    /// What a way must do to be recommended; a rate that none keeps is no condition.
    fn conditions(&self, all: &[Candidate]) -> Conditions {
        self.ask.conditions().that_can_be_met(all)
    }

    /// Everything that counts, of the ways that were measured.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        candidates(&self.points, self.ask.goal, |experiment| experiment != TRIAL)
    }

    /// What was asked.
    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// All points so far.
    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Messages of a round.
    pub(super) fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The names of the comparisons so far.
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

    /// Fails where even the fewest messages, by the time between them alone, take much longer than
    /// the budget.
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
            "--rate: {MESSAGES_MIN} messages of every way in {rounds} rounds take about {least} at this rate, more than \
             {OVERTIME_MAX} times the budget of {budget}: give a larger --budget, fewer ways (-c, --operation) or -n"
        )))
    }

    /// Points of the usual comparisons.
    fn points_usual(&self, coarse: usize) -> f64 {
        f64::from(self.ask.rounds) * (coarse as f64 + STEPS_USUAL * self.around())
    }

    /// Ways around one.
    fn around(&self) -> f64 {
        self.ask.coarse().first().map_or(0, |way| self.ask.steps(way).len()) as f64
    }

    fn coarse(&mut self) -> Result<(String, Resolved), bench::Error> {
        self.stage = Stage::Coarse;
        let ways = self.ask.coarse();
        // What failed or could not be measured once takes no more of anybody's time.
        let is_possible = |way: &&Way| {
            let tried = self.points.iter().find(|point| Way::of(&point.axes).as_ref() == Some(*way));
            tried.is_none_or(|point| point.latency.is_some())
        };
        let possible: Vec<Way> = ways.iter().filter(is_possible).cloned().collect();
        let ways = if possible.is_empty() { ways } else { possible };
        let (about, resolved) = self.measure(COARSE, &ways, self.ask.rounds, self.iterations)?;
        let estimate =
            self.estimate_s.map(|s| format!("# all: about {}\n", units::format_duration(rounded(s))));
        Ok((estimate.unwrap_or_default() + &about, resolved))
    }

    /// Goes on from the best of the last comparison, or ends where that has been seen before. Where
    /// nothing of it may be recommended, as all lost messages, the one before decides again,
    /// without what is known by now.
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

    /// Ends at what the last comparison chose where its steps were measured; where there were too
    /// many, at the last centre that may be recommended.
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

    /// Rounds of the last comparison that are measured again, because the machine was unstable in
    /// some: at most as many as it had, and no more than the budget has room for.
    fn once_more(&mut self) -> Result<Option<(String, Resolved)>, bench::Error> {
        let Some(stage) = self.stages().pop() else { return Ok(None) };
        let rounds = self.ask.rounds;
        let all = self.candidates();
        // What failed once takes no more of anybody's time.
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
        let again = counted(count as usize, "round");
        Ok(Some((format!("# {stage}: {again} again, as the machine was unstable\n"), resolved)))
    }

    /// Rounds of a comparison that the budget has room for, beside the comparisons that usually
    /// follow, unless none does.
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
        let rounds = counted(rounds as usize, "round");
        let ways = counted(ways.len(), "way");
        Ok((format!("# {stage}: {ways}, {rounds} of {messages} messages\n"), resolved))
    }

    /// Messages of a round that the budget allows, by what those of the trial took.
    fn affordable(&mut self) -> u64 {
        let trial: Vec<f64> = self.points.iter().filter_map(seconds_per_message).collect();
        if trial.is_empty() {
            return MESSAGES_MIN;
        }
        // Those around the best take as long as the coarse ones do on average.
        let points = self.points_usual(trial.len());
        let one_s = trial.iter().sum::<f64>() / trial.len() as f64;
        let left_s = (1.0 - AGAIN_SHARE) * self.ask.budget.as_secs_f64() - points * POINT_S;
        let messages = ((left_s / (points * one_s)) as u64).clamp(MESSAGES_MIN, MESSAGES_MAX);
        self.estimate_s = Some(points * (POINT_S + messages as f64 * one_s));
        messages
    }
}

/// So many of something, in words.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Whole seconds: an estimate is no better.
fn rounded(seconds: f64) -> Duration {
    Duration::from_secs(seconds.ceil() as u64)
}

fn steps_name(number: usize) -> String {
    format!("steps-{number}")
}

/// Wall time of a message of the warm-up or after it.
fn seconds_per_message(point: &Point) -> Option<f64> {
    let wall_ns = point.ends.first()?.cpu?.wall_ns as f64;
    Some(wall_ns / 1e9 / arrived(point)? as f64).filter(|s| s.is_finite())
}
