//! A fleet: agents of many hosts, kept for all measurements, of which groups measure points at the
//! same time.
//!
//! # Invariants
//!
//! * A member that fails costs only the points of its groups. It is started anew before its next
//!   point; if that fails, or if it fails with one partner after the other, the fleet goes on
//!   without it.
//! * Groups that measure at the same time do the same step at the same time: no group still
//!   connects while another one already sends.

mod failures;

use std::time::Duration;

use measure::clock::{Clock, Deadline, Ticks};
use measure::record::{Point, Status};

use self::failures::Failures;

use super::crowd::{Asked, Crowd};
use super::frame::Greeting;
use super::interrupt::Interrupt;
use super::limits;
use super::message::{Description, Hello, Neighbour, Outcome, Reply, Request};
use super::point_result::PointResult;
use super::rank_set::cause;
use super::sink::{KeptSamples, Sink};
use crate::Error;
use crate::point::PointSpec;

/// How one agent of a fleet is started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// Its name, in errors: the host, and the device where a host has several.
    pub name: String,
    /// The command that starts the agent, with all of its words.
    pub words: Vec<String>,
}

/// Members that measure a point together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The members, by their places in the fleet, in rank order.
    pub members: Vec<usize>,
    /// What they measure.
    pub spec: PointSpec,
}

/// The agents of a fleet. Dropping it kills them.
pub struct Fleet<'i> {
    members: Vec<Member>,
    seats: Vec<Seat>,
    crowd: Crowd<'i>,
    options: FleetOptions,
    /// The CPUs of the one host of all members; empty where the ranks are not pinned.
    cpus: Vec<u32>,
    failures: Failures,
    clock: Clock,
}

/// How the agents of a fleet are started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FleetOptions {
    /// The most agents that start at the same time.
    pub at_once: usize,
    /// How long an agent may take to start, including the login of ssh.
    pub start_timeout: Duration,
}

/// The state of a member.
enum Seat {
    /// It has no agent, and gets one before its next point.
    Away,
    /// Its agent is ready.
    Here {
        hello: Box<Hello>,
        /// The rank that the agent takes itself for.
        rank: u32,
        cpu: Option<u32>,
    },
    /// The fleet goes on without it.
    Left { reason: String },
}

/// A group on its way through the steps of a point.
struct Walk<'a> {
    group: &'a Group,
    began: Ticks,
    ended: Option<PointResult>,
}

impl<'i> Fleet<'i> {
    /// Prepares a fleet. No agent is started yet.
    pub fn new(members: Vec<Member>, options: FleetOptions, interrupt: Option<&'i Interrupt>) -> Self {
        let seats = members.iter().map(|_| Seat::Away).collect();
        let crowd = Crowd::new(members.len(), interrupt);
        let failures = Failures::default();
        Self { members, seats, crowd, options, cpus: Vec::new(), failures, clock: Clock::monotonic() }
    }

    /// Pins the ranks that measure at the same time to these CPUs in turn. All members have to be
    /// on the host of the CPUs.
    pub fn pin(&mut self, cpus: Vec<u32>) {
        self.cpus = cpus;
    }

    /// Returns what a member said when its agent started.
    ///
    /// # Errors
    ///
    /// Why the fleet goes on without it.
    pub fn hello(&self, member: usize) -> Result<&Hello, &str> {
        match &self.seats[member] {
            Seat::Here { hello, .. } => Ok(hello),
            Seat::Left { reason } => Err(reason),
            Seat::Away => Err("its agent has ended"),
        }
    }

    /// Returns why the fleet goes on without a member, if it does.
    pub fn left(&self, member: usize) -> Option<&str> {
        match self.seats.get(member)? {
            Seat::Left { reason } => Some(reason),
            Seat::Here { .. } | Seat::Away => None,
        }
    }

    /// Leaves a member out, with a reason.
    pub fn leave(&mut self, member: usize, reason: String) {
        self.crowd.drop(member);
        self.seats[member] = Seat::Left { reason };
    }

    /// Ends the agents of members, so that their next points get new ones.
    pub fn end(&mut self, members: &[usize], sink: &mut dyn Sink) {
        self.crowd.quit(members.iter().copied(), sink);
        for member in members {
            if matches!(self.seats[*member], Seat::Here { .. }) {
                self.seats[*member] = Seat::Away;
            }
        }
    }

    /// Waits until the deadline has passed.
    ///
    /// # Errors
    ///
    /// If a signal arrives.
    pub fn pause(&self, until: Deadline, sink: &mut dyn Sink) -> Result<(), Error> {
        self.crowd.pause(until, sink)
    }

    /// Starts the agents of members that have none. Members that do not start are left out.
    ///
    /// # Errors
    ///
    /// If a signal arrives.
    pub fn start(
        &mut self,
        members: impl IntoIterator<Item = usize>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let away = members.into_iter().filter(|member| matches!(self.seats[*member], Seat::Away));
        let asked: Vec<Asked> = away
            .map(|of| Asked {
                of,
                group: None,
                request: Request::Hello { rank: rank_of(of), ranks: rank_of(self.members.len()) },
                doing: "starting".to_owned(),
            })
            .collect();
        let FleetOptions { at_once, start_timeout } = self.options;
        let members = &self.members;
        let begin = |crowd: &mut Crowd<'i>, of: usize| crowd.start(of, &members[of].name, &members[of].words);
        let answers = self.crowd.ask(&asked, start_timeout, at_once, begin, sink)?;
        for (Asked { of, .. }, answer) in asked.iter().zip(answers) {
            self.seats[*of] = match self.seated(*of, answer) {
                Ok(hello) => Seat::Here { hello, rank: rank_of(*of), cpu: None },
                Err(reason) => {
                    self.crowd.drop(*of);
                    Seat::Left { reason }
                }
            };
        }
        Ok(())
    }

    /// Returns what an agent said of itself, or why it cannot be used.
    fn seated(&self, of: usize, answer: Result<Reply, Error>) -> Result<Box<Hello>, String> {
        let ours = Greeting::ours().version;
        match answer {
            Err(error) => Err(error.to_string()),
            Ok(Reply::Hello(hello)) => match self.crowd.version(of).filter(|theirs| *theirs != ours) {
                Some(theirs) => Err(format!(
                    "its rdmascope is version {theirs}, and this is {ours}: install the same version"
                )),
                None => Ok(Box::new(hello.of_rank(rank_of(of)))),
            },
            Ok(Reply::NotMeasured { reason } | Reply::Failed { error: reason }) => Err(reason),
            Ok(other) => Err(self.out_of_turn(of, &other, "starting").to_string()),
        }
    }

    /// Measures the points of all groups at the same time. No member is in two groups. The points
    /// are returned in the order of the groups.
    ///
    /// # Errors
    ///
    /// If a signal arrives. A point that fails is a result.
    pub fn measure(
        &mut self,
        groups: &[Group],
        sink: &mut dyn Sink,
    ) -> Result<Vec<(Point, Vec<KeptSamples>)>, Error> {
        let all: Vec<usize> = groups.iter().flat_map(|group| group.members.iter().copied()).collect();
        self.start(all.iter().copied(), sink)?;
        let mut groups = groups.to_vec();
        for group in &mut groups {
            let descriptions = self.descriptions(&group.members);
            descriptions.into_iter().for_each(|known| limits::settle(&mut group.spec, &known));
        }
        let began = self.clock.now();
        let mut walks: Vec<Walk> =
            groups.iter().map(|group| Walk { group, began, ended: self.refused(group) }).collect();
        self.take_ranks(&mut walks, sink)?;
        let prepare = |walk: &Walk, _| Request::Prepare(Box::new(walk.group.spec.clone()));
        let prepared = self.step(&mut walks, ("preparing", Alone), prepare, sink, |reply| match reply {
            Reply::Prepared(prepared) => Ok(prepared),
            other => Err(other),
        })?;
        let told: Vec<_> = prepared.iter().map(|ranks| Neighbour::told(ranks)).collect();
        let connect =
            |_: &Walk, (index, rank): (usize, usize)| Request::Connect { ranks: told[index][rank].clone() };
        self.step(&mut walks, ("connecting", Together), connect, sink, |reply| match reply {
            Reply::Connected => Ok(()),
            other => Err(other),
        })?;
        let run = |_: &Walk, _| Request::Run;
        let outcomes = self.step(&mut walks, ("measuring", Together), run, sink, |reply| match reply {
            Reply::Done(outcome) => Ok(*outcome),
            other => Err(other),
        })?;
        let ended = self.clock.now();
        self.reset(&all, sink)?;
        let walked = walks.into_iter().zip(outcomes);
        let points: Vec<_> = walked.map(|(walk, outcomes)| walk.point(outcomes, self.clock, ended)).collect();
        for (group, (point, _)) in groups.iter().zip(&points) {
            self.failures.note(&group.members, &point.experiment, &point.status);
        }
        for (member, reason) in self.failures.hopeless() {
            self.leave(member, reason);
        }
        Ok(points)
    }

    /// Returns why a point cannot be measured by members, if that is known before it is tried.
    pub fn refusal(&self, group: &Group) -> Option<String> {
        match self.refused(group)?.status {
            Status::NotMeasured { reason } => Some(reason),
            Status::Failed { error } => Some(error),
            Status::Measured => None,
        }
    }

    /// Returns the result of a group that cannot measure its point, if so.
    fn refused(&self, group: &Group) -> Option<PointResult> {
        let missing = group.members.iter().find_map(|member| {
            let reason = self.hello(*member).err()?;
            Some(format!("{}: {reason}", self.members[*member].name))
        });
        let reason = missing.or_else(|| {
            let descriptions = self.descriptions(&group.members)?;
            limits::refusal(&group.spec, &descriptions)
        })?;
        Some(PointResult::without_numbers(Status::NotMeasured { reason }))
    }

    /// Returns the descriptions of members; none if a member has no agent.
    fn descriptions(&self, members: &[usize]) -> Option<Vec<&Description>> {
        members.iter().map(|member| Some(&self.hello(*member).ok()?.description)).collect()
    }

    /// Tells each agent its rank in its group and its CPU, where these have changed.
    fn take_ranks(&mut self, walks: &mut [Walk], sink: &mut dyn Sink) -> Result<(), Error> {
        let mut asked = Vec::new();
        let ranks = walks.iter().filter(|walk| walk.ended.is_none()).flat_map(Walk::ranks);
        for (turn, (of, new)) in ranks.enumerate() {
            let new_cpu = self.cpus.get(turn % self.cpus.len().max(1)).copied();
            if let Seat::Here { rank, cpu, .. } = &mut self.seats[of]
                && (*rank, *cpu) != (new, new_cpu)
            {
                *rank = new;
                *cpu = new_cpu;
                let doing = "taking its rank".to_owned();
                let request = Request::Become { rank: new, cpu: new_cpu };
                asked.push(Asked { of, group: None, request, doing });
            }
        }
        self.idle(walks, asked, sink)
    }

    /// Takes down the points of members.
    fn reset(&mut self, members: &[usize], sink: &mut dyn Sink) -> Result<(), Error> {
        let here = members.iter().filter(|member| matches!(self.seats[**member], Seat::Here { .. }));
        let doing = "cleaning up after a point";
        let asked =
            here.map(|of| Asked { of: *of, group: None, request: Request::Reset, doing: doing.to_owned() });
        self.idle(&mut [], asked.collect(), sink)
    }

    /// Asks for an answer of [`Reply::Idle`]. Groups of agents that answer anything else have
    /// failed.
    fn idle(&mut self, walks: &mut [Walk], asked: Vec<Asked>, sink: &mut dyn Sink) -> Result<(), Error> {
        let answers = self.crowd.ask(&asked, IDLE_TIMEOUT, usize::MAX, |_, _| Ok(()), sink)?;
        for (Asked { of, doing, .. }, answer) in asked.iter().zip(answers) {
            let error = match answer {
                Ok(Reply::Idle) => continue,
                Ok(other) => self.out_of_turn(*of, &other, doing),
                Err(error) => error,
            };
            self.lose(*of);
            if let Some(walk) = walks.iter_mut().find(|walk| walk.group.members.contains(of)) {
                walk.ended = Some(PointResult::failed(error.to_string()));
            }
        }
        Ok(())
    }

    /// Does one step in every group that has not ended. Returns the values that `read` extracts
    /// from the replies: for each group in rank order, or nothing where it has ended.
    fn step<T>(
        &mut self,
        walks: &mut [Walk],
        (doing, coupling): (&str, Coupled),
        request: impl Fn(&Walk, (usize, usize)) -> Request,
        sink: &mut dyn Sink,
        read: impl Fn(Reply) -> Result<T, Reply>,
    ) -> Result<Vec<Vec<T>>, Error> {
        let mut asked = Vec::new();
        let mut timeout = Duration::ZERO;
        for (index, walk) in walks.iter().enumerate().filter(|(_, walk)| walk.ended.is_none()) {
            let PointSpec { id, timeout_s, .. } = walk.group.spec;
            timeout = timeout.max(Duration::try_from_secs_f64(timeout_s).unwrap_or(Duration::MAX));
            asked.extend(walk.group.members.iter().enumerate().map(|(rank, of)| Asked {
                of: *of,
                group: (coupling == Together).then_some(index),
                request: request(walk, (index, rank)),
                doing: format!("{doing} point {id}"),
            }));
        }
        let runs = matches!(asked.first(), Some(Asked { request: Request::Run, .. }));
        // A rank that waits in vain notices the same limit, and its error says what it waited for.
        let timeout = timeout.saturating_add(GRACE);
        let mut answers = self.crowd.ask(&asked, timeout, usize::MAX, |_, _| Ok(()), sink)?.into_iter();
        let mut all = Vec::new();
        for walk in walks {
            let mut values = Vec::new();
            if walk.ended.is_none() {
                for (rank, of) in walk.group.members.iter().enumerate() {
                    let answer = answers.next().expect("each rank was asked");
                    let answer = answer.map(&read);
                    let failure = match answer {
                        Ok(Ok(value)) => {
                            values.push(value);
                            continue;
                        }
                        Ok(Err(Reply::NotMeasured { reason })) => Status::NotMeasured { reason },
                        Ok(Err(Reply::Failed { error })) => {
                            let name = &self.members[*of].name;
                            Status::Failed { error: format!("rank {rank} ({name}): {error}") }
                        }
                        Ok(Err(other)) => {
                            let error = self.out_of_turn(*of, &other, doing).to_string();
                            self.lose(*of);
                            Status::Failed { error }
                        }
                        Err(error) => {
                            self.lose(*of);
                            Status::Failed { error: error.to_string() }
                        }
                    };
                    walk.end(failure, runs);
                }
            }
            all.push(values);
        }
        Ok(all)
    }

    /// Takes the agent from a member, which gets a new one before its next point.
    fn lose(&mut self, member: usize) {
        self.crowd.drop(member);
        self.seats[member] = Seat::Away;
    }

    fn out_of_turn(&self, of: usize, reply: &Reply, doing: &str) -> Error {
        let who = format!("the agent of {}", self.members[of].name);
        Error::OutOfTurn { who, reply: reply.name().to_owned(), doing: doing.to_owned() }
    }

    /// Ends all agents.
    pub fn quit(mut self, sink: &mut dyn Sink) {
        self.crowd.quit(0..self.members.len(), sink);
    }
}

impl Walk<'_> {
    /// The members of the group with their ranks.
    fn ranks(&self) -> impl Iterator<Item = (usize, u32)> {
        self.group.members.iter().copied().zip(0u32..)
    }

    /// Ends the point without numbers. `runs` says whether it was being measured.
    fn end(&mut self, status: Status, runs: bool) {
        let known = self.ended.take().map(|known| known.status);
        self.ended = Some(PointResult::without_numbers(cause(known, status, runs)));
    }

    /// Returns the record of the point.
    fn point(self, outcomes: Vec<Outcome>, clock: Clock, ended: Ticks) -> (Point, Vec<KeptSamples>) {
        let measured = || PointResult { outcomes, ..PointResult::without_numbers(Status::Measured) };
        let result = self.ended.unwrap_or_else(measured);
        result.into_point(&self.group.spec, clock.ns(ended.since(self.began)))
    }
}

/// Whether the failure of a rank leaves the other ranks of its group waiting for it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Coupled {
    Alone,
    Together,
}
use Coupled::{Alone, Together};

fn rank_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The time after a point's time limit in which its ranks report that it is over.
const GRACE: Duration = Duration::from_secs(2);
/// The time to free the resources of a point.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
