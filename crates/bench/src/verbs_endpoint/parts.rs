//! What an endpoint is made of.

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

/// How it is learnt that a message has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Notification {
    /// By the completion of a receive.
    Completion,
    /// By a change of the last byte of the target, as `ib_write_lat` does.
    Memory,
    /// By a byte that is written for nothing else: what is measured tells nobody.
    Signal,
}

/// What messages are.
pub(super) enum Messages {
    /// All alike.
    Alike,
    /// Each has a number, because each is timed one way.
    Numbered(Numbering),
    /// Each is written word by word.
    Written(Samples),
}

impl Messages {
    /// The samples of a pipeline.
    ///
    /// # Errors
    /// [`Error::NoPipeline`] where messages are anything else.
    #[inline]
    pub(super) fn written(&self) -> Result<&Samples, Error> {
        let Self::Written(samples) = self else { return Err(Error::NoPipeline) };
        Ok(samples)
    }
}

/// Where an endpoint comes from.
pub(super) struct Origin {
    pub(super) context: Context,
    pub(super) port: Arc<LocalPort>,
    pub(super) spec: PartSpec,
    /// What has connected the queue pairs, if RDMA CM has, and where it found the peer.
    pub(super) managed: Option<(Managed, Option<SocketAddr>)>,
}

/// What an endpoint is made of.
pub(super) struct Parts {
    pub(super) lanes: Vec<Lane>,
    pub(super) queues: Queues,
    pub(super) buffers: Buffers,
    pub(super) held: Held,
    pub(super) messages: Messages,
    /// What all ranks do together.
    pub(super) joined: Option<Joined>,
}

/// What is held as long as the queue pairs are used.
#[derive(Default)]
pub(super) struct Held {
    /// Connections that RDMA CM keeps up, where it made them.
    pub(super) _links: Vec<Link>,
    /// Queue pairs to ranks that this one does not talk to.
    pub(super) _idle: Vec<QueuePair<ReadyToSend>>,
}

/// What an endpoint knows of the other ranks.
pub(super) struct Others {
    /// How it learns what they have done, and where in its memory.
    pub(super) notification: Notification,
    pub(super) watched: FlagRange,
    /// Whether more run on the same CPUs than those are: then one has to stop for another to go on.
    pub(super) yields_cpu: bool,
    /// The ways to those, and how the device is told of them.
    pub(super) paths: Vec<Path>,
    pub(super) routes: Vec<Route>,
}

/// How often the usual time a peer may be silent before it has failed. `None` is for ever: the
/// target of a Read, or of a Write that nothing announces, has no part in it. A long message moves
/// nothing until all of it is there.
pub(super) fn silence(spec: &PartSpec, notification: Notification) -> Option<u64> {
    let is_told = spec.message.operation.arrives() || notification == Notification::Memory;
    is_told.then(|| spec.message.size_bytes.div_ceil(PROMPT_BYTES).max(1))
}

/// What the slowest link moves while a silent peer is waited for.
const PROMPT_BYTES: u64 = 1 << 20;
