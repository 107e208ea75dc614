//! Completion queues.
//!
//! Completions come from two places. Completions of this process's own work (sends, errors) are in
//! a list here. Completions of receives are in the lanes of the queue pairs that use the queue,
//! where requesters put them; polling looks at each lane in turn.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use verbs::abi::*;

use crate::memory::slots::{Slot, SlotState};
use crate::objects::context::Ctx;
use crate::objects::own::{Entry, Own};
use crate::objects::polling::Extended;
use crate::objects::queue_pair::Qp;
use crate::objects::spot::Spot;
use crate::sys::clock;
use crate::sys::own_lock::OwnLock;
use crate::sys::sync::Cpu;
use crate::transport::local::arming::shown;
use crate::transport::local::host::Host;
use crate::transport::local::notify::notify;

/// A completion queue.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) ibv: ibv_cq_ex,
    /// The entry in this process's table.
    pub(crate) index: u32,
    /// Distinguishes the queue from earlier ones with the same entry.
    pub(crate) serial: u32,
    pub(crate) host: &'static Host,
    pub(crate) entries: OwnLock<Entries>,
    pub(crate) peek: Peek,
    /// For programs that read completions member by member.
    pub(crate) extended: Option<Extended>,
    /// Whether completions get a time stamp.
    pub(crate) stamped: bool,
    /// The stamp of the completion that was taken last, if the queue has stamps.
    pub(crate) stamp: AtomicU64,
    /// Events taken from the channel, and events acknowledged: destruction waits until the counts
    /// are equal.
    pub(crate) taken: AtomicU64,
    pub(crate) acknowledged: AtomicU64,
}

/// What an empty queue looks like without its lock. Most polls find nothing, and how soon one finds
/// something is part of every latency.
#[derive(Default)]
pub(crate) struct Peek {
    /// The number of completions of this process's own work.
    own: AtomicUsize,
    /// Where the next receive will complete: [`NOWHERE`] if no queue pair's receives complete here,
    /// null if those of several do. Slots are never unmapped, so a look at one that has just been
    /// freed is harmless.
    next: Spot<AtomicPtr<Slot>, AtomicU32>,
    /// The state of that queue pair.
    state: AtomicPtr<AtomicU32>,
    /// Whether that queue pair takes its receives from a shared queue, which needs attention now
    /// and then.
    is_shared: AtomicBool,
    /// Quick checks that found nothing. Counts may be lost to another thread.
    in_vain: AtomicU32,
}

/// A slot in which nothing will ever complete, and the state of no queue pair.
// SAFETY: all-zero bytes are a valid slot: atomic integers.
static NOWHERE: Slot = unsafe { std::mem::zeroed() };
static NOBODY: AtomicU32 = AtomicU32::new(IBV_QPS_RESET);

/// Quick checks of an empty queue with a shared receive queue before a full look.
const GLANCES: u32 = 64;

impl Peek {
    /// Whether there is nothing to take.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.has_nothing() && !(self.is_shared.load(Relaxed) && self.is_enough())
    }

    /// Counts a quick check in vain; returns whether a full look is due.
    #[inline]
    fn is_enough(&self) -> bool {
        let glances = self.in_vain.load(Relaxed);
        self.in_vain.store(glances.wrapping_add(1), Relaxed);
        glances.is_multiple_of(GLANCES)
    }

    #[inline]
    fn has_nothing(&self) -> bool {
        let (number, slot) = self.next.get();
        // SAFETY: the pointer is null, to the slot above, or to a slot of this process's arena,
        // which stays mapped as long as the process runs.
        let Some(slot) = (unsafe { slot.as_ref() }) else { return false };
        let word = slot.state.load(Acquire);
        // SAFETY: a slot is stored only after a state, and neither is ever unmapped.
        let state = unsafe { &*self.state.load(Relaxed) };
        self.own.load(Relaxed) == 0 && !SlotState::is_over(word, number) && state.load(Relaxed) != IBV_QPS_ERR
    }
}

pub(crate) struct Entries {
    pub(crate) own: Own,
    pub(crate) overrun: bool,
    /// Whether an overrun loses the oldest completion instead of failing the queue.
    pub(crate) keeps_latest: bool,
    /// Whether completions get a time stamp.
    pub(crate) stamped: bool,
    /// The stamp of the completion that was taken last.
    pub(crate) stamp: u64,
    /// Queue pairs whose receives complete here.
    pub(crate) receivers: Vec<*const Qp>,
    /// The number of uses by queue pairs, as send and as receive queue: a queue in use cannot be
    /// destroyed.
    pub(crate) users: usize,
    /// The receiver that is looked at first.
    pub(crate) turn: usize,
    /// Completions in a row from the receiver at `turn`.
    pub(crate) received_in_a_row: u32,
    /// Completions in a row from `own`.
    pub(crate) own_in_a_row: u32,
}

// SAFETY: the pointers are to queue pairs, which are shared between threads and remove themselves
// before they are destroyed.
unsafe impl Send for Entries {}

impl Cq {
    /// # Safety
    /// `cq` is a live queue of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(cq: *mut ibv_cq) -> &'a Self {
        // SAFETY: every ibv_cq of this device is the first member of a Cq.
        unsafe { &*cq.cast::<Self>() }
    }

    pub(crate) fn ctx(&self) -> &Ctx {
        // SAFETY: a queue's context lives at least as long as the queue.
        unsafe { Ctx::from(self.ibv.context) }
    }

    /// Whether completions get a time stamp.
    pub(crate) fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Returns the extension of a queue that `ibv_create_cq_ex` made.
    #[inline]
    pub(crate) fn extended(&self) -> Option<&Extended> {
        self.extended.as_ref()
    }

    /// Returns the stamp of the completion that was taken last. For callers that keep other threads
    /// from polling.
    #[inline]
    pub(crate) fn last_stamp(&self) -> u64 {
        self.stamp.load(Relaxed)
    }

    /// Adds a completion of this process's own work. Returns false if the queue has overrun: it
    /// takes no more completions, and its owner gets one event (IBTA vol. 1, section 11.6.3.1).
    ///
    /// Always inline: an entry that is passed in memory is written in small pieces and read in
    /// large ones. Such a read waits until all earlier stores are done, even the one that has just
    /// published a message.
    #[inline(always)]
    pub(crate) fn push(&self, mut entry: Entry, solicited: bool) -> bool {
        if self.stamped {
            entry.stamp = clock::now();
        }
        let mut entries = self.entries.lock();
        if entries.own.is_full() && entries.keeps_latest {
            entries.own.pop();
        }
        if entries.overrun || !entries.own.push(entry) {
            if !std::mem::replace(&mut entries.overrun, true) {
                self.look(&entries);
                self.raise(IBV_EVENT_CQ_ERR);
            }
            return false;
        }
        self.peek.own.store(entries.own.len(), Relaxed);
        drop(entries);
        if !self.ibv.channel.is_null() {
            shown::<Cpu>();
        }
        notify(self.host, &self.host.arena.view, None, self.index, solicited);
        true
    }

    /// Raises an event of this queue.
    #[cold]
    fn raise(&self, event: ibv_event_type) {
        self.ctx().events.raise(event, self.index, self.serial);
    }

    /// Notes where the next completion will appear. Called under the lock whenever that has
    /// changed.
    #[inline]
    pub(crate) fn look(&self, entries: &Entries) {
        self.peek.own.store(entries.own.len(), Relaxed);
        let only = match entries.receivers[..] {
            // A full look tells the owner.
            _ if entries.overrun => None,
            // SAFETY: a queue pair removes itself from the list, under the lock that is held,
            // before it is destroyed.
            [qp] => Some(unsafe { &*qp }),
            [] => {
                self.peek.is_shared.store(false, Relaxed);
                self.peek.state.store((&raw const NOBODY).cast_mut(), Relaxed);
                return self.peek.next.set((&raw const NOWHERE).cast_mut(), 0);
            }
            _ => None,
        };
        // A receive that was reclaimed from a dead peer has to be looked at again and again.
        let Some(qp) = only.filter(|qp| !qp.recovered()) else {
            return self.peek.next.set_nowhere(std::ptr::null_mut());
        };
        self.peek.is_shared.store(qp.shares_receives(), Relaxed);
        let (number, slot) = qp.next_slot();
        self.peek.state.store((&raw const qp.shared().state).cast_mut(), Relaxed);
        self.peek.next.set((&raw const *slot).cast_mut(), number);
    }

    /// Lets a queue pair's sends complete here.
    pub(crate) fn attach_sender(&self) {
        self.entries.lock().users += 1;
    }

    /// Lets a queue pair's receives complete here.
    pub(crate) fn attach_receiver(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.users += 1;
        entries.receivers.push(qp);
        self.look(&entries);
    }

    /// Removes one use by a queue pair, and its completions.
    pub(crate) fn detach(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.users -= 1;
        entries.receivers.retain(|other| *other != qp);
        entries.own.retain(|entry| entry.qp != qp);
        self.look(&entries);
    }

    /// Removes a queue pair's completions (`RESET`).
    pub(crate) fn clean(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.own.retain(|entry| entry.qp != qp);
        self.look(&entries);
    }

    /// Runs `work` while no thread polls.
    pub(crate) fn quiet<T>(&self, work: impl FnOnce() -> T) -> T {
        let entries = self.entries.lock();
        let done = work();
        self.look(&entries);
        done
    }
}

/// The result of polling for a receive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    Nothing,
    Receive,
    /// The queue pair has failed: everything that is posted has to be flushed.
    Failure,
}
