//! Work requests that could not be carried out when they were posted: waiting, retrying, giving up.
//!
//! Nothing runs by itself: the next verb that the process calls tries them again
//! ([`crate::objects::context::Ctx::progress`]).

use std::sync::atomic::Ordering::SeqCst;

use verbs::abi::*;

use crate::engine::task::Task;
use crate::memory::copy::Piece;
use crate::memory::pieces::Pieces;
use crate::objects::completion::Cq;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::objects::waiting::{Payload, Stage, Waiting};
use crate::objects::work::{AnyTask, Attempt, Work};
use crate::sys::timer::{ack_timeout, rnr_timer};
use crate::transport::local::link::Ticks;
use crate::transport::target::Target;

/// The time between attempts to reach a peer that does not answer: below every timeout in use.
const UNANSWERED_RETRY: std::time::Duration = std::time::Duration::from_micros(50);

impl Qp {
    /// Keeps a work request for another attempt, if it may have one.
    #[cold]
    pub(crate) fn try_later(&self, queue: &mut SendQueue, failed: Attempt, mut waiting: Waiting) {
        let now = waiting.not_before;
        let ended = match failed {
            Attempt::NotReady => self.not_ready(queue, &mut waiting, now),
            _ => self.unanswered(&mut waiting, now),
        };
        match ended {
            Some(status) => self.end_with_error(queue, &waiting.work, status),
            None => self.wait(queue, waiting),
        }
    }

    /// Appends a work request to those that wait.
    pub(crate) fn wait(&self, queue: &mut SendQueue, waiting: Waiting) {
        let posted = waiting.not_before;
        queue.waiting.push_back(waiting);
        if self.state() == IBV_QPS_RTS {
            self.admit(queue, posted);
            self.fetch(queue, posted);
        }
        if self.recount(queue) {
            // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
            unsafe { (Cq::from(self.ibv.send_cq).nudge(), Cq::from(self.ibv.recv_cq).nudge()) };
        }
    }

    /// Counts a queue that has begun or ceased to need attention; true if it has begun.
    pub(crate) fn recount(&self, queue: &mut SendQueue) -> bool {
        let is_busy = !queue.is_idle();
        match (queue.is_counted, is_busy) {
            (false, true) => self.ctx().waiting.fetch_add(1, SeqCst),
            (true, false) => self.ctx().waiting.fetch_sub(1, SeqCst),
            _ => return false,
        };
        queue.is_counted = is_busy;
        is_busy
    }

    /// Returns what another attempt needs.
    #[cold]
    pub(crate) fn hold(&self, work: Work, task: AnyTask, elements: &[ibv_sge], flags: u32) -> Waiting {
        let payload = if flags & IBV_SEND_INLINE != 0 {
            let mut bytes = Vec::new();
            // An element without bytes may have any address, even null, which a slice cannot have.
            for e in elements.iter().filter(|e| e.length > 0) {
                // SAFETY: inline elements are readable by the contract of ibv_post_send.
                bytes.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(e.addr as *const u8, e.length as usize)
                });
            }
            Payload::Copied(bytes)
        } else if let [element] = elements {
            Payload::Element([*element])
        } else {
            Payload::Elements(elements.to_vec())
        };
        let rnr_retries = self.attr.lock().rnr_retry;
        let not_before = Ticks::now();
        Waiting {
            work,
            task,
            payload,
            unanswered_since: None,
            rnr_retries,
            not_before,
            schedule: None,
            fenced: flags & IBV_SEND_FENCE != 0,
            stage: Stage::Posted,
        }
    }

    /// Tries waiting work requests again, unless another thread uses the queue.
    #[cold]
    pub(crate) fn retry(&self) {
        let Some(mut queue) = self.send.lock_if_free() else { return };
        match self.state() {
            _ if queue.is_idle() => return,
            IBV_QPS_SQD => return,
            // A peer has found an error that the owner has not polled yet.
            IBV_QPS_ERR => return self.flush_sends(&mut queue),
            _ => {}
        }
        let now = Ticks::now();
        if queue.flights.link.is_some() {
            self.fetch(&mut queue, now);
            self.complete_departed(&mut queue, now);
            self.complete_acknowledged(&mut queue, now);
        }
        let mut delivered = 0;
        let mut due = None;
        while let Some(mut waiting) = queue.waiting.pop_front() {
            match self.retry_one(&mut queue, &mut waiting, now) {
                None => {
                    queue.waiting.push_front(waiting);
                    break;
                }
                Some(IBV_WC_SUCCESS) => {
                    delivered += 1;
                    due = waiting.schedule.map(|schedule| schedule.is_there);
                    self.arrived(&mut queue, &waiting);
                    self.admit(&mut queue, due.unwrap_or(now));
                }
                Some(status) => {
                    self.end_with_error(&mut queue, &waiting.work, status);
                    break;
                }
            }
        }
        if let (1, Some(due)) = (delivered, due) {
            queue.flights.lead.learn(due, Ticks::now());
        }
        self.recount(&mut queue);
    }

    /// Makes one more attempt; `None` if the request must go on waiting.
    fn retry_one(&self, queue: &mut SendQueue, waiting: &mut Waiting, now: Ticks) -> Option<ibv_wc_status> {
        if !waiting.is_due(now, queue.flights.lead) {
            return None;
        }
        if queue.flights.link.is_some() && waiting.schedule.is_none() {
            // Posted before the queue pair could send, or to be sent again.
            self.schedule(queue, waiting, now);
            return None;
        }
        if let Stage::Faulty(status) = waiting.stage {
            return Some(status);
        }
        let mut pieces = Pieces::new();
        if !self.gather_waiting(&waiting.task, &waiting.payload, &mut pieces) {
            return Some(IBV_WC_LOC_PROT_ERR);
        }
        waiting.work.bytes = pieces.bytes() as u32;
        match waiting.task.attempt(self, queue, &waiting.work, &pieces) {
            Attempt::Completed(status) => Some(status),
            failed => {
                waiting.schedule = None;
                match failed {
                    Attempt::NotReady => self.not_ready(queue, waiting, now),
                    _ => self.unanswered(waiting, now),
                }
            }
        }
    }

    /// Locates a waiting payload, or where it is to go; false if that is not allowed.
    pub(crate) fn gather_waiting(&self, task: &AnyTask, payload: &Payload, pieces: &mut Pieces) -> bool {
        let copied = |bytes: &Vec<u8>| Piece { addr: bytes.as_ptr().cast_mut(), len: bytes.len() };
        match payload {
            Payload::Elements(elements) => self.gather(elements, false, task.local_access(), pieces),
            Payload::Element(element) => self.gather(element, false, task.local_access(), pieces),
            Payload::Copied(bytes) => {
                pieces.push(copied(bytes));
                true
            }
            Payload::Begun(bytes, elements) => {
                pieces.push(copied(bytes));
                self.gather(elements, false, task.local_access(), pieces)
            }
        }
    }

    /// The receiver has posted nothing: wait as long as it demands, as often as the attributes
    /// allow.
    fn not_ready(&self, queue: &SendQueue, waiting: &mut Waiting, now: Ticks) -> Option<ibv_wc_status> {
        waiting.unanswered_since = None;
        match waiting.rnr_retries {
            0 => return Some(IBV_WC_RNR_RETRY_EXC_ERR),
            7 => {} // for ever (IBTA vol. 1, section 9.7.5.2.8)
            _ => waiting.rnr_retries -= 1,
        }
        let code = queue.target.as_ref().map_or(0, Target::rnr_timer);
        waiting.not_before = now.after(rnr_timer(code as u8));
        None
    }

    /// The peer does not answer: try until the retries of the ACK timeout are over.
    fn unanswered(&self, waiting: &mut Waiting, now: Ticks) -> Option<ibv_wc_status> {
        let attr = self.attr.lock();
        let since = *waiting.unanswered_since.get_or_insert(now);
        let patience = ack_timeout(attr.timeout).map(|timeout| timeout * (u32::from(attr.retry_cnt) + 1));
        if patience.is_some_and(|patience| now > since.after(patience)) {
            return Some(IBV_WC_RETRY_EXC_ERR);
        }
        waiting.not_before = now.after(UNANSWERED_RETRY);
        None
    }

    /// Flushes the waiting requests.
    pub(crate) fn flush_sends(&self, queue: &mut SendQueue) {
        self.complete_acknowledged(queue, Ticks::MAX);
        for waiting in std::mem::take(&mut queue.waiting) {
            if waiting.stage != Stage::Sent {
                self.complete(&waiting.work, IBV_WC_WR_FLUSH_ERR);
            }
        }
        self.recount(queue);
    }
}
