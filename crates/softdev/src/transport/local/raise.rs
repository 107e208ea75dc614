//! The records of asynchronous events in a context's pipe, and raising an event at a peer.

use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::transport::local::host::{Host, Peer};
use crate::transport::local::target::Target;

/// The kind of object that an event is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kind {
    QueuePair,
    CompletionQueue,
    SharedReceiveQueue,
    Port,
}

/// Returns the kind of object that events of a type are about; `None` for types that do not go
/// through the pipe.
pub(crate) fn kind_of(event: ibv_event_type) -> Option<Kind> {
    Some(match event {
        IBV_EVENT_CQ_ERR => Kind::CompletionQueue,
        IBV_EVENT_QP_FATAL..=IBV_EVENT_SQ_DRAINED | IBV_EVENT_QP_LAST_WQE_REACHED => Kind::QueuePair,
        IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => Kind::SharedReceiveQueue,
        IBV_EVENT_PORT_ACTIVE | IBV_EVENT_PORT_ERR => Kind::Port,
        _ => return None,
    })
}

/// A record in the pipe. Writes of this size are never torn (`PIPE_BUF` in pipe(7)).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) event: ibv_event_type,
    /// The number of a queue pair or a port, or the handle of a queue.
    pub(crate) handle: u32,
    pub(crate) serial: u32,
}

pub(crate) const RECORD_BYTES: usize = 12;

impl Record {
    pub(crate) fn encode(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip([self.event, self.handle, self.serial]) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: [u8; RECORD_BYTES]) -> Self {
        let word = |i: usize| u32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Self { event: word(0), handle: word(4), serial: word(8) }
    }
}

/// Raises an event of an object of a peer, which may be this process, in one of its contexts.
#[cold]
pub(crate) fn raise_at(
    host: &Host,
    peer: &Peer,
    context: u32,
    event: ibv_event_type,
    handle: u32,
    serial: u32,
) {
    let shared = peer.view(&host.arena.view).context(context);
    let fd = shared.fd.load(SeqCst);
    let inode = shared.inode.load(Relaxed);
    if fd < 0 {
        return; // The context is closed.
    }
    let record = Record { event, handle, serial }.encode();
    let is_written = match host.through(peer, fd, inode, |pipe| rustix::io::write(pipe, &record)) {
        Ok(written) => written.is_ok(),
        // The context or the process has ended since.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(_) => false,
    };
    if !is_written {
        shared.lost.fetch_add(1, SeqCst);
    }
}

impl Target {
    /// Raises an event for the first message of a connection, if its owner has not entered RTS yet
    /// (IBTA vol. 1, section 11.6.2).
    #[cold]
    pub(crate) fn greet(&self, host: &Host) {
        if self.shared().state.load(SeqCst) == IBV_QPS_RTR {
            self.raise(host, IBV_EVENT_COMM_EST);
        }
    }

    /// Tells the owner of a shared queue that it has fewer receives than its limit.
    #[cold]
    pub(crate) fn raise_of_queue(&self, host: &Host, number: u32) {
        let context = self.shared().context.load(Relaxed);
        raise_at(host, &self.peer, context, IBV_EVENT_SRQ_LIMIT_REACHED, number, number);
    }

    /// Raises an event at the queue pair's owner.
    #[cold]
    pub(crate) fn raise(&self, host: &Host, event: ibv_event_type) {
        let context = self.shared().context.load(Relaxed);
        raise_at(host, &self.peer, context, event, self.qp_num, self.generation);
    }
}
