//! The send queue: posting, carrying out, completing.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::engine::port::is_up;
use crate::engine::task::Task;
use crate::memory::copy::Piece;
use crate::memory::pieces::Pieces;
use crate::objects::completion::Cq;
use crate::objects::own::Entry;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::objects::work::{Attempt, INLINE, Sending, Work, list_of};
use crate::transport::delivery::Delivery;
use crate::transport::local::address::Way;
use crate::transport::local::link::Ticks;
use crate::transport::local::place::Place;
use crate::transport::local::region::{Access, locate};
use crate::transport::message::Message;
use crate::transport::remote::Remote;
use crate::transport::target::Target;

/// The number of datagram peers that a queue pair remembers.
const DATAGRAM_TARGETS: usize = 64;

impl Qp {
    /// Posts all of these requests or none.
    ///
    /// # Safety
    /// As for [`post`](Self::post), which must refuse none of them for its own content.
    #[inline]
    pub(crate) unsafe fn post_together(&self, requests: &[ibv_send_wr]) -> Result<(), c_int> {
        let mut queue = self.send.lock();
        // Under the lock, the state may change to one in which requests are flushed, but not to one
        // that refuses them.
        if self.state() < IBV_QPS_RTS {
            return Err(libc::EINVAL);
        }
        let under_way = queue.tail.wrapping_sub(self.retired.load(Acquire)) as usize;
        if under_way + requests.len() > self.cap.max_send_wr as usize {
            return Err(libc::ENOMEM);
        }
        // SAFETY: the caller guarantees the requests.
        requests.iter().try_for_each(|request| unsafe { self.post(&mut queue, request) })
    }

    /// # Safety
    /// The request's elements are readable; its address handle, if the service has one, is alive.
    #[inline(always)]
    pub(crate) unsafe fn post(&self, queue: &mut SendQueue, wr: &ibv_send_wr) -> Result<(), c_int> {
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
        // SAFETY: the caller guarantees the elements.
        let elements = unsafe { list_of(wr.sg_list, wr.num_sge as usize) };
        if inline
            && elements.iter().map(|e| u64::from(e.length)).sum::<u64>() > u64::from(self.cap.max_inline_data)
        {
            return Err(libc::EINVAL);
        }
        if queue.tail.wrapping_sub(self.retired.load(Acquire)) >= self.cap.max_send_wr {
            return Err(libc::ENOMEM);
        }
        if Remote::is_asked_for(wr) {
            self.take_on_reach(queue, state, wr, elements);
        } else {
            // SAFETY: the caller guarantees the address handle.
            let sending = unsafe { self.destination(wr) };
            if let Sending(Some((Way::Port(_), number, _))) = sending
                && self.datagram_target(queue, number).is_none()
                && let Some(errno) = self.host.obstacle(number)
            {
                // If it were dropped, the datagram would look like one that the network has lost.
                return Err(errno);
            }
            self.take_on(queue, state, wr, sending, elements);
        }
        Ok(())
    }

    /// Accepts a work request: carries it out, or keeps it for later.
    #[inline]
    fn take_on(
        &self,
        queue: &mut SendQueue,
        state: ibv_qp_state,
        wr: &ibv_send_wr,
        task: impl Task,
        elements: &[ibv_sge],
    ) {
        let mut work = Work::of(wr, queue.tail, self.sq_sig_all);
        queue.tail = queue.tail.wrapping_add(1);
        let inline = wr.send_flags & IBV_SEND_INLINE != 0;
        if state >= IBV_QPS_SQE {
            self.flush_sends(queue);
            return self.complete(&work, IBV_WC_WR_FLUSH_ERR);
        }
        if state == IBV_QPS_SQD || !queue.is_prompt() {
            return self.wait(queue, self.hold(work, task.any(), elements, wr.send_flags));
        }
        let mut pieces = Pieces::new();
        let attempt = if self.gather(elements, inline, task.local_access(), &mut pieces) {
            work.bytes = pieces.bytes() as u32;
            task.attempt(self, queue, &work, &pieces)
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
            failed => self.try_later(queue, failed, self.hold(work, task.any(), elements, wr.send_flags)),
        }
    }

    /// A function of its own, so that sends do not pay for it.
    #[inline(never)]
    fn take_on_reach(
        &self,
        queue: &mut SendQueue,
        state: ibv_qp_state,
        wr: &ibv_send_wr,
        elements: &[ibv_sge],
    ) {
        self.take_on(queue, state, wr, Remote::of(wr), elements);
    }

    /// Locates the payload, or where it is to go; false if an element is not covered by a
    /// registration of the queue pair's protection domain that allows the access.
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

    /// Returns what a delivery means to the requester.
    #[inline]
    pub(crate) fn outcome(&self, delivery: Delivery) -> Attempt {
        match delivery {
            Delivery::Done => Attempt::Completed(IBV_WC_SUCCESS),
            // An unreliable service never learns the outcome of a message.
            _ if self.ibv.qp_type != IBV_QPT_RC => Attempt::Completed(IBV_WC_SUCCESS),
            // IBTA vol. 1, section 9.7.5.2: NAK codes, and how the requester reports them.
            Delivery::TooLong | Delivery::Invalid => Attempt::Completed(IBV_WC_REM_INV_REQ_ERR),
            Delivery::BadReceive => Attempt::Completed(IBV_WC_REM_OP_ERR),
            Delivery::Denied => Attempt::Completed(IBV_WC_REM_ACCESS_ERR),
            Delivery::NotReady => Attempt::NotReady,
            Delivery::NoAnswer => Attempt::Unanswered,
        }
    }

    /// Runs `work` on the connected peer.
    #[inline]
    pub(crate) fn with_peer(
        &self,
        queue: &mut SendQueue,
        work: impl FnOnce(&Target) -> Delivery,
    ) -> Delivery {
        let begun = queue.begun;
        let Some(target) = self.peer(queue) else { return Delivery::NoAnswer };
        let delivery = work(target);
        let is_gone = matches!(delivery, Delivery::NotReady | Delivery::NoAnswer) && !target.exists();
        if delivery == Delivery::Done && !begun {
            target.greet(self.host);
        }
        queue.begun |= delivery == Delivery::Done;
        if is_gone {
            queue.target = None;
            return Delivery::NoAnswer;
        }
        delivery
    }

    /// Returns the connected peer, if it can be found.
    #[inline]
    pub(crate) fn peer<'a>(&self, queue: &'a mut SendQueue) -> Option<&'a Target> {
        if queue.target.is_none() && !(queue.begun && self.ibv.qp_type == IBV_QPT_RC) {
            queue.target = self.find_peer();
        }
        queue.target.as_ref()
    }

    /// Returns the index of a queue pair for datagrams; finds it if it is not known.
    pub(crate) fn datagram_target(&self, queue: &mut SendQueue, qp_num: u32) -> Option<usize> {
        let known = &mut queue.datagram_targets;
        let found = known.iter().rposition(|target| target.number() == qp_num);
        found.or_else(|| {
            let target = Target::find(self.host, qp_num)?;
            if known.len() == DATAGRAM_TARGETS {
                known.remove(0);
            }
            known.push(target);
            Some(known.len() - 1)
        })
    }

    pub(crate) fn deliver_datagram(
        &self,
        queue: &mut SendQueue,
        qp_num: u32,
        is_port: impl Fn(u32, u32) -> bool,
        message: &Message<'_>,
    ) -> Delivery {
        let own = self.shared().port.load(Relaxed);
        if !is_up(own) {
            return Delivery::NoAnswer;
        }
        let Some(found) = self.datagram_target(queue, qp_num) else { return Delivery::NoAnswer };
        let known = &mut queue.datagram_targets;
        let target = &known[found];
        if !target.takes_datagrams(|port| is_port(port, own)) {
            return Delivery::NoAnswer;
        }
        let delivery = target.deliver(self.host, self.shared(), message);
        if matches!(delivery, Delivery::NotReady | Delivery::NoAnswer) && !target.exists() {
            known.remove(found);
        }
        delivery
    }

    /// Finds the connected queue pair, if it exists and answers to this one.
    #[cold]
    fn find_peer(&self) -> Option<Target> {
        if !self.has_port() {
            return None;
        }
        let attr = self.attr.lock();
        let Way::Port(end) = *self.way.lock() else { return None };
        let target = Target::find(self.host, attr.dest_qp_num)?;
        target.answers(self.ibv.qp_type, end, attr.sq_psn).then_some(target)
    }

    /// Completes a work request with an error. A reliable connection fails; the send queue of an
    /// unreliable service stops (SQE; IBTA vol. 1, section 10.3.1.6).
    #[cold]
    pub(crate) fn end_with_error(&self, queue: &mut SendQueue, work: &Work, status: ibv_wc_status) {
        self.complete_acknowledged(queue, Ticks::MAX);
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

    /// Discards all sends (`RESET`, destruction).
    pub(crate) fn clear_sends(&self, queue: &mut SendQueue) {
        let is_counted = queue.is_counted;
        *queue = SendQueue { is_counted, ..SendQueue::on(queue.flights.link) };
        self.recount(queue);
        self.retired.store(0, SeqCst);
    }

    /// Finds the peer before the first message needs it.
    pub(crate) fn warm_up(&self) {
        if self.ibv.qp_type != IBV_QPT_UD {
            self.send.lock().target = self.find_peer();
        }
    }

    /// Puts a completion in the send queue's completion queue.
    pub(crate) fn complete(&self, work: &Work, status: ibv_wc_status) {
        self.push_completion(Entry {
            wr_id: work.wr_id,
            qp: self,
            status,
            opcode: work.opcode,
            bytes: work.bytes,
            retires: work.position.wrapping_add(1),
            stamp: 0,
        });
    }

    #[inline(always)]
    pub(crate) fn push_completion(&self, entry: Entry) {
        // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
        let cq = unsafe { Cq::from(self.ibv.send_cq) };
        let is_error = entry.status != IBV_WC_SUCCESS;
        if !cq.push(entry, is_error) {
            self.break_down();
        }
    }

    /// Fails the queue pair because a completion cannot be reported (a local work queue
    /// catastrophic error of IBTA vol. 1, section 11.6.3.2). Called under the lock of the send
    /// queue.
    #[cold]
    fn break_down(&self) {
        if self.shared().state.swap(IBV_QPS_ERR, SeqCst) != IBV_QPS_ERR {
            self.raise(IBV_EVENT_QP_FATAL);
            self.flush_receives();
        }
    }

    /// Notes that a completion up to `position` was polled: these work requests have left the
    /// queue.
    #[inline]
    pub(crate) fn retire(&self, position: u32) {
        self.retired.store(position, Release);
    }
}
