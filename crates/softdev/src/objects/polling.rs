//! The extension of a completion queue that is read member by member.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};

use verbs::abi::*;

use crate::sys::spin::{Guard, SpinLock};

/// The extension of a queue.
pub(crate) struct Extended {
    /// Held from `start_poll` to `end_poll`.
    pub(crate) turn: SpinLock<()>,
    /// Whether the program promises that only one thread polls.
    pub(crate) single_threaded: bool,
    /// Whether stamps are asked for as time of day.
    pub(crate) wallclock: bool,
    pub(crate) current: UnsafeCell<Current>,
}

// SAFETY: only the holder of `turn` accesses the completion.
unsafe impl Sync for Extended {}

/// The completion that is being read.
pub(crate) struct Current {
    pub(crate) wc: ibv_wc,
    pub(crate) stamp: u64,
    /// What to add to a stamp for the time of day.
    pub(crate) to_wallclock: u64,
}

/// The parameters of a new queue.
pub(crate) struct Making {
    pub(crate) cqe: c_int,
    pub(crate) cq_context: *mut c_void,
    pub(crate) channel: *mut ibv_comp_channel,
    pub(crate) comp_vector: c_int,
    /// Whether an overrun loses the oldest completion instead of failing the queue.
    pub(crate) keeps_latest: bool,
    /// Whether completions get a time stamp.
    pub(crate) stamped: bool,
    pub(crate) extended: Option<Extended>,
}

impl Making {
    /// For `ibv_create_cq`.
    pub(crate) fn plain(
        cqe: c_int,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: c_int,
    ) -> Self {
        Self { cqe, cq_context, channel, comp_vector, keeps_latest: false, stamped: false, extended: None }
    }
}

impl Extended {
    /// Takes the turn.
    #[inline]
    pub(crate) fn begin(&self) {
        if self.single_threaded {
            self.turn.hold_alone();
        } else {
            self.turn.hold();
        }
    }

    /// Keeps other threads from polling, for one call of `ibv_poll_cq`.
    #[inline]
    pub(crate) fn alone(&self) -> Guard<'_, ()> {
        self.begin();
        // SAFETY: this thread has just taken it.
        unsafe { self.turn.held() }
    }
}
