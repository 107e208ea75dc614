//! The measurements of a fleet, as the procedure asks for them: from the record where it has them,
//! else from the agents.

use std::collections::{BTreeMap, BTreeSet};

use bench::Error;
use bench::point::PointSpec;
use bench::process::fleet::{Fleet, Group};
use bench::process::sink::Sink;
use measure::clock::Deadline;
use measure::record::{self, InFleet, Point, Run, Status};
use measure::store::RunWriter;
use report::fleet::{Replay, Step};
use verdict::fleet::{Measured, Probe, Purpose, Round, TimeLeft};

use super::time::Time;
use super::voice::Voice;

/// The measurements of a fleet.
pub(super) struct Measuring<'i> {
    pub(super) agents: Fleet<'i>,
    /// The number of members, each of which has the agent of its index.
    pub(super) members: usize,
    pub(super) replay: Replay,
    pub(super) writer: RunWriter,
    pub(super) run: Run,
    /// The point of each quantity.
    pub(super) specs: BTreeMap<&'static str, PointSpec>,
    pub(super) voice: Voice,
    /// The reasons of failed points that were said.
    pub(super) failures: BTreeSet<String>,
    /// The number of the next point.
    pub(super) next_id: u64,
    /// Members whose agents are started again before the next measurement.
    pub(super) visited: Vec<usize>,
    pub(super) time: Time,
    /// When the next visit may begin. What an earlier process measured is longer ago.
    pub(super) rest: Deadline,
}

impl Measuring<'_> {
    /// Measures the points of a step at the same time, and keeps them.
    fn measure(&mut self, step: &Step, round: u64) -> anyhow::Result<()> {
        let Some(spec) = self.specs.get(step.row.name) else { return Ok(()) };
        let mut groups = Vec::new();
        let mut further = self.members..;
        let mut busy = BTreeSet::new();
        let has_left = |member: &usize| self.agents.left(*member).is_some();
        let pairs = step.members.iter().filter(|members| !members.iter().any(has_left));
        let pairs: Vec<[usize; 2]> = pairs.copied().collect();
        for (members, id) in pairs.iter().zip(self.next_id..) {
            // In a round of a fan, all pairs share its centre, which has an agent for each of them.
            let agent = |member: &usize| match busy.insert(*member) {
                true => *member,
                false => further.next().unwrap_or(*member),
            };
            let agents = members.iter().map(agent).collect();
            groups.push(Group { members: agents, spec: PointSpec { id, ..spec.clone() } });
        }
        self.next_id += groups.len() as u64;
        let measured = self.agents.measure(&groups, &mut self.voice)?;
        let mut points: Vec<Point> = measured.into_iter().map(|(point, _)| point).collect();
        for (pair, point) in pairs.iter().zip(&mut points) {
            let members = pair.iter().map(|member| u32::try_from(*member).unwrap_or(u32::MAX));
            point.fleet = Some(InFleet { round, members: members.collect() });
            point.axes.insert(PAIR.to_owned(), self.names(pair).into());
        }
        self.writer.append_all(&points)?;
        points.iter().for_each(|point| self.note_failure(point));
        points.iter().for_each(|point| self.replay.add(point));
        self.voice.ended(points.len());
        self.note_left(pairs.into_iter().flatten())?;
        Ok(())
    }

    /// Says why a point has failed, for the first few reasons.
    fn note_failure(&mut self, point: &Point) {
        let Status::Failed { error } = &point.status else { return };
        if self.failures.len() < FAILURES_MAX && self.failures.insert(error.clone()) {
            let pair = point.axes.get(PAIR).and_then(|pair| pair.as_str()).unwrap_or_default();
            self.voice.warning(&format!("{pair}: {}: {error}", point.experiment));
        }
    }

    /// The names of members, as the path of messages from the first to the second.
    fn names(&self, members: &[usize]) -> String {
        let known =
            self.run.fleet.iter().flat_map(|fleet| members.iter().map(|member| &fleet.members[*member].name));
        known.map(String::as_str).collect::<Vec<_>>().join(" -> ")
    }

    /// Adds the members to the record that the fleet goes on without.
    pub(super) fn note_left(&mut self, members: impl Iterator<Item = usize>) -> Result<(), Error> {
        let Some(fleet) = &mut self.run.fleet else { return Ok(()) };
        let mut is_new = false;
        for member in members {
            let index = u32::try_from(member).unwrap_or(u32::MAX);
            if let Some(reason) = self.agents.left(member)
                && !fleet.left.contains_key(&index)
            {
                let name = &fleet.members[member].name;
                self.voice.warning(&format!("{name} is left out: {reason}"));
                fleet.left.insert(index, reason.to_owned());
                is_new = true;
            }
        }
        self.replay.leaves_out(fleet);
        match is_new {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Adds to the record how far time went.
    fn note_time(&mut self, note: impl FnOnce(&mut record::Fleet)) {
        let Some(fleet) = &mut self.run.fleet else { return };
        note(fleet);
        self.replay.ends_in_time(fleet);
        // Without it in the record, a resumed fleet goes by the time that it has then.
        if let Err(error) = self.write() {
            self.voice.warning(&error.to_string());
        }
    }

    /// Writes what is known of the run.
    pub(super) fn write(&self) -> Result<(), Error> {
        let kept = |cause: measure::Error| Error::Sink { point: self.next_id, cause: cause.into() };
        self.writer.update(&self.run).map_err(kept)
    }
}

impl Probe for Measuring<'_> {
    type Error = anyhow::Error;

    fn round(&mut self, round: &Round) -> anyhow::Result<Vec<Measured>> {
        let lacking = self.replay.lacks(round);
        if !lacking.is_empty() {
            let visited = std::mem::take(&mut self.visited);
            self.voice.begins(phase(round.purpose));
            if !visited.is_empty() {
                self.agents.end(&visited, &mut self.voice);
                self.agents.pause(self.rest, &mut self.voice)?;
                self.agents.start(visited.iter().copied(), &mut self.voice)?;
                self.note_left(visited.into_iter())?;
            }
        }
        let number = self.replay.next();
        for step in &lacking {
            self.measure(step, number)?;
            self.rest = self.time.next_visit();
        }
        Ok(self.replay.take(round))
    }

    fn visit(&mut self, hosts: &[usize]) -> anyhow::Result<()> {
        // Only before something is measured: the record of an earlier process may have this visit.
        self.visited = hosts.to_vec();
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        if let Some(went_on) = self.replay.went_on() {
            return went_on;
        }
        let is_over = self.time.is_schedule_over();
        if is_over {
            let rounds = u32::try_from(self.replay.next()).ok();
            self.note_time(|fleet| fleet.rounds_in_time = rounds);
        }
        !is_over
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        let rounds = self.replay.next();
        if self.replay.time_left().is_none()
            && let Some(left) = self.time.left(rounds)
        {
            self.note_time(|fleet| fleet.time_left = Some(left));
        }
        self.replay.time_left()
    }
}

/// The axis of a point that names its members, in rank order.
const PAIR: &str = "pair";
/// The reasons of failed points that are said.
const FAILURES_MAX: usize = 3;

/// What a round is for, in words for the progress.
fn phase(purpose: Purpose) -> String {
    match purpose {
        Purpose::Screening { pass, round } => format!("pass {}, round {}", pass + 1, round + 1),
        Purpose::Again { .. } => "suspect pairs again".to_owned(),
        Purpose::Confirmation { visit } => format!("suspects in isolation, visit {}", visit + 1),
        Purpose::UnderLoad { .. } => "suspects under load again".to_owned(),
    }
}
