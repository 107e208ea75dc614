//! The parts of an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use verbs::manager::Link;
use verbs::{Context, QueuePair, ReadyToSend, Route};

use super::buffers::Buffers;
use super::failure::Path;
use super::joint::Joined;
use super::lane::Lane;
use super::managed::Managed;
use super::memory_flags::FlagRange;
use super::numbering::Numbering;
use super::port::LocalPort;
use super::samples::Samples;
use super::setup::Queues;
use crate::Error;
use crate::topology::PartSpec;

/// How a rank notices that a message has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Notification {
    /// By the completion of a receive.
    Completion,
    /// By a change of the last byte of the target, as `ib_write_lat` does.
    Memory,
    /// By a separate byte, because the measured operation notifies no one.
    Signal,
}

/// The kind of messages.
pub(super) enum Messages {
    /// All messages are alike.
    Alike,
    /// Each message has a number, because it is timed one way.
    Numbered(Numbering),
    /// Each message is written word by word.
    Written(Samples),
}

impl Messages {
    /// Returns the samples of a pipeline.
    ///
    /// # Errors
    /// [`Error::NoPipeline`] for messages of any other kind.
    #[inline]
    pub(super) fn written(&self) -> Result<&Samples, Error> {
        let Self::Written(samples) = self else { return Err(Error::NoPipeline) };
        Ok(samples)
    }
}

/// The objects that an endpoint was made from.
pub(super) struct Origin {
    pub(super) context: Context,
    pub(super) port: Arc<LocalPort>,
    pub(super) spec: PartSpec,
    /// RDMA CM, if it has connected the queue pairs, and the address of the peer.
    pub(super) managed: Option<(Managed, Option<SocketAddr>)>,
}

/// The parts of an endpoint.
pub(super) struct Parts {
    pub(super) lanes: Vec<Lane>,
    pub(super) queues: Queues,
    pub(super) buffers: Buffers,
    pub(super) held: Held,
    pub(super) messages: Messages,
    /// The joint operation of all ranks.
    pub(super) joined: Option<Joined>,
}

/// Objects that are kept as long as the queue pairs are used.
#[derive(Default)]
pub(super) struct Held {
    /// Connections of RDMA CM.
    pub(super) _links: Vec<Link>,
    /// Queue pairs to ranks that this rank does not exchange messages with.
    pub(super) _idle: Vec<QueuePair<ReadyToSend>>,
}

/// The state of the other ranks.
pub(super) struct Others {
    /// How this rank notices their messages, and where in its memory.
    pub(super) notification: Notification,
    pub(super) watched: FlagRange,
    /// Whether more ranks than CPUs run on this host: then a rank must yield the CPU for another to
    /// continue.
    pub(super) yields_cpu: bool,
    /// The paths to them, and the routes that the device is given.
    pub(super) paths: Vec<Path>,
    pub(super) routes: Vec<Route>,
}

/// Returns the factor on the usual time for which a peer may be silent before it counts as failed.
/// `None` means for ever: the target of a Read, or of an unannounced Write, does nothing itself. A
/// long message shows no progress until it has arrived completely.
pub(super) fn silence(spec: &PartSpec, notification: Notification) -> Option<u64> {
    let is_told = spec.message.operation.arrives() || notification == Notification::Memory;
    is_told.then(|| spec.message.size_bytes.div_ceil(PROMPT_BYTES).max(1))
}

/// The bytes that the slowest link carries within the usual time.
const PROMPT_BYTES: u64 = 1 << 20;
