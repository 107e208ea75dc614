//! Work requests that could not be carried out when they were posted: waiting, retrying, giving up.
//!
//! Nothing runs by itself: whatever verb the process calls next tries them again ([`crate::context::Ctx::progress`]).

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::completion::Cq;
use crate::copy::Piece;
use crate::queue_pair::Qp;
use crate::send::{Attempt, SendQueue};
use crate::timer::{Instant, ack_timeout, rnr_timer};
use crate::work::{AnyTask, Pieces, Task, Work};

/// Time between attempts to reach a peer that does not answer: below every timeout in use.
const UNANSWERED_RETRY: std::time::Duration = std::time::Duration::from_micros(50);

/// A work request that waits.
pub(crate) struct Waiting {
    work: Work,
    task: AnyTask,
    payload: Payload,
    /// Set with the first attempt that nobody answered.
    unanswered_since: Option<Instant>,
    rnr_retries: u8,
    not_before: Instant,
}

/// Where a waiting payload is.
pub(crate) enum Payload {
    /// In the program's memory, to be checked when it is sent.
    Elements(Vec<ibv_sge>),
    /// Copied when it was posted.
    Inline(Vec<u8>),
}

impl Qp {
    /// Keeps a work request for another attempt, if there may be one.
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

    /// Puts a work request at the end of those that wait.
    pub(crate) fn wait(&self, queue: &mut SendQueue, waiting: Waiting) {
        queue.waiting.push_back(waiting);
        if queue.waiting.len() == 1 {
            self.ctx().waiting.fetch_add(1, SeqCst);
            // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
            unsafe { (Cq::from(self.ibv.send_cq).nudge(), Cq::from(self.ibv.recv_cq).nudge()) };
        }
    }

    /// What is needed for another attempt.
    #[cold]
    pub(crate) fn hold(&self, work: Work, task: AnyTask, elements: &[ibv_sge], inline: bool) -> Waiting {
        let payload = if inline {
            let mut bytes = Vec::new();
            // An element without bytes may have any address, also null, which no slice has.
            for e in elements.iter().filter(|e| e.length > 0) {
                // SAFETY: inline elements are readable by the contract of ibv_post_send.
                bytes.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(e.addr as *const u8, e.length as usize)
                });
            }
            Payload::Inline(bytes)
        } else {
            Payload::Elements(elements.to_vec())
        };
        let rnr_retries = self.attr.lock().rnr_retry;
        let not_before = Instant::now();
        Waiting { work, task, payload, unanswered_since: None, rnr_retries, not_before }
    }

    /// Tries waiting work requests again.
    #[cold]
    pub(crate) fn retry(&self) {
        let mut queue = self.send.lock();
        match self.state() {
            _ if queue.waiting.is_empty() => return,
            IBV_QPS_SQD => return,
            // A peer has found an error, which the owner has not polled yet.
            IBV_QPS_ERR => return self.flush_sends(&mut queue),
            _ => {}
        }
        while let Some(mut waiting) = queue.waiting.pop_front() {
            match self.retry_one(&mut queue, &mut waiting) {
                None => {
                    queue.waiting.push_front(waiting);
                    return;
                }
                Some(IBV_WC_SUCCESS) if !waiting.work.signaled => {}
                Some(IBV_WC_SUCCESS) => self.complete(&waiting.work, IBV_WC_SUCCESS),
                Some(status) => {
                    if queue.waiting.is_empty() {
                        self.ctx().waiting.fetch_sub(1, SeqCst);
                    }
                    self.end_with_error(&mut queue, &waiting.work, status);
                    return;
                }
            }
        }
        self.ctx().waiting.fetch_sub(1, SeqCst);
    }

    /// One more attempt; `None` while it has to wait on.
    fn retry_one(&self, queue: &mut SendQueue, waiting: &mut Waiting) -> Option<ibv_wc_status> {
        let now = Instant::now();
        if now < waiting.not_before {
            return None;
        }
        let mut pieces = Pieces::new();
        let found = match &waiting.payload {
            Payload::Elements(elements) => {
                self.gather(elements, false, waiting.task.local_access(), &mut pieces)
            }
            Payload::Inline(bytes) => {
                pieces.push(Piece { addr: bytes.as_ptr().cast_mut(), len: bytes.len() });
                true
            }
        };
        if !found {
            return Some(IBV_WC_LOC_PROT_ERR);
        }
        waiting.work.bytes = pieces.bytes() as u32;
        match waiting.task.attempt(self, queue, &waiting.work, &pieces) {
            Attempt::Completed(status) => Some(status),
            Attempt::NotReady => self.not_ready(queue, waiting, now),
            Attempt::Unanswered => self.unanswered(waiting, now),
        }
    }

    /// The receiver has posted nothing: wait as long as it asks, as often as the attributes allow.
    fn not_ready(&self, queue: &SendQueue, waiting: &mut Waiting, now: Instant) -> Option<ibv_wc_status> {
        waiting.unanswered_since = None;
        match waiting.rnr_retries {
            0 => return Some(IBV_WC_RNR_RETRY_EXC_ERR),
            7 => {} // for ever (IBTA vol. 1, section 9.7.5.2.8)
            _ => waiting.rnr_retries -= 1,
        }
        let code = queue.target.as_ref().map_or(0, |t| t.shared().posted.min_rnr_timer.load(Relaxed));
        waiting.not_before = now + rnr_timer(code as u8);
        None
    }

    /// Nobody answers: try until the retries of the ACK timeout are over.
    fn unanswered(&self, waiting: &mut Waiting, now: Instant) -> Option<ibv_wc_status> {
        let attr = self.attr.lock();
        let since = *waiting.unanswered_since.get_or_insert(now);
        let patience = ack_timeout(attr.timeout).map(|timeout| timeout * (u32::from(attr.retry_cnt) + 1));
        if patience.is_some_and(|patience| now - since > patience) {
            return Some(IBV_WC_RETRY_EXC_ERR);
        }
        waiting.not_before = now + UNANSWERED_RETRY;
        None
    }

    /// Flushes what waits.
    pub(crate) fn flush_sends(&self, queue: &mut SendQueue) {
        if !queue.waiting.is_empty() {
            self.ctx().waiting.fetch_sub(1, SeqCst);
        }
        for waiting in std::mem::take(&mut queue.waiting) {
            self.complete(&waiting.work, IBV_WC_WR_FLUSH_ERR);
        }
    }
}
