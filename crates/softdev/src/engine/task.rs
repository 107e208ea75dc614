//! Work requests of the send queue: their content, and what to do.

use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::memory::pieces::Pieces;
use crate::objects::context::Ah;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::objects::work::{AnyTask, Attempt, Sending, Work};
use crate::sys::limits::MAX_MESSAGE_BYTES;
use crate::transport::delivery::Delivery;
use crate::transport::local::address::{MULTICAST_QP, Way};
use crate::transport::local::gids::active_mtu_bytes;
use crate::transport::local::region::Access;
use crate::transport::message::{Datagram, Message};
use crate::transport::remote::Remote;
use crate::transport::target::Target;

/// What a work request does with its payload.
pub(crate) trait Task: Copy {
    /// Returns how it accesses this process's own memory.
    fn local_access(&self) -> Access;
    /// Returns the error that the requester itself finds.
    fn local_fault(&self, qp: &Qp, bytes: u64) -> Option<ibv_wc_status>;
    /// Tries to carry it out.
    fn attempt(&self, qp: &Qp, queue: &mut SendQueue, work: &Work, pieces: &Pieces) -> Attempt;
    /// Converts it to a task of any kind.
    fn any(self) -> AnyTask;
}

impl Work {
    /// Returns the message that it sends.
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

impl Task for Sending {
    #[inline]
    fn local_access(&self) -> Access {
        Access::Gather
    }

    #[inline]
    fn local_fault(&self, qp: &Qp, bytes: u64) -> Option<ibv_wc_status> {
        let limit = if self.0.is_some() { active_mtu_bytes(qp.device) } else { MAX_MESSAGE_BYTES };
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
            Some((Way::Port(end), number, _)) => {
                qp.deliver_datagram(queue, number, |port, own| end.is_at(port, own), &message)
            }
            Some((Way::Group, MULTICAST_QP, Datagram { ends: Some([_, group]), .. })) => {
                qp.deliver_to_group(queue, group, &message)
            }
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

    #[inline(always)]
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

impl Qp {
    /// Returns where a send goes.
    ///
    /// # Safety
    /// The request's address handle, if the service has one, is alive.
    #[inline]
    pub(crate) unsafe fn destination(&self, wr: &ibv_send_wr) -> Sending {
        Sending((self.ibv.qp_type == IBV_QPT_UD).then(|| {
            // SAFETY: the request is a datagram's, so this member is the one that was written.
            let ud = unsafe { wr.wr.ud };
            // SAFETY: the caller guarantees the handle.
            let Ah { attr, destination, ends, .. } = unsafe { &*ud.ah.cast::<Ah>() };
            let service_level = attr.sl;
            let traffic_class = attr.grh.traffic_class;
            let device = self.device;
            // A Q_Key with its high bit set stands for the queue pair's own Q_Key (IBTA vol. 1,
            // section 10.2.5).
            let qkey =
                if ud.remote_qkey >> 31 == 0 { ud.remote_qkey } else { self.shared().qkey.load(Relaxed) };
            let datagram = Datagram { qkey, service_level, traffic_class, device, ends: *ends };
            (*destination, ud.remote_qpn, datagram)
        }))
    }
}
