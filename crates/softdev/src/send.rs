//! The send queue: posting, carrying out, completing.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::completion::{Cq, Entry};
use crate::context::{Ah, own_gid};
use crate::copy::{Piece, Place};
use crate::deliver::{Datagram, Delivery, Message};
use crate::limits::{MAX_MESSAGE_BYTES, MAX_SGE, MTU_BYTES};
use crate::memory::{Access, locate};
use crate::one_sided::Remote;
use crate::queue_pair::Qp;
use crate::retry::Waiting;
use crate::target::Target;

/// What a queue pair's lock protects on the sending side.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// Position of the next work request.
    tail: u32,
    /// Work requests that could not be delivered when they were posted, and those behind them.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The peer of a connection, once found.
    pub(crate) target: Option<Target>,
    /// A message has been delivered on this connection: another life of the peer would not know its packets.
    begun: bool,
    /// Peers that datagrams went to, the latest last.
    datagram_targets: Vec<Target>,
}

/// Peers of datagrams that a queue pair remembers.
const DATAGRAM_TARGETS: usize = 64;

/// A work request without its payload.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    position: u32,
    wr_id: u64,
    pub(crate) signaled: bool,
    solicited: bool,
    imm: Option<u32>,
    /// Bytes that it has moved, or tried to.
    bytes: u32,
    task: Task,
}

/// What a work request does.
#[derive(Clone, Copy)]
enum Task {
    /// Sends to the peer of the connection.
    Send,
    /// Sends to a queue pair of this number; `None` where the route leads to another host.
    Datagram(Option<u32>, Datagram),
    /// Reaches for the peer's memory.
    Reach(Remote),
}

impl Work {
    /// What it does to this process's own memory.
    #[inline]
    pub(crate) fn local_access(&self) -> Access {
        if let Task::Reach(remote) = &self.task { remote.local_access() } else { Access::Gather }
    }

    #[inline]
    fn opcode(&self) -> ibv_wc_opcode {
        if let Task::Reach(remote) = &self.task { remote.opcode() } else { IBV_WC_SEND }
    }
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

/// Operations whose payload may be inline (man ibv_post_send): those that have one.
const INLINE: u32 =
    1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM | 1 << IBV_WR_RDMA_WRITE | 1 << IBV_WR_RDMA_WRITE_WITH_IMM;

/// Pieces of a payload, on the stack.
pub(crate) struct Pieces {
    items: [MaybeUninit<Piece>; MAX_SGE],
    len: usize,
    bytes: u64,
}

impl Pieces {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; MAX_SGE], len: 0, bytes: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, piece: Piece) {
        self.items[self.len].write(piece);
        self.len += 1;
        self.bytes += piece.len as u64;
    }

    #[inline]
    fn as_slice(&self) -> &[Piece] {
        // SAFETY: the first `len` items were written by `push`.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }
}

/// What an attempt at a work request came to.
pub(crate) enum Attempt {
    Completed(ibv_wc_status),
    NotReady,
    Unanswered,
}

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller gives a live queue pair of this device.
    let qp = unsafe { Qp::from(qp) };
    let mut queue = qp.send.lock();
    // SAFETY: the caller gives a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable, and an address handle, where the service has one, is alive.
        if let Err(errno) = unsafe { qp.post(&mut queue, request) } {
            // SAFETY: the caller gives a writable pointer.
            unsafe { bad_wr.write(wr) };
            return errno;
        }
        wr = request.next;
    }
    0
}

impl Qp {
    /// # Safety
    /// The request's elements are readable; its address handle, where the service has one, is alive.
    #[inline]
    unsafe fn post(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> Result<(), c_int> {
        let state = self.state();
        let inline = wr.send_flags & IBV_SEND_INLINE != 0;
        let operations = if inline { self.operations & INLINE } else { self.operations };
        let is_known = wr.opcode < u32::BITS && operations >> wr.opcode & 1 != 0;
        if state < IBV_QPS_RTS
            || !is_known
            || !(0..=self.cap.max_send_sge.cast_signed()).contains(&wr.num_sge)
        {
            return Err(libc::EINVAL);
        }
        let elements = if wr.num_sge == 0 {
            &[]
        } else {
            // SAFETY: the caller vouches for the elements.
            unsafe { std::slice::from_raw_parts(wr.sg_list, wr.num_sge as usize) }
        };
        if inline
            && elements.iter().map(|e| u64::from(e.length)).sum::<u64>() > u64::from(self.cap.max_inline_data)
        {
            return Err(libc::EINVAL);
        }
        if queue.tail.wrapping_sub(self.retired.load(Acquire)) >= self.cap.max_send_wr {
            return Err(libc::ENOMEM);
        }
        // SAFETY: the caller vouches for the address handle.
        let work = unsafe { self.describe(queue.tail, wr) };
        queue.tail = queue.tail.wrapping_add(1);
        if state >= IBV_QPS_SQE {
            self.flush_sends(queue);
            self.complete(&work, IBV_WC_WR_FLUSH_ERR);
        } else if state == IBV_QPS_SQD || !queue.waiting.is_empty() {
            self.wait(queue, self.hold(work, elements, inline));
        } else {
            self.begin(queue, work, elements, inline);
        }
        Ok(())
    }

    /// # Safety
    /// The request's address handle, where the service has one, is alive.
    #[inline]
    unsafe fn describe(&self, position: u32, wr: &ibv_send_wr) -> Work {
        let task = if self.ibv.qp_type == IBV_QPT_UD {
            // SAFETY: the caller vouches for the handle.
            unsafe { self.describe_datagram(wr) }
        } else {
            Remote::of(wr).map_or(Task::Send, Task::Reach)
        };
        let has_immediate = matches!(wr.opcode, IBV_WR_SEND_WITH_IMM | IBV_WR_RDMA_WRITE_WITH_IMM);
        Work {
            position,
            wr_id: wr.wr_id,
            signaled: self.sq_sig_all || wr.send_flags & IBV_SEND_SIGNALED != 0,
            solicited: wr.send_flags & IBV_SEND_SOLICITED != 0,
            imm: has_immediate.then_some(wr.imm_data),
            bytes: 0,
            task,
        }
    }

    /// # Safety
    /// The request's address handle is alive.
    unsafe fn describe_datagram(&self, wr: &ibv_send_wr) -> Task {
        // SAFETY: the request is a datagram's, so this member is the one that was written.
        let ud = unsafe { wr.wr.ud };
        // SAFETY: the caller vouches for the handle.
        let attr = &unsafe { &*ud.ah.cast::<Ah>() }.attr;
        let here = attr.grh.dgid == own_gid();
        let (service_level, traffic_class) = (attr.sl, attr.grh.traffic_class);
        // A Q_Key with its high bit set stands for the queue pair's own (IBTA vol. 1, section 10.2.5).
        let qkey = if ud.remote_qkey >> 31 == 0 { ud.remote_qkey } else { self.shared().qkey.load(Relaxed) };
        Task::Datagram(here.then_some(ud.remote_qpn), Datagram { qkey, service_level, traffic_class })
    }

    /// The first attempt at a work request.
    #[inline]
    fn begin(&self, queue: &mut SendQueue, mut work: Work, elements: &[ibv_sge], inline: bool) {
        let mut pieces = Pieces::new();
        let attempt = if self.gather(elements, inline, work.local_access(), &mut pieces) {
            self.attempt(queue, &mut work, &pieces)
        } else {
            Attempt::Completed(IBV_WC_LOC_PROT_ERR)
        };
        match attempt {
            Attempt::Completed(IBV_WC_SUCCESS) => {
                if work.signaled {
                    self.complete(&work, IBV_WC_SUCCESS);
                }
            }
            Attempt::Completed(status) => self.end_with_error(queue, &work, status),
            failed => self.try_later(queue, failed, self.hold(work, elements, inline)),
        }
    }

    /// Finds the payload, or where it is to go; false where an element is not covered by a registration of the queue pair's
    /// domain that allows it.
    #[inline]
    pub(crate) fn gather(
        &self,
        elements: &[ibv_sge],
        inline: bool,
        access: Access,
        pieces: &mut Pieces,
    ) -> bool {
        for sge in elements {
            let piece = if inline {
                Piece { addr: sge.addr as *mut u8, len: sge.length as usize }
            } else {
                match locate(&self.host.arena.view, None, self.pd, sge, access) {
                    Some(Place::Here(piece)) => piece,
                    _ => return false,
                }
            };
            pieces.push(piece);
        }
        true
    }

    #[inline]
    pub(crate) fn attempt(&self, queue: &mut SendQueue, work: &mut Work, pieces: &Pieces) -> Attempt {
        let datagram = if let Task::Datagram(_, datagram) = work.task { Some(datagram) } else { None };
        let limit = if datagram.is_some() { MTU_BYTES } else { MAX_MESSAGE_BYTES };
        if pieces.bytes > limit {
            return Attempt::Completed(IBV_WC_LOC_LEN_ERR);
        }
        work.bytes = pieces.bytes as u32;
        let message = Message {
            pieces: pieces.as_slice(),
            bytes: pieces.bytes,
            imm: work.imm,
            solicited: work.solicited,
            src_qp: self.ibv.qp_num,
            datagram,
            written: matches!(work.task, Task::Reach(_)),
        };
        let delivery = match &work.task {
            Task::Send => self.with_peer(queue, |target| target.deliver(self.host, &message)),
            Task::Datagram(Some(qp_num), _) => self.deliver_datagram(queue, *qp_num, &message),
            Task::Datagram(None, _) => Delivery::NoAnswer,
            Task::Reach(remote) => {
                if let Some(fault) = remote.local_fault(message.bytes, self.initiator_depth.load(Relaxed)) {
                    return Attempt::Completed(fault);
                }
                self.with_peer(queue, |target| target.reach(self.host, self.shared(), remote, &message))
            }
        };
        match delivery {
            Delivery::Done => Attempt::Completed(IBV_WC_SUCCESS),
            // An unreliable service never learns what became of a message.
            _ if self.ibv.qp_type != IBV_QPT_RC => Attempt::Completed(IBV_WC_SUCCESS),
            // IBTA vol. 1, section 9.7.5.2: NAK codes, and what the requester makes of them.
            Delivery::TooLong | Delivery::Invalid => Attempt::Completed(IBV_WC_REM_INV_REQ_ERR),
            Delivery::BadReceive => Attempt::Completed(IBV_WC_REM_OP_ERR),
            Delivery::Denied => Attempt::Completed(IBV_WC_REM_ACCESS_ERR),
            Delivery::NotReady => Attempt::NotReady,
            Delivery::NoAnswer => Attempt::Unanswered,
        }
    }

    /// Does something to the peer of the connection.
    #[inline]
    fn with_peer(&self, queue: &mut SendQueue, work: impl FnOnce(&Target) -> Delivery) -> Delivery {
        if queue.target.is_none() && !(queue.begun && self.ibv.qp_type == IBV_QPT_RC) {
            queue.target = self.find_peer();
        }
        let Some(target) = &queue.target else { return Delivery::NoAnswer };
        let delivery = work(target);
        queue.begun |= delivery == Delivery::Done;
        if matches!(delivery, Delivery::NotReady | Delivery::NoAnswer) && !target.exists() {
            queue.target = None;
            return Delivery::NoAnswer;
        }
        delivery
    }

    fn deliver_datagram(&self, queue: &mut SendQueue, qp_num: u32, message: &Message<'_>) -> Delivery {
        let known = &mut queue.datagram_targets;
        let found = known.iter().rposition(|target| target.qp_num == qp_num);
        let found = found.or_else(|| {
            let target = Target::find(self.host, qp_num)?;
            if known.len() == DATAGRAM_TARGETS {
                known.remove(0);
            }
            known.push(target);
            Some(known.len() - 1)
        });
        let Some(found) = found else { return Delivery::NoAnswer };
        let target = &known[found];
        if target.shared().service.load(Relaxed) != IBV_QPT_UD {
            return Delivery::NoAnswer;
        }
        let delivery = target.deliver(self.host, message);
        if matches!(delivery, Delivery::NotReady | Delivery::NoAnswer) && !target.exists() {
            known.remove(found);
        }
        delivery
    }

    /// The queue pair at the other end of the connection, if it is there and answers to this one: same service, and for
    /// RC the packet sequence number as expected. (UC takes any that a message begins with: IBTA vol. 1, section 9.8.2.)
    #[cold]
    fn find_peer(&self) -> Option<Target> {
        let attr = self.attr.lock();
        if attr.ah_attr.grh.dgid != own_gid() {
            return None;
        }
        let target = Target::find(self.host, attr.dest_qp_num)?;
        let shared = target.shared();
        let answers = shared.state.load(Acquire) >= IBV_QPS_RTR
            && shared.service.load(Relaxed) == self.ibv.qp_type
            && (self.ibv.qp_type != IBV_QPT_RC || shared.rq_psn.load(Relaxed) == attr.sq_psn);
        answers.then_some(target)
    }

    /// Completes a work request with an error: a reliable connection fails, the send queue of an unreliable service
    /// stops (SQE; IBTA vol. 1, section 10.3.1.6).
    #[cold]
    pub(crate) fn end_with_error(&self, queue: &mut SendQueue, work: &Work, status: ibv_wc_status) {
        self.complete(work, status);
        if self.ibv.qp_type == IBV_QPT_RC {
            self.shared().fail();
        } else {
            let stopped = |state| (IBV_QPS_RTS..=IBV_QPS_SQD).contains(&state).then_some(IBV_QPS_SQE);
            let _ = self.shared().state.fetch_update(SeqCst, SeqCst, stopped);
        }
        self.flush_sends(queue);
        if self.state() == IBV_QPS_ERR {
            self.flush_receives();
        }
    }

    /// Forgets everything (`RESET`, destruction).
    pub(crate) fn clear_sends(&self, queue: &mut SendQueue) {
        if !queue.waiting.is_empty() {
            self.ctx().waiting.fetch_sub(1, SeqCst);
        }
        self.retired.store(0, SeqCst);
        *queue = SendQueue::default();
    }

    /// Finds the peer before the first message needs it.
    pub(crate) fn warm_up(&self) {
        if self.ibv.qp_type != IBV_QPT_UD {
            self.send.lock().target = self.find_peer();
        }
    }

    /// Puts a completion in the send queue's completion queue.
    #[inline]
    pub(crate) fn complete(&self, work: &Work, status: ibv_wc_status) {
        // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
        let cq = unsafe { Cq::from(self.ibv.send_cq) };
        let entry = Entry {
            wr_id: work.wr_id,
            qp: self,
            status,
            opcode: work.opcode(),
            bytes: work.bytes,
            retires: work.position.wrapping_add(1),
        };
        cq.push(entry, status != IBV_WC_SUCCESS);
    }

    /// A completion up to `position` was polled: so many work requests have left the queue.
    #[inline]
    pub(crate) fn retire(&self, position: u32) {
        self.retired.store(position, Release);
    }
}
