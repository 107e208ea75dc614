//! Taking completions from a queue.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, Release};

use verbs::abi::*;

use crate::objects::blank::blank_completion;
use crate::objects::completion::{Cq, Entries, Taken};
use crate::objects::queue_pair::Qp;
use crate::sys::clock;

/// Completions that one source yields in a row while others may have some: few enough that none
/// starves, and enough that one busy queue pair of many does not cost a look at all the others each
/// time.
const IN_A_ROW: u32 = 16;

impl Entries {
    /// Takes the next completion; sets `failed` if a queue pair is found to have failed.
    #[inline]
    fn next(&mut self, wc: &mut ibv_wc, failed: &mut Option<*const Qp>) -> bool {
        if self.own_in_a_row < IN_A_ROW {
            return self.next_own(wc) || self.next_received(wc, failed);
        }
        self.own_in_a_row = 0;
        self.next_received(wc, failed) || self.next_own(wc)
    }

    /// Whether no further completion is there; a quick check.
    #[inline]
    fn are_over(&self) -> bool {
        // SAFETY: a queue pair removes itself from the list, under the lock that is held, before it
        // is destroyed.
        matches!(self.receivers[..], [qp] if self.own.len() == 0 && unsafe { &*qp }.awaits_next())
    }

    #[inline]
    fn next_own(&mut self, wc: &mut ibv_wc) -> bool {
        let Some(entry) = self.own.pop() else { return false };
        // SAFETY: completions of a queue pair are removed before it is destroyed.
        let qp = unsafe { &*entry.qp };
        qp.retire(entry.retires);
        *wc = blank_completion(entry.wr_id, entry.status, entry.opcode, qp.ibv.qp_num);
        wc.byte_len = entry.bytes;
        self.stamp = entry.stamp;
        self.own_in_a_row += 1;
        true
    }

    #[inline]
    fn next_received(&mut self, wc: &mut ibv_wc, failed: &mut Option<*const Qp>) -> bool {
        for _ in 0..self.receivers.len() {
            if self.turn >= self.receivers.len() {
                self.turn = 0;
            }
            let qp = self.receivers[self.turn];
            // SAFETY: a queue pair removes itself from the list, under the lock that is held,
            // before it is destroyed.
            let taken = unsafe { &*qp }.receive_completion(wc, &mut self.stamp);
            if taken == Taken::Failure {
                *failed = Some(qp);
            }
            if taken == Taken::Receive {
                if self.stamped {
                    self.stamp = clock::recent(self.stamp);
                }
                self.own_in_a_row = 0;
                self.received_in_a_row += 1;
                if self.received_in_a_row == IN_A_ROW {
                    self.next_turn();
                }
                return true;
            }
            self.next_turn();
        }
        false
    }

    #[inline]
    fn next_turn(&mut self) {
        self.turn += 1;
        self.received_in_a_row = 0;
    }
}

impl Cq {
    /// Whether the queue is empty; a quick check. If it is, waiting sends have been tried again.
    #[inline]
    pub(crate) fn is_seen_empty(&self) -> bool {
        let empty = self.peek.is_empty();
        if empty {
            self.ctx().progress();
        }
        empty
    }

    /// Takes completions; returns how many, or a negative error number.
    ///
    /// # Safety
    /// There is space for `room` completions.
    #[inline]
    pub(crate) unsafe fn take(&self, room: c_int, wc: *mut ibv_wc) -> c_int {
        let mut failed = None;
        let mut found = 0;
        let mut entries = self.entries.lock();
        while found < room {
            // SAFETY: the caller passes space for this many completions; integers need no
            // initialisation to be written.
            let wc = unsafe { &mut *wc.add(found as usize) };
            if !entries.next(wc, &mut failed) {
                break;
            }
            found += 1;
            if failed.is_some() || entries.are_over() {
                break;
            }
        }
        if self.stamped {
            self.stamp.store(entries.stamp, Relaxed);
        }
        // SAFETY: the queue pair is on the list of the queue, whose lock is held, so it still
        // exists; from here on it is held.
        let failed = failed.map(|qp| unsafe { &*qp });
        if let Some(qp) = failed {
            qp.holders.fetch_add(1, Relaxed);
        }
        let overrun = entries.overrun && found == 0;
        self.look(&entries);
        drop(entries);
        if let Some(qp) = failed {
            qp.flush();
            qp.holders.fetch_sub(1, Release);
            if found == 0 && !overrun && !self.is_seen_empty() {
                // The flushed requests are complete now.
                // SAFETY: as the caller guarantees.
                return unsafe { self.take(room, wc) };
            }
        }
        self.ctx().progress();
        if overrun { -libc::EOVERFLOW } else { found }
    }
}
