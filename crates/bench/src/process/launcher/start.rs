//! Starts a launcher and waits until each of its ranks has connected.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use measure::clock::Deadline;

use super::super::channel::Agent;
use super::super::child::Process;
use super::super::connection::Connection;
use super::super::frame::quotable;
use super::super::interrupt::Interrupt;
use super::super::key::Key;
use super::super::link::{Link, Wants};
use super::super::listener::{Admitted, Listener};
use super::super::sink::Sink;
use super::super::template;
use super::super::wait::wait;
use super::device::{self, MpiDevice};
use super::environments::TOKEN_VARIABLE;
use super::introduction::Introduction;
use super::kind::{self, Circumstances, Kind};
use super::launched::Launched;
use super::rank_link::RankLink;
use crate::Error;
use crate::point::World;

/// The variable in which ranks find the key.
pub const KEY_VARIABLE: &str = "RDMASCOPE_KEY";

/// How a launcher is started.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The command, e.g. `mpirun -np {ranks}`. The command of a rank follows it.
    pub template: String,
    /// The points whose ranks it starts.
    pub points: Points,
    /// The address that the coordinator listens on for the ranks.
    pub listen: SocketAddr,
    /// The command that supervises a launcher until it ends: see
    /// [`supervise`](super::supervisor::supervise).
    pub supervisor: Vec<String>,
    /// The command of a rank, without the address of the coordinator.
    pub agent: Vec<String>,
    /// The device of ranks whose MPI is to use RDMA verbs, or why there is none; absent where no
    /// point has such ranks.
    pub device: Option<Result<MpiDevice, String>>,
    /// The time until all ranks must have connected.
    pub timeout: Duration,
}

/// The points whose ranks a launcher starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Points {
    /// All points.
    All,
    /// All points. If the launcher cannot start, only the points of MPI are not measured.
    AllIfPossible,
    /// The points of MPI.
    OfMpi,
}

impl Launcher {
    /// Starts a launcher with the ranks of a world. Returns the agents in the order of their ranks,
    /// and the facts of the launch for the record.
    ///
    /// # Errors
    /// [`Error::NoLauncher`], [`Error::LauncherEnded`], [`Error::RanksMissing`],
    /// [`Error::WrongRanks`].
    pub(in super::super) fn start(
        &self,
        world: &World,
        interrupt: Option<&Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<(Vec<Agent>, BTreeMap<String, String>), Error> {
        let key = Key::generate()?;
        let listener = Listener::new(self.listen, key.clone())?;
        let chosen = Chosen::new(&self.template, world, self.device.as_ref())?;
        let command = chosen.command(world, &[KEY_VARIABLE], Circumstances::here(&chosen.program));
        let Chosen { program, version, variables, .. } = chosen;
        let mut words = self.supervisor.clone();
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
        words.extend(self.agent.iter().cloned());
        words.extend(["--connect".to_owned(), listener.address().to_string()]);
        let token = Key::generate()?.to_string();
        let own = [(KEY_VARIABLE, key.to_string()), (TOKEN_VARIABLE, token.clone())];
        let given = variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let environment: Vec<(&str, String)> = given.chain(own).collect();
        let (process, streams) = Process::start_guard(&words, &environment)
            .map_err(|cause| Error::NoLauncher { launcher: program.clone(), cause })?;
        let launched = Launched::new(program, token, process, streams);
        let gathering = Gathering {
            launched: Rc::new(RefCell::new(launched)),
            listener,
            template: &self.template,
            ranks: world.ranks,
            strangers: Vec::new(),
            known: Vec::new(),
        };
        let agents = gathering.wait(self.timeout, interrupt, sink)?;
        let set = variables.iter().map(|(name, value)| format!("{name}={value}"));
        let facts = [
            ("launcher", self.template.clone()),
            ("command", command.join(" ")),
            ("launcher_version", version),
            ("variables", set.collect::<Vec<_>>().join(" ")),
        ];
        let facts = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
        Ok((agents, facts.map(|(name, fact)| (name.to_owned(), fact)).collect()))
    }
}

/// A launcher that was found for the ranks of a world.
pub(super) struct Chosen {
    pub(super) template: Vec<String>,
    /// The word of the launcher in the template.
    pub(super) program: String,
    pub(super) kind: &'static Kind,
    /// Its name and version, as it prints them.
    pub(super) version: String,
    /// The variables that MPI needs to use the transport of the world.
    pub(super) variables: Vec<(String, String)>,
}

impl Chosen {
    /// Finds the launcher of a template.
    ///
    /// # Errors
    /// [`Error::NoLauncher`], or [`Error::Impossible`] where it or the device cannot do what the
    /// world asks for.
    pub(super) fn new(
        template: &str,
        world: &World,
        device: Option<&Result<MpiDevice, String>>,
    ) -> Result<Self, Error> {
        let template = template::words(template)?;
        let program = kind::program(&template).to_owned();
        let (kind, version) = Kind::of(&program)?;
        if !kind.maps(world.map) {
            let reason = format!("{program} is {}, which has no options for this mpi_map", kind.name);
            return Err(Error::Impossible { reason });
        }
        let variables = device::variables(world, device)?;
        Ok(Self { template, program, kind, version, variables })
    }

    /// Returns the words of the launcher for the ranks of a world, with its variables and these
    /// others.
    pub(super) fn command(&self, world: &World, others: &[&str], here: Circumstances) -> Vec<String> {
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        let exported: Vec<&str> = names.chain(others.iter().copied()).collect();
        command(&self.template, self.kind, world, &exported, here)
    }
}

/// Returns the words of a launcher for the ranks of a world: those of its template, with the
/// options of its kind right after the launcher's word.
fn command(
    template: &[String],
    kind: &Kind,
    world: &World,
    exported: &[&str],
    here: Circumstances,
) -> Vec<String> {
    let ranks = world.ranks.to_string();
    let template: Vec<String> = template.iter().map(|word| word.replace("{ranks}", &ranks)).collect();
    let place = kind::place(&template);
    let here = here.behind(&template[..place]);
    let mut command = kind.options(&template, world.map, exported, here);
    let (before, after) = template.split_at((place + 1).min(template.len()));
    command.splice(0..0, before.iter().cloned());
    command.extend(after.iter().cloned());
    command
}

/// A launch whose ranks have not all connected yet.
struct Gathering<'a> {
    launched: Rc<RefCell<Launched>>,
    listener: Listener,
    template: &'a str,
    ranks: u32,
    /// Connections whose ranks have not introduced themselves.
    strangers: Vec<(Connection, Vec<u8>)>,
    known: Vec<(Introduction, Connection)>,
}

impl Gathering<'_> {
    fn wait(
        mut self,
        timeout: Duration,
        interrupt: Option<&Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Agent>, Error> {
        let deadline = Deadline::after(timeout);
        while (self.known.len() as u32) < self.ranks {
            if deadline.is_over() {
                return Err(self.missing(timeout));
            }
            {
                let launched = self.launched.borrow();
                let mut fds = self.listener.interest();
                fds.extend(launched.interest());
                fds.extend(self.strangers.iter().flat_map(|(connection, _)| connection.interest(LINES)));
                wait(fds, self.listener.next_turn(deadline), interrupt)?;
            }
            self.relay(sink);
            let mut told = |text: &str| sink.notice(text);
            if let Some(Admitted { stream, address, channel }) = self.listener.turn(&mut told) {
                self.strangers.push((Connection::new(address.to_string(), stream, channel), Vec::new()));
            }
            self.introduce()?;
            if self.launched.borrow().has_ended() {
                self.relay(sink);
                return Err(self.ended());
            }
        }
        self.agents()
    }

    /// Passes the lines of the launcher on.
    fn relay(&self, sink: &mut dyn Sink) {
        let mut launched = self.launched.borrow_mut();
        launched.take_in();
        for line in launched.lines() {
            sink.agent_line(&launched.name, &line);
        }
    }

    /// Reads the introductions of connected ranks.
    fn introduce(&mut self) -> Result<(), Error> {
        let mut index = 0;
        while let Some((connection, words)) = self.strangers.get_mut(index) {
            // Reads from the network. The agent sends nothing else before the first request.
            let _ = connection.read(&mut []);
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = connection.read_lines(&mut bytes) {
                words.extend_from_slice(&bytes[..count]);
            }
            let Some(end) = words.iter().position(|byte| *byte == b'\n') else {
                match connection.has_ended() {
                    true => drop(self.strangers.swap_remove(index)),
                    false => index += 1,
                }
                continue;
            };
            let introduction = serde_json::from_slice(&words[..end]).map_err(|error| Error::BrokenFrame {
                reason: format!("a rank introduced itself with {} ({error})", quotable(words)),
            })?;
            let (connection, _) = self.strangers.swap_remove(index);
            self.check(&introduction)?;
            self.known.push((introduction, connection));
        }
        Ok(())
    }

    /// Refuses a rank that does not belong to the point.
    fn check(&self, new: &Introduction) -> Result<(), Error> {
        let wrong = |what: String| {
            Err(Error::WrongRanks { template: self.template.to_owned(), what, ranks: self.ranks })
        };
        if let Some(size) = new.size.filter(|size| *size != self.ranks) {
            return wrong(format!("started {size}"));
        }
        let Some(rank) = new.rank else { return Ok(()) };
        if rank >= self.ranks {
            return wrong(format!("started a rank {rank}"));
        }
        match self.known.iter().any(|(other, _)| other.rank == Some(rank)) {
            true => wrong(format!("started rank {rank} twice")),
            false => Ok(()),
        }
    }

    /// Returns the agents in the order of their ranks. Where the launcher sets no rank numbers, it
    /// is the order in which they connected. The numbers of MPI are compared later.
    fn agents(mut self) -> Result<Vec<Agent>, Error> {
        self.known.sort_by_key(|(introduction, _)| introduction.rank);
        let launched = &self.launched;
        let agent = |(rank, (introduction, connection)): (u32, (Introduction, Connection))| {
            let link = RankLink::new(Rc::clone(launched), introduction, connection, rank);
            Agent::new(rank, Box::new(link))
        };
        Ok((0..).zip(self.known).map(agent).collect())
    }

    fn missing(&self, timeout: Duration) -> Error {
        let launched = self.launched.borrow();
        Error::RanksMissing {
            launcher: launched.name.clone(),
            came: self.known.len(),
            ranks: self.ranks,
            waited_s: timeout.as_secs(),
            said: launched.said(),
        }
    }

    fn ended(&self) -> Error {
        let launched = self.launched.borrow();
        let how = launched.end();
        let came = self.known.len();
        Error::LauncherEnded {
            launcher: launched.name.clone(),
            how,
            came,
            ranks: self.ranks,
            said: launched.said(),
        }
    }
}

/// The events to wait for while ranks introduce themselves.
const LINES: Wants = Wants { to_send: false, to_read: true, to_end: false, lines: true };

#[cfg(test)]
mod tests {
    use super::super::kind::KINDS;
    use super::*;
    use crate::point::{MpiMap, MpiTransport};

    #[test]
    fn the_number_of_ranks_stands_wherever_the_template_has_it() {
        let world = World {
            ranks: 4,
            map: MpiMap::Launcher,
            transport: MpiTransport::Default,
            link: None,
            launch: None,
        };
        let command = |template: &str| {
            let template = template::words(template).unwrap();
            command(&template, &KINDS[0], &world, &["K"], Circumstances::default()).join(" ")
        };
        assert_eq!(command("mpirun -np {ranks}"), "mpirun --bind-to none --oversubscribe -x K -np 4");
        assert_eq!(
            command("salloc -n {ranks} mpirun -np {ranks}"),
            "salloc -n 4 mpirun --bind-to none -x K -np 4"
        );
        assert_eq!(command("sh -c 'exec {ranks}'"), "sh --bind-to none --oversubscribe -x K -c exec 4");
    }
}
