//! The MPI of a process that a launcher has started.

use std::sync::Arc;

use mpi::{Communicator, Library, ThreadLevel, World, search};
use serde::{Deserialize, Serialize};

use super::carried::{Carried, UcxLog};
use super::choices::MpiTransport;
use super::port_counts::PortCounts;
use crate::Error;
use crate::topology::Part;

/// The MPI of a rank. It is initialised once, when a point first needs it, and finalized on drop.
pub(crate) struct RankMpi {
    options: MpiOptions,
    state: State,
    /// Communicators for the parts of the point being prepared, until they are taken.
    contexts: Vec<Option<Context>>,
}

/// How a process became a rank of MPI.
#[derive(Clone, Debug, Default)]
pub struct MpiOptions {
    /// The launcher that started it, as errors name it; `None` without a launcher.
    pub launcher: Option<String>,
    /// The path or name of the library; `None` for the one that fits the launcher.
    pub library: Option<String>,
    /// The log of UCX, if UCX writes one.
    pub log: Option<Arc<UcxLog>>,
}

enum State {
    /// No point has needed MPI.
    Unused,
    Ready(World),
    /// The initialisation failed, and cannot be repeated.
    Broken(String),
}

/// What MPI reports about a rank, which each rank tells all others.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Its number, and the number of ranks.
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The library, as it names itself.
    pub(crate) library: String,
}

impl RankMpi {
    /// Creates the state without opening a library.
    pub(crate) fn new(options: MpiOptions) -> Self {
        Self { options, state: State::Unused, contexts: Vec::new() }
    }

    /// Returns all ranks of MPI. The first call initialises MPI, and all ranks must make it.
    ///
    /// # Errors
    /// [`Error::Impossible`] if no launcher started this process or no library is installed;
    /// [`Error::Mpi`] with the error of the library.
    pub(crate) fn world(&mut self) -> Result<&World, Error> {
        if let State::Unused = self.state {
            self.state = match self.initialize() {
                Ok(world) => State::Ready(world),
                Err(error) if error.is_limit() => return Err(error),
                Err(error) => State::Broken(error.to_string()),
            };
        }
        match &self.state {
            State::Ready(world) => Ok(world),
            State::Broken(reason) => Err(Error::Mpi { reason: reason.clone() }),
            State::Unused => unreachable!("it was initialised above"),
        }
    }

    /// Returns what MPI reports about this rank of a point with `ranks` ranks.
    ///
    /// # Errors
    /// [`Error::NotOneWorld`] if MPI reports another number of ranks.
    pub(crate) fn identity(&mut self, ranks: u32) -> Result<Identity, Error> {
        let world = self.world()?;
        let library = world.communicator().library();
        let identity =
            Identity { rank: world.rank(), size: world.size(), library: library.version().to_owned() };
        if identity.size == ranks {
            return Ok(identity);
        }
        let path = library.path().display().to_string();
        let launcher = self.options.launcher.clone().unwrap_or_default();
        Err(Error::NotOneWorld { ranks, size: identity.size, launcher, library: identity.library, path })
    }

    /// Creates the communicators of `parts` parts of a point, two for each. All ranks must call it,
    /// also for parts that they do not take part in.
    ///
    /// # Errors
    /// The error of the library.
    pub(crate) fn prepare_contexts(&mut self, parts: usize) -> Result<(), Error> {
        let all = self.world()?.communicator();
        let context = |_| Ok(Some(Context { messages: all.duplicate()?, answers: all.duplicate()? }));
        self.contexts = (0..parts).map(context).collect::<Result<_, mpi::Error>>()?;
        Ok(())
    }

    /// Takes the communicators of a part.
    ///
    /// # Errors
    /// If they were taken before: a part is set up once.
    pub(crate) fn context(&mut self, part: Part) -> Result<Context, Error> {
        let context = self.contexts.get_mut(part.0 as usize).and_then(Option::take);
        context.ok_or_else(|| Error::Mpi { reason: "a part of the point has no communicators".to_owned() })
    }

    /// Lets MPI deliver messages that this rank has sent; it does so only while it is called.
    pub(crate) fn progress(&self) {
        if let State::Ready(world) = &self.state {
            // If MPI has failed, the rank that waits for the message reports it.
            let _ = world.progress();
        }
    }

    /// Returns what is needed to find the transport of a point that requests `asked`.
    pub(super) fn carried(&self, identity: &Identity, asked: MpiTransport) -> Carried {
        let library = identity.library.clone();
        Carried {
            asked,
            library,
            ranks: identity.size as usize,
            log: self.options.log.clone(),
            ports: PortCounts::now(),
        }
    }

    /// Returns the name and the file of the library, as far as known before MPI is initialised.
    pub(crate) fn library(&self) -> Option<(String, String)> {
        self.options.launcher.as_ref()?;
        let library = self.open().ok()?;
        Some((library.version().to_owned(), library.path().display().to_string()))
    }

    /// Opens the library that is named, or the first that fits the launcher.
    fn open(&self) -> Result<&'static Library, Error> {
        if let Some(name) = &self.options.library {
            return Library::open(name).map_err(|error| Error::Mpi { reason: error.to_string() });
        }
        let mut tried = Vec::new();
        for candidate in search::candidates(|name| std::env::var(name).ok()) {
            match Library::open(&candidate.name) {
                Ok(library) => return Ok(library),
                Err(error) => tried.push(error.to_string()),
            }
        }
        let reason = format!(
            "no MPI library that fits the launcher is installed: {}: install one (Debian: apt-get install libopenmpi3), or \
             name one with --mpi-library",
            tried.join("; ")
        );
        Err(Error::Impossible { reason })
    }

    fn initialize(&self) -> Result<World, Error> {
        if self.options.launcher.is_none() {
            let reason = "this rank was not started by an MPI launcher: see --mpi".to_owned();
            return Err(Error::Impossible { reason });
        }
        Ok(World::init(self.open()?, ThreadLevel::Single)?)
    }
}

impl Drop for RankMpi {
    /// Finalizes MPI: without MPI_Finalize, Open MPI treats the end of the process as a failure. If
    /// other ranks do not finalize in time, the process ends without it.
    fn drop(&mut self) {
        let State::Ready(world) = std::mem::replace(&mut self.state, State::Unused) else { return };
        let limit = std::thread::Builder::new().name("finalize".to_owned()).spawn(|| {
            std::thread::sleep(FINALIZE_TIMEOUT);
            // SAFETY: _exit has no preconditions. This process has nothing left to do.
            unsafe { libc::_exit(0) }
        });
        if limit.is_ok() {
            // This process ends next, whatever the result.
            let _ = world.finalize();
        }
    }
}

/// Two communicators for a part of a point, so that a message of one is never received as one of
/// the other.
pub(crate) struct Context {
    /// For measured messages.
    pub(crate) messages: Communicator,
    /// For the answers that confirm the arrival of messages.
    pub(crate) answers: Communicator,
}

/// Every rank finalizes at the same time and waits only for the other ranks.
const FINALIZE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
