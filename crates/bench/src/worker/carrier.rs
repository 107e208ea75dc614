//! What carries the messages of a point: the one place that knows each kind of endpoint.

use std::time::Duration;

use super::device::Open;
use super::endpoints::Waiting;
use super::tool;
use crate::endpoint::connecting::End;
use crate::fault::PointError;
use crate::host_counters::{Counted, Ways};
use crate::library_endpoint::{self, LibraryEndpoint};
use crate::pattern::rank::{Endpoints, Rank};
use crate::patterns;
use crate::point::PointSpec;
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::shmem_endpoint::{self, ShmemEndpoint};
use crate::socket_endpoint::{self, SocketEndpoint};
use crate::timepiece::Timepiece;
use crate::verbs_endpoint::{Unconnected, VerbsEndpoint};

/// What a rank has set up, by what carries it.
pub(super) enum Halves {
    Library(Waiting<library_endpoint::Unconnected>),
    Shmem(Waiting<shmem_endpoint::Unopened>),
    Sockets(Waiting<socket_endpoint::Unconnected>),
    Tool(tool::Unstarted),
    Verbs(Waiting<Unconnected>),
}

/// What it has connected.
pub(super) enum Ends {
    Library(Endpoints<LibraryEndpoint>),
    Shmem(Endpoints<ShmemEndpoint>),
    Sockets(Endpoints<SocketEndpoint>),
    Tool(tool::Measuring),
    Verbs(Endpoints<VerbsEndpoint>),
}

impl Halves {
    /// What the other ranks have to know.
    pub(super) fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        match self {
            Self::Library(waiting) => waiting.prepared(ranks),
            Self::Shmem(waiting) => waiting.prepared(ranks),
            Self::Sockets(waiting) => waiting.prepared(ranks),
            Self::Tool(unstarted) => unstarted.prepared(ranks),
            Self::Verbs(waiting) => waiting.prepared(ranks),
        }
    }

    /// Connects them with those of the other ranks.
    pub(super) fn connect(self, spec: &PointSpec, ranks: &[Neighbour]) -> Result<Ends, PointError> {
        let topology = &spec.topology();
        Ok(match self {
            Self::Library(waiting) => Ends::Library(waiting.connect(topology, ranks)?),
            Self::Shmem(waiting) => Ends::Shmem(waiting.connect(topology, ranks)?),
            Self::Sockets(waiting) => Ends::Sockets(waiting.connect(topology, ranks)?),
            Self::Tool(unstarted) => Ends::Tool(unstarted.connect(spec, ranks)?),
            Self::Verbs(waiting) => Ends::Verbs(waiting.connect(topology, ranks)?),
        })
    }
}

impl Ends {
    /// A rank's share of the point, for which so much time is left.
    pub(super) fn measure(
        &mut self,
        spec: &PointSpec,
        rank: u32,
        left: Duration,
        device: Option<&Open>,
        timepiece: &Timepiece,
    ) -> Result<Outcome, PointError> {
        let ways = self.ways(device);
        let before = Counted::now(&ways);
        let mut outcome = match self {
            // It counts what its host did while it ran.
            Self::Tool(measuring) => return measuring.measure(spec, left),
            Self::Library(ends) => run(ends, spec, rank, left, timepiece),
            Self::Shmem(ends) => run(ends, spec, rank, left, timepiece),
            Self::Sockets(ends) => run(ends, spec, rank, left, timepiece),
            Self::Verbs(ends) => run(ends, spec, rank, left, timepiece),
        }?;
        outcome.host = Counted::now(&ways).since(&before);
        Ok(outcome)
    }

    /// Where the messages go through.
    fn ways(&self, device: Option<&Open>) -> Ways {
        match self {
            Self::Sockets(ends) => Ways { interfaces: ends.interfaces(), ports: Vec::new() },
            Self::Library(_) | Self::Shmem(_) | Self::Tool(_) => Ways::default(),
            Self::Verbs(_) => device.map(|open| open.port.ways()).unwrap_or_default(),
        }
    }
}

/// Measures within the time that is left.
fn run<E: End>(
    endpoints: &mut Endpoints<E>,
    spec: &PointSpec,
    rank: u32,
    left: Duration,
    timepiece: &Timepiece,
) -> Result<Outcome, PointError> {
    endpoints.start(left.as_secs_f64())?;
    let outcome = patterns::run(Rank { spec, rank, left, timepiece, endpoints });
    endpoints.stop();
    let (oversubscribed, library) = (endpoints.company.oversubscribed, endpoints.library());
    let mut outcome = Outcome { oversubscribed, library, ..outcome? };
    for (name, count) in endpoints.counters() {
        *outcome.counters.entry(name).or_default() += count;
    }
    Ok(outcome)
}
