//! Work requests of the send queue: what one says, and what there is to be done.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::context::Ah;
use crate::memory::copy::Piece;
use crate::queue_pair::Qp;
use crate::send::{Attempt, SendQueue};
use crate::sys::limits::{MAX_MESSAGE_BYTES, MAX_SGE, MTU_BYTES};
use crate::transport::local::address::MULTICAST_QP;
use crate::transport::local::address::{Way, port_word};
use crate::transport::local::deliver::Delivery;
use crate::transport::local::message::{Datagram, Message};
use crate::transport::local::reach::Remote;
use crate::transport::local::region::Access;
use crate::transport::local::target::Target;

/// What a work request says of itself.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) position: u32,
    pub(crate) wr_id: u64,
    pub(crate) signaled: bool,
    solicited: bool,
    pub(crate) imm: Option<u32>,
    /// What its completion names.
    pub(crate) opcode: ibv_wc_opcode,
    /// Bytes that it moves, once they were found.
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

    #[inline]
    fn message<'a>(&self, qp: &Qp, pieces: &'a Pieces) -> Message<'a> {
        Message {
            pieces: pieces.as_slice(),
            bytes: pieces.bytes,
            imm: self.imm,
            solicited: self.solicited,
            src_qp: qp.ibv.qp_num,
            datagram: None,
            written: false,
        }
    }
}

/// What a work request does with its payload.
pub(crate) trait Task: Copy {
    /// What it does to this process's own memory.
    fn local_access(&self) -> Access;
    /// What the requester itself finds wrong with it.
    fn local_fault(&self, qp: &Qp, bytes: u64) -> Option<ibv_wc_status>;
    /// Tries to do it.
    fn attempt(&self, qp: &Qp, queue: &mut SendQueue, work: &Work, pieces: &Pieces) -> Attempt;
    /// For whoever keeps tasks of any kind.
    fn any(self) -> AnyTask;
}

/// A send: to the peer of the connection, or where a datagram's route leads, to a queue pair of this number.
#[derive(Clone, Copy)]
pub(crate) struct Sending(Option<(Way, u32, Datagram)>);

impl Sending {
    /// Whether it goes to whom it names, without a connection.
    pub(crate) fn is_datagram(&self) -> bool {
        self.0.is_some()
    }
}

impl Task for Sending {
    #[inline]
    fn local_access(&self) -> Access {
        Access::Gather
    }

    #[inline]
    fn local_fault(&self, _: &Qp, bytes: u64) -> Option<ibv_wc_status> {
        let limit = if self.0.is_some() { MTU_BYTES } else { MAX_MESSAGE_BYTES };
        (bytes > limit).then_some(IBV_WC_LOC_LEN_ERR)
    }

    #[inline]
    fn attempt(&self, qp: &Qp, queue: &mut SendQueue, work: &Work, pieces: &Pieces) -> Attempt {
        if let Some(fault) = self.local_fault(qp, pieces.bytes) {
            return Attempt::Completed(fault);
        }
        let datagram = self.0.map(|(_, _, datagram)| datagram);
        let message = Message { datagram, ..work.message(qp, pieces) };
        let delivery = match self.0 {
            Some((Way::Device(device), number, _)) => {
                qp.deliver_datagram(queue, number, |port| port == port_word(device), &message)
            }
            Some((Way::Group(group), MULTICAST_QP, _)) => qp.deliver_to_group(queue, &group, &message),
            Some(_) => Delivery::NoAnswer,
            None => qp.with_peer(queue, |target| target.deliver(qp.host, qp.shared(), &message)),
        };
        qp.outcome(delivery)
    }

    fn any(self) -> AnyTask {
        AnyTask::Send(self)
    }
}

impl Task for Remote {
    #[inline]
    fn local_access(&self) -> Access {
        Self::local_access(self)
    }

    #[inline]
    fn local_fault(&self, qp: &Qp, bytes: u64) -> Option<ibv_wc_status> {
        if bytes > MAX_MESSAGE_BYTES {
            return Some(IBV_WC_LOC_LEN_ERR);
        }
        Self::local_fault(self, bytes, qp.initiator_depth.load(Relaxed))
    }

    #[inline]
    fn attempt(&self, qp: &Qp, queue: &mut SendQueue, work: &Work, pieces: &Pieces) -> Attempt {
        if let Some(fault) = Task::local_fault(self, qp, pieces.bytes) {
            return Attempt::Completed(fault);
        }
        let message = Message { written: true, ..work.message(qp, pieces) };
        let delivery =
            qp.with_peer(queue, |target: &Target| target.reach(qp.host, qp.shared(), self, &message));
        qp.outcome(delivery)
    }

    fn any(self) -> AnyTask {
        AnyTask::Reach(self)
    }
}

/// Whom a task reaches.
pub(crate) enum Destination {
    /// The peer of the connection.
    Connection,
    /// The queue pair of this number.
    Datagram(u32),
    /// Nobody here.
    Nowhere,
}

/// A task of any kind.
#[derive(Clone, Copy)]
pub(crate) enum AnyTask {
    Send(Sending),
    /// Reaches for the peer's memory.
    Reach(Remote),
}

impl Task for AnyTask {
    fn local_access(&self) -> Access {
        match self {
            Self::Send(sending) => sending.local_access(),
            Self::Reach(remote) => remote.local_access(),
        }
    }

    fn local_fault(&self, qp: &Qp, bytes: u64) -> Option<ibv_wc_status> {
        match self {
            Self::Send(sending) => sending.local_fault(qp, bytes),
            Self::Reach(remote) => Task::local_fault(remote, qp, bytes),
        }
    }

    fn attempt(&self, qp: &Qp, queue: &mut SendQueue, work: &Work, pieces: &Pieces) -> Attempt {
        match self {
            Self::Send(sending) => sending.attempt(qp, queue, work, pieces),
            Self::Reach(remote) => remote.attempt(qp, queue, work, pieces),
        }
    }

    fn any(self) -> AnyTask {
        self
    }
}

impl AnyTask {
    /// Whom it reaches.
    pub(crate) fn destination(&self) -> Destination {
        match self {
            Self::Send(Sending(Some((Way::Device(_), number, _)))) => Destination::Datagram(*number),
            Self::Send(Sending(Some(_))) => Destination::Nowhere,
            Self::Send(Sending(None)) | Self::Reach(_) => Destination::Connection,
        }
    }
}

impl Qp {
    /// Where a send goes.
    ///
    /// # Safety
    /// The request's address handle, where the service has one, is alive.
    #[inline]
    pub(crate) unsafe fn destination(&self, wr: &ibv_send_wr) -> Sending {
        Sending((self.ibv.qp_type == IBV_QPT_UD).then(|| {
            // SAFETY: the request is a datagram's, so this member is the one that was written.
            let ud = unsafe { wr.wr.ud };
            // SAFETY: the caller vouches for the handle.
            let Ah { attr, destination, .. } = unsafe { &*ud.ah.cast::<Ah>() };
            let (service_level, traffic_class, device) = (attr.sl, attr.grh.traffic_class, self.device);
            let dgid = (attr.is_global != 0).then_some(attr.grh.dgid);
            // A Q_Key with its high bit set stands for the queue pair's own (IBTA vol. 1, section 10.2.5).
            let qkey =
                if ud.remote_qkey >> 31 == 0 { ud.remote_qkey } else { self.shared().qkey.load(Relaxed) };
            let datagram = Datagram { qkey, service_level, traffic_class, device, dgid };
            (*destination, ud.remote_qpn, datagram)
        }))
    }
}

/// A list of the program's, which may be null where it is empty.
///
/// # Safety
/// There are so many, readable as long as the list is used.
#[inline]
pub(crate) unsafe fn list_of<'a, T>(list: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller vouches for them.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(list, count) } }
}

/// The operations that a service has, a bit for each `IBV_WR_*` (man ibv_post_send).
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

/// What the completion of each `IBV_WR_*` names.
const COMPLETED: [ibv_wc_opcode; 7] = [
    IBV_WC_RDMA_WRITE,
    IBV_WC_RDMA_WRITE,
    IBV_WC_SEND,
    IBV_WC_SEND,
    IBV_WC_RDMA_READ,
    IBV_WC_COMP_SWAP,
    IBV_WC_FETCH_ADD,
];

/// The elements of a payload, one of which may have been fetched in part.
const PIECES_MAX: usize = MAX_SGE + 1;

/// Pieces of a payload, on the stack.
pub(crate) struct Pieces {
    items: [MaybeUninit<Piece>; PIECES_MAX],
    len: usize,
    bytes: u64,
}

impl Pieces {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; PIECES_MAX], len: 0, bytes: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, piece: Piece) {
        self.items[self.len].write(piece);
        self.len += 1;
        self.bytes += piece.len as u64;
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Their bytes, one behind the other, but no more than `most`.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(crate) unsafe fn to_vec(&self, most: u64) -> Vec<u8> {
        let mut left = self.bytes.min(most) as usize;
        let mut bytes = Vec::with_capacity(left);
        // A piece without bytes may have any address, also null, which no slice has.
        for piece in self.as_slice().iter().filter(|piece| piece.len > 0) {
            let n = piece.len.min(left);
            // SAFETY: as the caller vouches.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.addr, n) });
            left -= n;
        }
        bytes
    }

    #[inline]
    fn as_slice(&self) -> &[Piece] {
        // SAFETY: the first `len` items were written by `push`.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }
}
