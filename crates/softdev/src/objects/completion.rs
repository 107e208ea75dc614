//! Completion queues.
//!
//! A queue has two sources. Completions of this process's own work (sends, errors) stand in a list
//! here. Completions of receives stand in the receive rings of the queue pairs that use the queue,
//! where the requesters put them; polling looks at each ring in turn.

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
    /// Entry in this process's table.
    pub(crate) index: u32,
    /// Tells it from others that had the entry before.
    pub(crate) serial: u32,
    pub(crate) host: &'static Host,
    pub(crate) entries: OwnLock<Entries>,
    pub(crate) peek: Peek,
    /// For who reads completions member by member.
    pub(crate) extended: Option<Extended>,
    /// Completions get a time stamp.
    pub(crate) stamped: bool,
    /// That of the last one that was taken, where the queue has stamps.
    pub(crate) stamp: AtomicU64,
    /// Events taken from the channel, and those acknowledged: destruction waits until they agree.
    pub(crate) taken: AtomicU64,
    pub(crate) acknowledged: AtomicU64,
}

/// What an empty queue looks like from outside its lock: most polls find nothing, and how soon one
/// finds something is part of every latency.
#[derive(Default)]
pub(crate) struct Peek {
    /// Completions of this process's own work.
    own: AtomicUsize,
    /// Where the next receive will complete: [`NOWHERE`] where no queue pair's receives complete
    /// here; null where those of several do. Slots are never unmapped, so a glance at one that has
    /// just been given up is harmless.
    next: Spot<AtomicPtr<Slot>, AtomicU32>,
    /// State of that queue pair.
    state: AtomicPtr<AtomicU32>,
    /// It takes its receives from a shared queue, which has to be looked after now and then.
    is_shared: AtomicBool,
    /// Glances that found nothing. Counts may be lost to another thread.
    in_vain: AtomicU32,
}

/// A slot in which nothing will ever complete, and the state of no queue pair.
// SAFETY: all-zero bytes are a valid slot: atomic integers.
static NOWHERE: Slot = unsafe { std::mem::zeroed() };
static NOBODY: AtomicU32 = AtomicU32::new(IBV_QPS_RESET);

/// Glances at an empty queue, of a queue pair whose receives are shared, before a look at it.
const GLANCES: u32 = 64;

impl Peek {
    /// Whether nothing is there to be taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.has_nothing() && !(self.is_shared.load(Relaxed) && self.is_enough())
    }

    /// Counts a glance in vain: whether it is time for a look all the same.
    #[inline]
    fn is_enough(&self) -> bool {
        let glances = self.in_vain.load(Relaxed);
        self.in_vain.store(glances.wrapping_add(1), Relaxed);
        glances.is_multiple_of(GLANCES)
    }

    #[inline]
    fn has_nothing(&self) -> bool {
        let (number, slot) = self.next.get();
        // SAFETY: the pointer is null, to the one above, or to a slot of the own arena, which stays
        // mapped as long as the process runs.
        let Some(slot) = (unsafe { slot.as_ref() }) else { return false };
        let word = slot.state.load(Acquire);
        // SAFETY: where there is a slot there is a state, of the same place.
        let state = unsafe { &*self.state.load(Relaxed) };
        self.own.load(Relaxed) == 0 && !SlotState::is_over(word, number) && state.load(Relaxed) != IBV_QPS_ERR
    }
}

pub(crate) struct Entries {
    pub(crate) own: Own,
    pub(crate) overrun: bool,
    /// An overrun loses the oldest completion instead of failing the queue.
    pub(crate) keeps_latest: bool,
    /// Completions get a time stamp.
    pub(crate) stamped: bool,
    /// The stamp of the completion that was taken last.
    pub(crate) stamp: u64,
    /// Queue pairs whose receives complete here.
    pub(crate) receivers: Vec<*const Qp>,
    /// Uses by queue pairs, as send and as receive queue: while there are some, the queue cannot be
    /// destroyed.
    pub(crate) users: usize,
    /// Receiver that is looked at first.
    pub(crate) turn: usize,
    /// Completions in a row that the receiver at `turn` gave.
    pub(crate) received_in_a_row: u32,
    /// Completions in a row that `own` gave.
    pub(crate) own_in_a_row: u32,
}

// SAFETY: the pointers are to queue pairs, which are shared between threads and take themselves off
// before they go.
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

    /// What it has besides where it was made by `ibv_create_cq_ex`.
    #[inline]
    pub(crate) fn extended(&self) -> Option<&Extended> {
        self.extended.as_ref()
    }

    /// The stamp of the completion that was taken last. For whoever keeps others from polling.
    #[inline]
    pub(crate) fn last_stamp(&self) -> u64 {
        self.stamp.load(Relaxed)
    }

    /// Adds a completion of this process's own work. False where the queue has overrun: then it
    /// takes no more, and its owner is told so once (IBTA vol. 1, section 11.6.3.1).
    ///
    /// Always inline: an entry that is passed in memory is written in small pieces and read in
    /// large ones, and such a read waits until all stores before it are done, also the one that has
    /// just published a message.
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
            // Its owner is told by a look.
            _ if entries.overrun => None,
            // SAFETY: a queue pair takes itself off the list, under the lock that is held, before
            // it goes.
            [qp] => Some(unsafe { &*qp }),
            [] => {
                self.peek.is_shared.store(false, Relaxed);
                self.peek.state.store((&raw const NOBODY).cast_mut(), Relaxed);
                return self.peek.next.set((&raw const NOWHERE).cast_mut(), 0);
            }
            _ => None,
        };
        // A receive that was taken back from a dead peer has to be looked at again and again.
        let Some(qp) = only.filter(|qp| !qp.recovered()) else {
            return self.peek.next.set_nowhere(std::ptr::null_mut());
        };
        self.peek.is_shared.store(qp.shares_receives(), Relaxed);
        let (number, slot) = qp.next_slot();
        self.peek.state.store((&raw const qp.shared().state).cast_mut(), Relaxed);
        self.peek.next.set((&raw const *slot).cast_mut(), number);
    }

    /// A queue pair's sends are to complete here.
    pub(crate) fn attach_sender(&self) {
        self.entries.lock().users += 1;
    }

    /// A queue pair's receives are to complete here.
    pub(crate) fn attach_receiver(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.users += 1;
        entries.receivers.push(qp);
        self.look(&entries);
    }

    /// Forgets one use by a queue pair, and its completions.
    pub(crate) fn detach(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.users -= 1;
        entries.receivers.retain(|other| *other != qp);
        entries.own.retain(|entry| entry.qp != qp);
        self.look(&entries);
    }

    /// Forgets a queue pair's completions (`RESET`).
    pub(crate) fn clean(&self, qp: *const Qp) {
        let mut entries = self.entries.lock();
        entries.own.retain(|entry| entry.qp != qp);
        self.look(&entries);
    }

    /// Runs `work` while nobody polls.
    pub(crate) fn quiet<T>(&self, work: impl FnOnce() -> T) -> T {
        let entries = self.entries.lock();
        let done = work();
        self.look(&entries);
        done
    }
}

/// What polling for a receive has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    Nothing,
    Receive,
    /// The queue pair has failed: what is posted has to be flushed.
    Failure,
}
