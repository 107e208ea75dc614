//! Where a queue pair's messages go: the boundary between the send queue and the transport.
//!
//! The engine calls only these methods of a target, except that its fast path (`eager`) first looks
//! for shared memory. A transport over a network would be a second variant.

use verbs::abi::ibv_qp_type;

use crate::memory::arena::View;
use crate::memory::layout::{SharedPort, SharedQp};
use crate::transport::delivery::Delivery;
use crate::transport::local::address::End;
use crate::transport::local::host::Host;
use crate::transport::local::target;
use crate::transport::message::Message;
use crate::transport::remote::Remote;

/// A queue pair that messages go to, by its transport.
pub(crate) enum Target {
    /// Through memory that this process and its peer, or this process alone, have mapped.
    Local(target::Target),
}

impl Target {
    /// Finds a queue pair by its number.
    pub(crate) fn find(host: &Host, qp_num: u32) -> Option<Self> {
        target::Target::find(host, qp_num).map(Self::Local)
    }

    /// Whether the queue pair has this service, has its port at this end of a route and, for RC,
    /// expects this packet sequence number: then it answers a queue pair that is connected to it in
    /// this way. (UC accepts any number in the first packet of a message: IBTA vol. 1, section
    /// 9.8.2.)
    pub(crate) fn answers(&self, service: ibv_qp_type, end: End, psn: u32) -> bool {
        match self {
            Self::Local(target) => target.answers(service, end, psn),
        }
    }

    /// Returns the number of the queue pair.
    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Local(target) => target.qp_num,
        }
    }

    /// Delivers a message for the queue pair that `own` shows to its peers.
    #[inline]
    pub(crate) fn deliver(&self, host: &Host, own: &SharedQp, message: &Message<'_>) -> Delivery {
        match self {
            Self::Local(target) => target.deliver(host, own, message),
        }
    }

    /// Carries out an operation on the memory of the peer, for the queue pair that `own` shows to
    /// its peers.
    #[inline]
    pub(crate) fn reach(
        &self,
        host: &Host,
        own: &SharedQp,
        remote: &Remote,
        message: &Message<'_>,
    ) -> Delivery {
        match self {
            Self::Local(target) => target.reach(host, own, remote, message),
        }
    }

    /// Whether the queue pair that was found still exists, in any state.
    #[inline]
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Local(target) => target.exists(),
        }
    }

    /// Notes that the first message of a connection has arrived.
    #[inline]
    pub(crate) fn greet(&self, host: &Host) {
        match self {
            Self::Local(target) => target.greet(host),
        }
    }

    /// Whether the queue pair takes datagrams, at a port that `is_port` accepts.
    #[inline]
    pub(crate) fn takes_datagrams(&self, is_port: impl Fn(u32) -> bool) -> bool {
        match self {
            Self::Local(target) => target.takes_datagrams(is_port),
        }
    }

    /// Returns the code of the time after which a message that found no receive may be sent again.
    pub(crate) fn rnr_timer(&self) -> u32 {
        match self {
            Self::Local(target) => target.rnr_timer(),
        }
    }

    /// Returns the port of the peer, for a link model; `own` is this process's arena.
    pub(crate) fn port<'a>(&'a self, own: &'a View) -> &'a SharedPort {
        match self {
            Self::Local(target) => target.shared_port(own),
        }
    }
}
