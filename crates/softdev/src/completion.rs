//! Completion queues.
//!
//! A queue has two sources. Completions of this process's own work (sends, errors) stand in a list here. Completions of
//! receives stand in the receive rings of the queue pairs that use the queue, where the requesters put them; polling
//! looks at each ring in turn.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use std::time::Duration;

use verbs::abi::*;

mod blank;
mod resize;
mod spot;

pub(crate) use resize::resize_cq;

use crate::arrive::Taken;
use crate::channel::{self};
use crate::context::Ctx;
use crate::memory::layout::{Slot, SlotState};
use crate::own::{Entry, Own};
use crate::polling::{Extended, Making};
use crate::queue_pair::Qp;
use crate::sys::clock;
use crate::sys::errno::fail;
use crate::sys::indexes::Indexes;
use crate::sys::limits::{CQS, MAX_CQE};
use crate::sys::own_lock::OwnLock;
use crate::sys::sync::Cpu;
use crate::transport::local::arming::{arm, shown};
use crate::transport::local::host::{Host, host};
use crate::transport::local::notify::notify;
use crate::transport::local::raise::Kind;
use spot::Spot;

pub(crate) use blank::blank_completion;

/// A completion queue.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) ibv: ibv_cq_ex,
    /// Entry in this process's table.
    pub(crate) index: u32,
    /// Tells it from others that had the entry before.
    serial: u32,
    host: &'static Host,
    entries: OwnLock<Entries>,
    peek: Peek,
    /// For who reads completions member by member.
    extended: Option<Extended>,
    /// Completions get a time stamp.
    stamped: bool,
    /// That of the last one that was taken, where the queue has stamps.
    stamp: AtomicU64,
    /// Events taken from the channel, and those acknowledged: destruction waits until they agree.
    pub(crate) taken: AtomicU64,
    pub(crate) acknowledged: AtomicU64,
}

/// What an empty queue looks like from outside its lock: most polls find nothing, and how soon one finds something is part
/// of every latency.
#[derive(Default)]
struct Peek {
    /// Completions of this process's own work.
    own: AtomicUsize,
    /// Where the next receive will complete; null unless exactly one queue pair's receives complete here. Slots are never
    /// unmapped, so a glance at one that has just been given up is harmless.
    next: Spot<AtomicPtr<Slot>, AtomicU32>,
    /// State of that queue pair.
    state: AtomicPtr<AtomicU32>,
}

impl Peek {
    /// Whether nothing is there to be taken.
    #[inline]
    fn is_empty(&self) -> bool {
        let (number, slot) = self.next.get();
        // SAFETY: the pointer is null or to a slot of the own arena, which stays mapped as long as the process runs.
        let Some(slot) = (unsafe { slot.as_ref() }) else { return false };
        let word = slot.state.load(Acquire);
        // SAFETY: where there is a slot there is a state, in the own arena as well.
        let state = unsafe { &*self.state.load(Relaxed) };
        self.own.load(Relaxed) == 0 && !SlotState::is_over(word, number) && state.load(Relaxed) != IBV_QPS_ERR
    }
}

struct Entries {
    own: Own,
    overrun: bool,
    /// An overrun loses the oldest completion instead of failing the queue.
    keeps_latest: bool,
    /// Completions get a time stamp.
    stamped: bool,
    /// The stamp of the completion that was taken last.
    stamp: u64,
    /// Queue pairs whose receives complete here.
    receivers: Vec<*const Qp>,
    /// Uses by queue pairs, as send and as receive queue: while there are some, the queue cannot be destroyed.
    users: usize,
    /// Receiver that is looked at first.
    turn: usize,
    /// Completions in a row that the receiver at `turn` gave.
    received_in_a_row: u32,
    /// Completions in a row that `own` gave.
    own_in_a_row: u32,
}

/// Completions that one source gives in a row while others may have some: few enough that none starves, many enough
/// that the one busy queue pair of many does not cost a look at all the others each time.
const IN_A_ROW: u32 = 16;

// SAFETY: the pointers are to queue pairs, which are shared between threads and take themselves off before they go.
unsafe impl Send for Entries {}

impl Cq {
    /// # Safety
    /// `cq` is a live queue of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(cq: *mut ibv_cq) -> &'a Self {
        // SAFETY: every ibv_cq of this device is the first member of a Cq.
        unsafe { &*cq.cast::<Self>() }
    }

    fn ctx(&self) -> &Ctx {
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

    /// Adds a completion of this process's own work. False where the queue has overrun: then it takes no more, and its owner
    /// is told so once (IBTA vol. 1, section 11.6.3.1).
    ///
    /// Always inline: an entry that is passed in memory is written in small pieces and read in large ones, and such a read
    /// waits until all stores before it are done, also the one that has just published a message.
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

    /// Notes where the next completion will appear. Called under the lock whenever that has changed.
    #[inline]
    fn look(&self, entries: &Entries) {
        self.peek.own.store(entries.own.len(), Relaxed);
        let only = match entries.receivers[..] {
            // SAFETY: a queue pair takes itself off the list, under the lock that is held, before it goes.
            [qp] => Some(unsafe { &*qp }),
            _ => None,
        };
        // A receive that was taken back from a dead peer has to be looked at again and again.
        let Some(qp) = only.filter(|qp| !qp.recovered() && !qp.shares_receives()) else {
            return self.peek.next.set_nowhere(std::ptr::null_mut());
        };
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

impl Entries {
    /// The next completion, and the queue pair that it shows to have failed.
    #[inline]
    fn next(&mut self, wc: &mut ibv_wc, failed: &mut Option<*const Qp>) -> bool {
        if self.own_in_a_row < IN_A_ROW {
            return self.next_own(wc) || self.next_received(wc, failed);
        }
        self.own_in_a_row = 0;
        self.next_received(wc, failed) || self.next_own(wc)
    }

    #[inline]
    fn next_own(&mut self, wc: &mut ibv_wc) -> bool {
        let Some(entry) = self.own.pop() else { return false };
        // SAFETY: completions of a queue pair are removed before it goes.
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
            // SAFETY: a queue pair takes itself off the list, under the lock that is held, before it goes.
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
    /// Whether a glance shows that nothing is there; then waiting sends have had their turn.
    #[inline]
    pub(crate) fn is_seen_empty(&self) -> bool {
        let empty = self.peek.is_empty();
        if empty {
            self.ctx().progress();
        }
        empty
    }

    /// Takes completions: how many, or a negative error number.
    ///
    /// # Safety
    /// There is room for so many.
    #[inline]
    pub(crate) unsafe fn take(&self, room: c_int, wc: *mut ibv_wc) -> c_int {
        let mut failed = None;
        let mut found = 0;
        let mut entries = self.entries.lock();
        while found < room {
            // SAFETY: the caller gives room for so many completions; integers need no initialisation to be written.
            let wc = unsafe { &mut *wc.add(found as usize) };
            if !entries.next(wc, &mut failed) {
                break;
            }
            found += 1;
            if failed.is_some() {
                break;
            }
        }
        if self.stamped {
            self.stamp.store(entries.stamp, Relaxed);
        }
        // SAFETY: the queue pair is on the list of the queue, whose lock is held, so it has not gone; from here on it is
        // held.
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
                // What was flushed is there now.
                // SAFETY: as the caller vouches.
                return unsafe { self.take(room, wc) };
            }
        }
        self.ctx().progress();
        if overrun { -libc::EOVERFLOW } else { found }
    }
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    if cq.is_seen_empty() {
        return 0;
    }
    let _alone = cq.extended.as_ref().map(Extended::alone);
    // SAFETY: the caller gives room for num_entries completions.
    unsafe { cq.take(num_entries, wc) }
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    arm(&cq.host.arena.view.cq(cq.index).armed, solicited_only != 0);
    0
}

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    let making = Making::plain(cqe, cq_context, channel, comp_vector);
    // SAFETY: the caller gives an open context, and null or a live channel.
    unsafe { create(context, making, |_| ()) }
}

/// Entries of the table of completion queues in use.
static INDEXES: Indexes<CQS> = Indexes::new();
/// Handles, which no two queues share. 0 is none's: see `channel`.
static HANDLES: AtomicU64 = AtomicU64::new(1);

/// Makes a queue, which `install` gives the functions that it has.
///
/// # Safety
/// The context is open and the channel null or alive.
pub(crate) unsafe fn create(
    context: *mut ibv_context,
    making: Making,
    install: impl FnOnce(&mut ibv_cq_ex),
) -> *mut ibv_cq {
    let Making { cqe, cq_context, channel, comp_vector, keeps_latest, stamped, extended } = making;
    if !(1..=MAX_CQE).contains(&cqe) || comp_vector != 0 {
        return fail(libc::EINVAL);
    }
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    let Some(index) = INDEXES.take() else {
        return fail(libc::ENOMEM);
    };
    let handle = HANDLES.fetch_add(1, Relaxed);
    // SAFETY: all-zero bytes are a valid ibv_cq_ex: integers, null pointers, absent functions, an unlocked mutex, an unused
    // condition.
    let mut ibv: ibv_cq_ex = unsafe { std::mem::zeroed() };
    install(&mut ibv);
    let base = &mut ibv.base;
    (base.context, base.channel, base.cq_context, base.handle, base.cqe) =
        (context, channel, cq_context, index, AtomicI32::new(cqe));
    let entries = Entries {
        own: Own::new(cqe as usize),
        overrun: false,
        keeps_latest,
        stamped,
        stamp: 0,
        receivers: Vec::new(),
        users: 0,
        turn: 0,
        received_in_a_row: 0,
        own_in_a_row: 0,
    };
    let cq = Box::into_raw(Box::new(Cq {
        ibv,
        index,
        serial: handle as u32,
        host,
        entries: OwnLock::new(entries),
        peek: Peek::default(),
        extended,
        stamped,
        stamp: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
    }))
    .cast::<ibv_cq>();
    let shared = host.arena.view.cq(index);
    shared.armed.store(0, SeqCst);
    shared.owed.store(0, SeqCst);
    shared.handle.store(handle, Relaxed);
    channel::attach(cq, handle, shared);
    // SAFETY: the caller gives a live context of this device.
    unsafe { Ctx::from(context) }.events.enter(Kind::CompletionQueue, index, handle as u32, cq);
    cq
}

pub(crate) unsafe extern "C" fn destroy_cq(raw: *mut ibv_cq) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(raw) };
    if cq.entries.lock().users != 0 {
        return libc::EBUSY;
    }
    cq.host.arena.view.cq(cq.index).armed.store(0, SeqCst);
    channel::detach(raw);
    // man ibv_get_cq_event: destruction waits until every event that was taken is acknowledged.
    while cq.taken.load(SeqCst) != cq.acknowledged.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    cq.ctx().events.leave(Kind::CompletionQueue, cq.index);
    INDEXES.give_back(cq.index);
    // SAFETY: create_cq made it, and neither queue pairs nor the channel refer to it any more.
    drop(unsafe { Box::from_raw(raw.cast::<Cq>()) });
    0
}
