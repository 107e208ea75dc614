//! The end that decides: starts an agent per rank, walks them through the points and hands each
//! result on.
//!
//! A dead, silent or babbling agent fails its point only; the agents are then killed and fresh ones
//! measure the next point. Two starts in a row that fail end the run.

use std::path::PathBuf;
use std::time::Duration;

use measure::clock::Clock;
use measure::record::{Point, Status};

use super::agent_set::AgentSet;
use super::channel::Agent;
use super::dial::Peer;
use super::frame::Greeting;
use super::interrupt::Interrupt;
use super::limits;
use super::message::{Description, Hello};
use super::point_result::PointResult;
use super::rank_set::RankSet;
use super::sink::Sink;
use super::template;
use crate::Error;
use crate::point::PointSpec;

/// How agents are started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The command of an agent, e.g. `["/usr/bin/rdmascope", "agent"]`.
    pub program: Vec<String>,
    /// What starts it, e.g. `ssh {host}`; a child of this process if absent. `ssh` gives all words
    /// to a shell.
    pub via: Option<String>,
    /// The hosts of the ranks, in rank order: they are taken in turn. Empty where there is no
    /// `via`.
    pub hosts: Vec<String>,
    /// The CPUs of the ranks, as `--cpu N`: they are taken in turn. Empty where the ranks are left
    /// to the scheduler.
    pub cpus: Vec<u32>,
    /// What else every agent is told, e.g. `--device softdev0`.
    pub arguments: Vec<String>,
    /// Rank 1, where it was started by hand; only rank 0 is then started.
    pub server: Option<Peer>,
    /// How long starting may take: the login of ssh included.
    pub start_timeout: Duration,
}

impl Launch {
    /// Children of this process that run this executable as `agent`.
    ///
    /// # Errors
    ///
    /// If the path of the executable is not known.
    pub fn local() -> Result<Self, Error> {
        let exe: PathBuf =
            std::env::current_exe().map_err(Error::system("find the executable of this program"))?;
        Ok(Self {
            program: vec![exe.to_string_lossy().into_owned(), "agent".to_owned()],
            via: None,
            hosts: Vec::new(),
            cpus: Vec::new(),
            arguments: Vec::new(),
            server: None,
            start_timeout: START_TIMEOUT,
        })
    }

    /// Host and words of the command of each rank that is to be started, where the points need so
    /// many.
    fn commands(&self, ranks: usize) -> Result<Vec<(String, Vec<String>)>, Error> {
        let command = |rank: usize| {
            let host = in_turn(&self.hosts, rank).cloned().unwrap_or_default();
            let mut program = self.program.clone();
            program.extend(self.arguments.iter().cloned());
            if let Some(cpu) = in_turn(&self.cpus, rank) {
                program.extend(["--cpu".to_owned(), cpu.to_string()]);
            }
            let words = template::command(self.via.as_deref(), &host, &program)?;
            Ok((host, words))
        };
        let ranks = if self.server.is_some() { SERVER_RANK } else { ranks };
        (0..ranks).map(command).collect()
    }
}

/// How the points of a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Points with numbers.
    pub measured: u64,
    /// Points that cannot be measured here.
    pub not_measured: u64,
    /// Points that went wrong.
    pub failed: u64,
}

/// Measures the points in order, and then those that the sink says. The calling thread must live as
/// long as the process: the kernel kills an agent when the thread that started it ends.
///
/// # Errors
///
/// If agents cannot be started, a signal arrives, the sink fails or a server is lost that was
/// started by hand. Points that fail are results, not errors.
pub fn run(
    points: &[PointSpec],
    launch: &Launch,
    interrupt: Option<&Interrupt>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let ranks = points.iter().map(PointSpec::ranks).max().unwrap_or(0);
    let commands = launch.commands(ranks as usize)?;
    let clock = Clock::monotonic();
    let mut rank_set: Option<RankSet<'_>> = None;
    let mut known: Vec<Hello> = Vec::new();
    let mut summary = Summary::default();
    let mut points = points.to_vec();
    let mut i = 0;
    while i < points.len() {
        let mut ready = match rank_set.take() {
            Some(ready) => ready,
            None => start(&commands, launch, interrupt, sink)?,
        };
        if known.is_empty() {
            known = ready.hellos().to_vec();
            settle(&mut points, &known);
            if let Some(reason) = limits::refusal_of_all(&points, &descriptions(&known)) {
                return Err(Error::NothingPossible { reason });
            }
            sink.started(&known).map_err(|cause| Error::Sink { point: points[i].id, cause })?;
        }
        let spec = &points[i];
        let id = spec.id;
        sink.point_started(spec);
        let began = clock.now();
        let result = match ready.measure(spec, sink) {
            Ok(result) => result,
            Err(err @ Error::Interrupted { .. }) => return Err(err),
            Err(err) => PointResult::failed(err.to_string()),
        };
        // Agents of which one is dead, silent or confused are killed here.
        let lost = ready.lost();
        rank_set = ready.is_fit().then_some(ready);
        let (point, samples) = result.into_point(spec, clock.ns(clock.now().since(began)));
        summary.count(&point);
        sink.point(point, &samples).map_err(|cause| Error::Sink { point: id, cause })?;
        i += 1;
        if i == points.len() {
            points = sink.more().map_err(|cause| Error::Sink { point: id, cause })?;
            settle(&mut points, &known);
            i = 0;
        }
        if let Some(lost) = lost.filter(|_| !points.is_empty()) {
            return Err(lost);
        }
    }
    if let Some(rank_set) = rank_set {
        rank_set.quit(sink);
    }
    Ok(summary)
}

fn descriptions(agents: &[Hello]) -> Vec<&Description> {
    agents.iter().map(|hello| &hello.description).collect()
}

/// Fills in what only the devices can say.
fn settle(points: &mut [PointSpec], agents: &[Hello]) {
    let descriptions = descriptions(agents);
    points.iter_mut().for_each(|spec| limits::settle(spec, &descriptions));
}

impl Summary {
    fn count(&mut self, point: &Point) {
        match point.status {
            Status::Measured => self.measured += 1,
            Status::NotMeasured { .. } => self.not_measured += 1,
            Status::Failed { .. } => self.failed += 1,
        }
    }
}

/// Starts agents, again if that fails.
fn start<'i>(
    commands: &[(String, Vec<String>)],
    launch: &Launch,
    interrupt: Option<&'i Interrupt>,
    sink: &mut dyn Sink,
) -> Result<RankSet<'i>, Error> {
    // A server serves once.
    let attempts = if launch.server.is_some() { 1 } else { START_ATTEMPTS };
    let mut attempt = 1;
    loop {
        let agents = agents(commands, launch, interrupt, sink)?;
        match AgentSet::start(agents, launch.start_timeout, interrupt, sink) {
            Ok((agents, hellos)) => {
                let ours = Greeting::ours().version;
                if let Some(theirs) = agents.versions().find(|version| *version != ours) {
                    sink.warning(&format!("an agent is version {theirs}, this program is {ours}"));
                }
                return Ok(RankSet::new(agents, hellos));
            }
            // What is not rdmascope, or another one, or has no such device, is so the second time
            // too.
            Err(err @ (Error::Interrupted { .. } | Error::BadAgent { .. } | Error::NotDescribed { .. })) => {
                return Err(err);
            }
            Err(err) if attempt == attempts => return Err(err),
            Err(err) => sink.warning(&format!("{err}; trying once more")),
        }
        attempt += 1;
    }
}

/// The server first: there may be none to start an agent for.
fn agents(
    commands: &[(String, Vec<String>)],
    launch: &Launch,
    interrupt: Option<&Interrupt>,
    sink: &mut dyn Sink,
) -> Result<Vec<Agent>, Error> {
    let server = launch.server.as_ref().map(|peer| peer.dial(interrupt, sink)).transpose()?;
    let started = (0u32..).zip(commands).map(|(rank, (host, words))| Agent::start(rank, host, words));
    let mut agents = started.collect::<Result<Vec<_>, _>>()?;
    agents.extend(server.map(|connection| Agent::new(SERVER_RANK as u32, Box::new(connection))));
    Ok(agents)
}

/// What a rank takes of a list that ranks take in turn.
fn in_turn<T>(list: &[T], rank: usize) -> Option<&T> {
    list.get(rank % list.len().max(1))
}

/// The rank that a server has.
const SERVER_RANK: usize = 1;
const START_ATTEMPTS: u32 = 2;
const START_TIMEOUT: Duration = Duration::from_secs(30);
