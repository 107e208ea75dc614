//! How the agents of a run are started.

use std::path::PathBuf;
use std::time::Duration;

use super::dial::Peer;
pub use super::launcher::device::MpiDevice;
pub use super::launcher::start::{Launcher, Points};
use super::template;
use crate::Error;

/// How agents are started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The command of an agent, e.g. `["/usr/bin/rdmascope", "agent"]`.
    pub program: Vec<String>,
    /// The command before it that starts it, e.g. `ssh {host}`. If absent, agents are children of
    /// this process. `ssh` passes all words to a shell.
    pub via: Option<String>,
    /// The hosts of the ranks, in rank order. Ranks take them in turn. Empty without `via`.
    pub hosts: Vec<String>,
    /// The CPUs of the ranks, for `--cpu N`. Ranks take them in turn. Empty where the ranks are not
    /// pinned.
    pub cpus: Vec<u32>,
    /// Further arguments of every agent, e.g. `--device softdev0`.
    pub arguments: Vec<String>,
    /// Rank 1, where it was started by hand. Then only rank 0 is started.
    pub server: Option<Peer>,
    /// The launcher of the ranks of MPI points; absent where there are none.
    pub launcher: Option<Launcher>,
    /// How long starting may take, including the login of ssh.
    pub start_timeout: Duration,
    /// Launches that the record has already, of a run that is resumed.
    pub launches_before: u32,
}

/// The error text after `--via`: why commands do not start ranks of MPI.
pub const NOT_BY_COMMANDS: &str =
    "does not start ranks of MPI: name their hosts in --mpi, such as 'mpirun -np {ranks} --host n1,n2'";

impl Launch {
    /// Returns a launch whose agents are children of this process and run this executable.
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
            launcher: None,
            start_timeout: START_TIMEOUT,
            launches_before: 0,
        })
    }

    /// Returns the command of an agent on a host, with arguments of its own.
    ///
    /// # Errors
    ///
    /// [`Error::BadTemplate`].
    pub fn command_on(&self, host: &str, arguments: &[String]) -> Result<Vec<String>, Error> {
        let program: Vec<String> =
            self.program.iter().chain(&self.arguments).chain(arguments).cloned().collect();
        template::command(self.via.as_deref(), host, &program)
    }

    /// Returns the host and the command of each rank to start. `ranks` is the number that the
    /// points need.
    pub(super) fn commands(&self, ranks: usize) -> Result<Vec<(String, Vec<String>)>, Error> {
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

/// Returns the element for a rank of a list that ranks take in turn.
fn in_turn<T>(list: &[T], rank: usize) -> Option<&T> {
    list.get(rank % list.len().max(1))
}

/// The rank of a server.
pub(super) const SERVER_RANK: usize = 1;
const START_TIMEOUT: Duration = Duration::from_secs(30);
