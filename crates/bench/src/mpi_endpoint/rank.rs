//! The MPI of a process that a launcher has started.

use std::sync::Arc;

use mpi::{Communicator, Library, ThreadLevel, World, search};
use serde::{Deserialize, Serialize};

use super::carried::{Carried, UcxLog};
use super::choices::MpiTransport;
use super::port_counts::PortCounts;
use crate::Error;
use crate::topology::Part;

/// What a rank knows of its MPI. It is initialised when a point asks for it, once, and finalized
/// with this.
pub(crate) struct RankMpi {
    options: MpiOptions,
    state: State,
    /// Communicators for parts of the point that is prepared, until they are taken.
    contexts: Vec<Option<Context>>,
}

/// How a process came to be a rank.
#[derive(Clone, Debug, Default)]
pub struct MpiOptions {
    /// The launcher that started it, as errors name it; absent where none has.
    pub launcher: Option<String>,
    /// Path or name of the library; absent for the one that fits the launcher.
    pub library: Option<String>,
    /// Where UCX writes what it does, if it was told to.
    pub log: Option<Arc<UcxLog>>,
}

enum State {
    /// No point has asked for it.
    Unused,
    Ready(World),
    /// It could not be initialised, and cannot be a second time.
    Broken(String),
}

/// What MPI says of a rank, which each rank tells all others.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Its number, of how many.
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The library, as that calls itself.
    pub(crate) library: String,
}

impl RankMpi {
    /// Nothing is opened yet.
    pub(crate) fn new(options: MpiOptions) -> Self {
        Self { options, state: State::Unused, contexts: Vec::new() }
    }

    /// The ranks that MPI knows. Of the first call, which initialises MPI, all ranks must make one.
    ///
    /// # Errors
    /// [`Error::Impossible`] where no launcher started this process or no library is installed;
    /// [`Error::Mpi`] with what the library says.
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

    /// What MPI says of this rank, of as many as a point has.
    ///
    /// # Errors
    /// [`Error::NotOneWorld`] where MPI does not know all of them.
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

    /// Makes communicators for so many parts of a point, two for each. All ranks must do that, also
    /// for parts that they have nothing to do with.
    ///
    /// # Errors
    /// What the library says.
    pub(crate) fn prepare_contexts(&mut self, parts: usize) -> Result<(), Error> {
        let all = self.world()?.communicator();
        let context = |_| Ok(Some(Context { messages: all.duplicate()?, answers: all.duplicate()? }));
        self.contexts = (0..parts).map(context).collect::<Result<_, mpi::Error>>()?;
        Ok(())
    }

    /// The communicators of a part, once.
    ///
    /// # Errors
    /// If there are none: a part is set up once.
    pub(crate) fn context(&mut self, part: Part) -> Result<Context, Error> {
        let context = self.contexts.get_mut(part.0 as usize).and_then(Option::take);
        context.ok_or_else(|| Error::Mpi { reason: "a part of the point has no communicators".to_owned() })
    }

    /// Lets messages go on that this rank has sent, as MPI does only while it is called.
    pub(crate) fn progress(&self) {
        if let State::Ready(world) = &self.state {
            // If MPI has failed, the rank that waits for the message says so.
            let _ = world.progress();
        }
    }

    /// What can be known of how messages go that a point wants to go so.
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

    /// The library, as far as it is known before MPI is initialised: its name and its file.
    pub(crate) fn library(&self) -> Option<(String, String)> {
        self.options.launcher.as_ref()?;
        let library = self.open().ok()?;
        Some((library.version().to_owned(), library.path().display().to_string()))
    }

    /// Opens the library that is named, or the first of those that fit the launcher.
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
            "no library of MPI fits the launcher: {}: install it (Debian: apt-get install libopenmpi3), or name one with \
             --mpi-library",
            tried.join("; ")
        );
        Err(Error::Impossible { reason })
    }

    fn initialize(&self) -> Result<World, Error> {
        if self.options.launcher.is_none() {
            let reason = "no launcher of MPI has started this rank: see --mpi".to_owned();
            return Err(Error::Impossible { reason });
        }
        Ok(World::init(self.open()?, ThreadLevel::Single)?)
    }
}

impl Drop for RankMpi {
    /// Without MPI_Finalize, Open MPI takes the end of the process for a failure. Where other ranks
    /// do not come to it, the process ends without.
    fn drop(&mut self) {
        let State::Ready(world) = std::mem::replace(&mut self.state, State::Unused) else { return };
        let limit = std::thread::Builder::new().name("finalize".to_owned()).spawn(|| {
            std::thread::sleep(FINALIZE_TIMEOUT);
            // SAFETY: _exit has no preconditions. All that this process was to do is done.
            unsafe { libc::_exit(0) }
        });
        if limit.is_ok() {
            // Whatever it says, this process ends next.
            let _ = world.finalize();
        }
    }
}

/// Two communicators for a part of a point, so that what one says is never taken for the other.
pub(crate) struct Context {
    /// What is measured.
    pub(crate) messages: Communicator,
    /// What tells that messages have arrived.
    pub(crate) answers: Communicator,
}

/// Every rank finalizes at the same time, and has nothing to wait for but the others.
const FINALIZE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
