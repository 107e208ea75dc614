//! The agents that measure a point: the running ones, or new ones, where the point needs ranks that
//! are started differently.

use std::collections::BTreeMap;

use measure::record::{Launch as Launched, LaunchedRank, Status};

use super::agent_set::AgentSet;
use super::channel::Agent;
use super::frame::Greeting;
use super::interrupt::Interrupt;
use super::launch::{Launch, NOT_BY_COMMANDS, Points, SERVER_RANK};
use super::message::Hello;
use super::rank_set::RankSet;
use super::sink::Sink;
use crate::Error;
use crate::point::{PointSpec, World};

/// How the agents of a point are started.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Start {
    /// By a command for each rank, or by hand for a server. The number is that of the launch, where
    /// the experiment asks for several.
    Commands(Option<u32>),
    /// By a launcher of MPI.
    Launcher(World),
}

/// Running agents, all started in the same way.
pub(super) struct Started<'i> {
    start: Start,
    pub(super) rank_set: RankSet<'i>,
    /// Whether the agents have measured nothing yet.
    pub(super) is_new: bool,
    /// The launch in the record; absent where the record does not mention it.
    pub(super) launch: Option<Launched>,
}

/// Why the agents that a point needs cannot be started.
pub(super) struct Refused {
    world: World,
    status: Status,
    error: Option<Error>,
}

/// A launch that failed.
struct Refusal {
    world: World,
    /// The experiment whose launch it was.
    experiment: String,
    /// Whether every launch of such ranks fails.
    is_lasting: bool,
    status: Status,
}

impl Refusal {
    /// Whether this refusal applies to such ranks of this experiment. A failed launch may succeed
    /// next time, or in another experiment. Ranks without a launch number are the same for all
    /// experiments. A lasting refusal applies to all launches.
    fn is_of(&self, world: &World, experiment: &str) -> bool {
        let is_same_launch =
            world.launch == self.world.launch && (world.launch.is_none() || experiment == self.experiment);
        let with_launch = World { launch: world.launch, ..self.world.clone() };
        (self.is_lasting || is_same_launch) && with_launch == *world
    }
}

/// The sets of agents of a run, of which at most one runs at a time.
pub(super) struct RankSets<'a, 'i> {
    launch: &'a Launch,
    interrupt: Option<&'i Interrupt>,
    /// The host and command of each rank that a command starts.
    commands: Vec<(String, Vec<String>)>,
    /// The points whose ranks the launcher starts.
    points: Points,
    started: Option<Started<'i>>,
    refused: Vec<Refusal>,
    /// The number of launches in the record.
    launches: u32,
}

impl<'a, 'i> RankSets<'a, 'i> {
    /// Prepares the commands of all ranks. No agent is started yet.
    ///
    /// # Errors
    /// [`Error::BadTemplate`].
    pub(super) fn new(
        launch: &'a Launch,
        points: &[PointSpec],
        interrupt: Option<&'i Interrupt>,
    ) -> Result<Self, Error> {
        let others = points.iter().filter(|spec| !spec.message.endpoint.is_mpi());
        let ranks = others.map(PointSpec::ranks).max().unwrap_or(0);
        if launch.server.is_some() && points.iter().any(|spec| spec.launch.is_some()) {
            return Err(Error::NothingPossible { reason: ONE_SERVER.to_owned() });
        }
        let commands = launch.commands(ranks as usize)?;
        let points = launch.launcher.as_ref().map_or(Points::OfMpi, |launcher| launcher.points);
        let launches = launch.launches_before;
        Ok(Self { launch, interrupt, commands, points, started: None, refused: Vec::new(), launches })
    }

    /// Returns the agents for a point, and starts them if necessary. Where a launcher cannot start
    /// them, returns the reason.
    ///
    /// # Errors
    /// If commands cannot start the agents, or a signal has arrived.
    pub(super) fn ready(
        &mut self,
        spec: &PointSpec,
        sink: &mut dyn Sink,
    ) -> Result<Result<Started<'i>, Refused>, Error> {
        let start = self.start_of(spec);
        if let Some(other) = self.started.take_if(|started| started.start != start) {
            other.rank_set.quit(sink);
        }
        if let Some(started) = self.started.take() {
            return Ok(Ok(started));
        }
        let world = match start {
            Start::Commands(launch) => return self.by_commands(launch, sink).map(Ok),
            Start::Launcher(world) => world,
        };
        if let Some(status) = self.refusal(&world, spec) {
            return Ok(Err(Refused { world, status: status.clone(), error: None }));
        }
        match self.by_launcher(&world, sink) {
            Ok(started) => Ok(Ok(started)),
            Err(error @ Error::Interrupted { .. }) => Err(error),
            Err(error) if !spec.message.endpoint.is_mpi() && self.points == Points::AllIfPossible => {
                sink.warning(&format!(
                    "{error}; ranks of points that do not use MPI start without a launcher"
                ));
                self.points = Points::OfMpi;
                self.by_commands(spec.launch, sink).map(Ok)
            }
            Err(error) => {
                let words = error.to_string();
                // A launcher that the user has named must work. The launcher of a plan may be
                // missing on this host, or may not start so many ranks.
                let status = match error.is_limit() && self.points != Points::All {
                    true => Status::NotMeasured { reason: words },
                    false => Status::Failed { error: words },
                };
                self.refused.push(Refusal {
                    world: world.clone(),
                    experiment: spec.experiment.clone(),
                    is_lasting: error.is_lasting(),
                    status: status.clone(),
                });
                Ok(Err(Refused { world, status, error: Some(error) }))
            }
        }
    }

    /// Keeps the agents of a finished point for the next one, if they can measure it.
    pub(super) fn keep(&mut self, started: Option<Started<'i>>) {
        let fit = started.filter(|started| started.rank_set.is_fit());
        self.started = fit.map(|started| Started { is_new: false, ..started });
    }

    /// Whether the agents of all these points are refused.
    pub(super) fn are_refused(&self, points: &[PointSpec]) -> bool {
        points.iter().all(|spec| match self.start_of(spec) {
            Start::Commands(_) => false,
            Start::Launcher(world) => self.refusal(&world, spec).is_some(),
        })
    }

    /// Ends the running agents.
    pub(super) fn quit(self, sink: &mut dyn Sink) {
        if let Some(started) = self.started {
            started.rank_set.quit(sink);
        }
    }

    /// Returns why such ranks are refused, if so: this launch failed, or every launch fails.
    fn refusal(&self, world: &World, spec: &PointSpec) -> Option<&Status> {
        let refusal = self.refused.iter().find(|refusal| refusal.is_of(world, &spec.experiment))?;
        Some(&refusal.status)
    }

    /// Returns the launch record of ranks that have just started.
    fn launched(&mut self, hellos: &[Hello]) -> Launched {
        let number = self.launches;
        self.launches += 1;
        let environments = || hellos.iter().map(|hello| (hello.pid, &hello.description.environment));
        let facts = environments().find_map(|(_, environment)| environment.facts.get("mpi"));
        let ranks = environments().map(|(pid, environment)| LaunchedRank {
            hostname: environment.hostname.clone(),
            pid,
            pinned_cpus: environment.pinned_cpus.clone(),
        });
        Launched { number, facts: facts.cloned().unwrap_or_default(), ranks: ranks.collect() }
    }

    /// Returns how the agents of a point are started. A point that does not use MPI takes any ranks
    /// of the launcher that already run.
    fn start_of(&self, spec: &PointSpec) -> Start {
        if let Some(world) = spec.world() {
            return Start::Launcher(world);
        }
        if spec.application.is_some() {
            // An application has its own launcher, which must not run below another launcher.
            return Start::Commands(spec.launch);
        }
        let world = World::of(spec.ranks(), &spec.axes, None, spec.launch);
        match &self.started {
            _ if self.points == Points::OfMpi => Start::Commands(spec.launch),
            Some(Started { start: Start::Launcher(other), .. })
                if other.ranks >= world.ranks && other.launch == world.launch =>
            {
                Start::Launcher(other.clone())
            }
            _ => Start::Launcher(world),
        }
    }

    fn by_launcher(&mut self, world: &World, sink: &mut dyn Sink) -> Result<Started<'i>, Error> {
        let launcher = self
            .launch
            .launcher
            .as_ref()
            .ok_or_else(|| Error::Impossible { reason: format!("--via {NOT_BY_COMMANDS}") })?;
        let mut attempt = 1;
        loop {
            let started = launcher.start(world, self.interrupt, sink);
            let hello = |(agents, facts): (_, BTreeMap<_, _>)| {
                let (agents, mut hellos) = AgentSet::start(agents, launcher.timeout, self.interrupt, sink)?;
                for hello in &mut hellos {
                    let known = hello.description.environment.facts.entry("mpi".to_owned()).or_default();
                    known.extend(facts.clone());
                }
                Ok((agents, hellos))
            };
            match started.and_then(hello) {
                Ok((agents, hellos)) => {
                    let launch = Some(self.launched(&hellos));
                    let rank_set = RankSet::new(agents, hellos);
                    let start = Start::Launcher(world.clone());
                    return Ok(Started { start, rank_set, is_new: true, launch });
                }
                // A rank was killed, which may not happen again.
                Err(error @ Error::AgentEnded { .. }) if attempt < START_ATTEMPTS => {
                    sink.warning(&format!("{error}; trying once more"));
                }
                Err(error) => return Err(error),
            }
            attempt += 1;
        }
    }

    /// Starts agents by their commands, and tries once more if that fails.
    fn by_commands(&mut self, launch: Option<u32>, sink: &mut dyn Sink) -> Result<Started<'i>, Error> {
        // A server serves once.
        let attempts = if self.launch.server.is_some() { 1 } else { START_ATTEMPTS };
        let mut attempt = 1;
        loop {
            let agents = self.agents(sink)?;
            match AgentSet::start(agents, self.launch.start_timeout, self.interrupt, sink) {
                Ok((agents, hellos)) => {
                    let ours = Greeting::ours().version;
                    if let Some(theirs) = agents.versions().find(|version| *version != ours) {
                        sink.warning(&format!(
                            "an agent is version {theirs}, this program is version {ours}"
                        ));
                    }
                    let launched = launch.map(|_| self.launched(&hellos));
                    let rank_set = RankSet::new(agents, hellos);
                    let start = Start::Commands(launch);
                    return Ok(Started { start, rank_set, is_new: true, launch: launched });
                }
                // Another program, another version or a missing device would be the same at the
                // second attempt.
                Err(
                    err @ (Error::Interrupted { .. } | Error::BadAgent { .. } | Error::NotDescribed { .. }),
                ) => {
                    return Err(err);
                }
                Err(err) if attempt == attempts => return Err(err),
                Err(err) => sink.warning(&format!("{err}; trying once more")),
            }
            attempt += 1;
        }
    }

    /// Connects to the server, if there is one, and then starts the agents: without the server
    /// there is no need for them.
    fn agents(&self, sink: &mut dyn Sink) -> Result<Vec<Agent>, Error> {
        let server = self.launch.server.as_ref().map(|peer| peer.dial(self.interrupt, sink)).transpose()?;
        let ranks = (0u32..).zip(&self.commands);
        let started = ranks.map(|(rank, (host, words))| Agent::start(rank, host, words));
        let mut agents = started.collect::<Result<Vec<_>, _>>()?;
        agents.extend(server.map(|connection| Agent::new(SERVER_RANK as u32, Box::new(connection))));
        Ok(agents)
    }
}

impl Refused {
    /// Returns the status of the point.
    pub(super) fn status(&self) -> Status {
        self.status.clone()
    }

    /// Returns the reason as an error.
    pub(super) fn take(&mut self) -> Error {
        let ranks = self.world.ranks;
        let again = || Error::Impossible { reason: format!("no launcher starts {ranks} ranks") };
        self.error.take().unwrap_or_else(again)
    }
}

const START_ATTEMPTS: u32 = 2;
const ONE_SERVER: &str = "a server that was started by hand serves one launch, and the plan asks for several: leave launches \
                          out, or start both ranks from here (--local, --via or --mpi)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{MpiMap, MpiTransport};

    #[test]
    fn a_launch_that_fails_is_no_reason_against_others() {
        let world = |ranks, launch| World {
            ranks,
            map: MpiMap::Launcher,
            transport: MpiTransport::Default,
            link: None,
            launch,
        };
        let refusal = |launch, is_lasting| Refusal {
            world: world(2, launch),
            experiment: "a".to_owned(),
            is_lasting,
            status: Status::Failed { error: String::new() },
        };
        let once = refusal(Some(0), false);
        assert!(once.is_of(&world(2, Some(0)), "a"));
        assert!(!once.is_of(&world(2, Some(0)), "b"), "a launch of another experiment");
        assert!(!once.is_of(&world(2, Some(1)), "a") && !once.is_of(&world(2, None), "a"));
        let without_launches = refusal(None, false);
        assert!(!without_launches.is_of(&world(2, Some(0)), "b"), "a launch of its own");
        assert!(without_launches.is_of(&world(2, None), "b"), "the same ranks");
        let lasting = refusal(Some(0), true);
        assert!([None, Some(0), Some(1)].iter().all(|launch| lasting.is_of(&world(2, *launch), "b")));
        assert!(!lasting.is_of(&world(4, Some(0)), "a"), "other ranks");
    }
}
