//! Work requests of the send queue: their content, and what to do.

use verbs::abi::*;

use crate::transport::local::address::Way;
use crate::transport::message::Datagram;
use crate::transport::remote::Remote;

/// The content of a work request.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) position: u32,
    pub(crate) wr_id: u64,
    pub(crate) signaled: bool,
    pub(crate) solicited: bool,
    pub(crate) imm: Option<u32>,
    /// The operation that its completion names.
    pub(crate) opcode: ibv_wc_opcode,
    /// The bytes that it moves, once they are known.
    pub(crate) bytes: u32,
}

impl Work {
    #[inline]
    pub(crate) fn of(wr: &ibv_send_wr, position: u32, always_signaled: bool) -> Self {
        let has_immediate = IMMEDIATE >> wr.opcode & 1 != 0;
        Self {
            position,
            wr_id: wr.wr_id,
            signaled: always_signaled || wr.send_flags & IBV_SEND_SIGNALED != 0,
            solicited: wr.send_flags & IBV_SEND_SOLICITED != 0,
            imm: has_immediate.then_some(wr.imm_data),
            opcode: COMPLETED[wr.opcode as usize],
            bytes: 0,
        }
    }
}

/// A send: to the connected peer (`None`), or for a datagram, along a route to a queue pair of this
/// number.
#[derive(Clone, Copy)]
pub(crate) struct Sending(pub(crate) Option<(Way, u32, Datagram)>);

impl Sending {
    /// Whether it names its receiver, without a connection.
    pub(crate) fn is_datagram(&self) -> bool {
        self.0.is_some()
    }
}

/// The receiver of a task.
pub(crate) enum Destination {
    /// The connected peer.
    Connection,
    /// The queue pair of this number.
    Datagram(u32),
    /// No queue pair of this host.
    Nowhere,
}

/// A task of any kind.
#[derive(Clone, Copy)]
pub(crate) enum AnyTask {
    Send(Sending),
    /// Accesses the peer's memory.
    Reach(Remote),
}

impl AnyTask {
    /// Returns its receiver.
    pub(crate) fn destination(&self) -> Destination {
        match self {
            Self::Send(Sending(Some((Way::Port(_), number, _)))) => Destination::Datagram(*number),
            Self::Send(Sending(Some(_))) => Destination::Nowhere,
            Self::Send(Sending(None)) | Self::Reach(_) => Destination::Connection,
        }
    }
}

/// Returns a list of the program's, which may be null if it is empty.
///
/// # Safety
/// The list has `count` elements, which are readable as long as it is used.
#[inline]
pub(crate) unsafe fn list_of<'a, T>(list: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller guarantees the elements.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(list, count) } }
}

/// Returns the operations of a service, a bit for each `IBV_WR_*` (man ibv_post_send).
pub(crate) fn operations(service: ibv_qp_type) -> u32 {
    let datagram = 1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM;
    let unreliable = datagram | 1 << IBV_WR_RDMA_WRITE | 1 << IBV_WR_RDMA_WRITE_WITH_IMM;
    match service {
        IBV_QPT_UD => datagram,
        IBV_QPT_UC => unreliable,
        _ => {
            let atomics = 1 << IBV_WR_ATOMIC_CMP_AND_SWP | 1 << IBV_WR_ATOMIC_FETCH_AND_ADD;
            unreliable | 1 << IBV_WR_RDMA_READ | atomics
        }
    }
}

/// Operations with immediate data.
const IMMEDIATE: u32 = 1 << IBV_WR_SEND_WITH_IMM | 1 << IBV_WR_RDMA_WRITE_WITH_IMM;

/// Operations whose payload may be inline (man ibv_post_send): those that have one.
pub(crate) const INLINE: u32 = 1 << IBV_WR_SEND | 1 << IBV_WR_RDMA_WRITE | IMMEDIATE;

/// The operation that the completion of each `IBV_WR_*` names.
const COMPLETED: [ibv_wc_opcode; 7] = [
    IBV_WC_RDMA_WRITE,
    IBV_WC_RDMA_WRITE,
    IBV_WC_SEND,
    IBV_WC_SEND,
    IBV_WC_RDMA_READ,
    IBV_WC_COMP_SWAP,
    IBV_WC_FETCH_ADD,
];

/// The result of an attempt at a work request.
pub(crate) enum Attempt {
    Completed(ibv_wc_status),
    NotReady,
    Unanswered,
}
