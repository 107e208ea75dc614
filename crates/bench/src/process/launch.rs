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
    /// What starts the ranks of points that MPI carries; absent where none of them does.
    pub launcher: Option<Launcher>,
    /// How long starting may take: the login of ssh included.
    pub start_timeout: Duration,
}

/// Why commands start no ranks of MPI.
pub const NOT_BY_COMMANDS: &str =
    "starts no ranks of MPI: name their hosts in --mpi, such as 'mpirun -np {ranks} --host n1,n2'";

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
            launcher: None,
            start_timeout: START_TIMEOUT,
        })
    }

    /// Host and words of the command of each rank that is to be started, where the points need so
    /// many.
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

/// What a rank takes of a list that ranks take in turn.
fn in_turn<T>(list: &[T], rank: usize) -> Option<&T> {
    list.get(rank % list.len().max(1))
}

/// The rank that a server has.
pub(super) const SERVER_RANK: usize = 1;
const START_TIMEOUT: Duration = Duration::from_secs(30);
