//! Completion queues and completion channels.
//!
//! A queue has two sources. Completions of this process's own work (sends, errors) stand in a list here. Completions of
//! receives stand in the receive rings of the queue pairs that use the queue, where the requesters put them; polling
//! looks at each ring in turn.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use verbs::abi::*;

use crate::arena::View;
use crate::context::{Ctx, fail};
use crate::host::{Host, Peer, host};
use crate::limits::{CQS, MAX_CQE};
use crate::queue_pair::Qp;
use crate::shared::{ARMED_ANY, ARMED_SOLICITED, Slot, SlotState};
use crate::spin::SpinLock;

/// A completion queue.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) ibv: ibv_cq,
    /// Entry in this process's table.
    pub(crate) index: u32,
    host: &'static Host,
    entries: SpinLock<Entries>,
    peek: Peek,
    /// Events taken from the channel, and those acknowledged: destruction waits until they agree.
    taken: AtomicU64,
    acknowledged: AtomicU64,
}

/// What an empty queue looks like from outside its lock: most polls find nothing, and how soon one finds something is part
/// of every latency.
#[derive(Default)]
struct Peek {
    /// Completions of this process's own work.
    own: AtomicUsize,
    /// Where the next receive will complete; null unless exactly one queue pair's receives complete here. Slots are never
    /// unmapped, so a glance at one that has just been given up is harmless.
    slot: AtomicPtr<Slot>,
    /// Number of that receive.
    number: AtomicU32,
}

impl Peek {
    /// Whether nothing is there to be taken.
    #[inline]
    fn is_empty(&self) -> bool {
        // SAFETY: the pointer is null or to a slot of the own arena, which stays mapped as long as the process runs.
        let Some(slot) = (unsafe { self.slot.load(Relaxed).as_ref() }) else { return false };
        let word = slot.state.load(SeqCst);
        self.own.load(Relaxed) == 0 && !SlotState::is_over(word, self.number.load(Relaxed))
    }
}

struct Entries {
    own: VecDeque<Entry>,
    capacity: usize,
    overrun: bool,
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

/// A completion of this process's own work.
pub(crate) struct Entry {
    pub(crate) wc: ibv_wc,
    pub(crate) qp: *const Qp,
    /// Send-queue position up to which work requests are retired when this is polled.
    pub(crate) retires: Option<u32>,
}

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
        unsafe { &*self.ibv.context.cast::<Ctx>() }
    }

    /// Adds a completion of this process's own work.
    pub(crate) fn push(&self, entry: Entry, solicited: bool) {
        let mut entries = self.entries.lock();
        if entries.own.len() == entries.capacity {
            entries.overrun = true;
        } else {
            entries.own.push_back(entry);
        }
        self.peek.own.store(entries.own.len(), Relaxed);
        drop(entries);
        notify(self.host, &self.host.arena.view, None, self.index, solicited);
    }

    /// Notes where the next completion will appear. Called under the lock whenever that has changed.
    #[inline]
    fn look(&self, entries: &Entries) {
        self.peek.own.store(entries.own.len(), Relaxed);
        let slot = match entries.receivers[..] {
            [qp] => {
                // SAFETY: a queue pair takes itself off the list, under the lock that is held, before it goes.
                let (number, slot) = unsafe { &*qp }.next_slot();
                self.peek.number.store(number, Relaxed);
                (&raw const *slot).cast_mut()
            }
            _ => std::ptr::null_mut(),
        };
        self.peek.slot.store(slot, Relaxed);
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
        let Some(entry) = self.own.pop_front() else { return false };
        if let Some(position) = entry.retires {
            // SAFETY: completions of a queue pair are removed before it goes.
            unsafe { &*entry.qp }.retire(position);
        }
        *wc = entry.wc;
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
            if unsafe { &*qp }.receive_completion(wc) {
                // SAFETY: as above.
                let was_flushed = wc.status == IBV_WC_WR_FLUSH_ERR && !unsafe { &*qp }.recovered();
                if wc.status != IBV_WC_SUCCESS && !was_flushed {
                    *failed = Some(qp);
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

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    if cq.peek.is_empty() {
        cq.ctx().progress();
        return 0;
    }
    let mut failed = None;
    let mut found = 0;
    let mut entries = cq.entries.lock();
    while found < num_entries {
        // SAFETY: the caller gives room for num_entries completions; integers need no initialisation to be written.
        let wc = unsafe { &mut *wc.add(found as usize) };
        if !entries.next(wc, &mut failed) {
            break;
        }
        found += 1;
        if failed.is_some() {
            break;
        }
    }
    // SAFETY: the queue pair is on the list of the queue, whose lock is held, so it has not gone; from here on it is
    // held.
    let failed = failed.map(|qp| unsafe { &*qp });
    if let Some(qp) = failed {
        qp.holders.fetch_add(1, Relaxed);
    }
    let overrun = entries.overrun && found == 0;
    cq.look(&entries);
    drop(entries);
    if let Some(qp) = failed {
        qp.flush();
        qp.holders.fetch_sub(1, Release);
    }
    cq.ctx().progress();
    if overrun { -libc::EOVERFLOW } else { found }
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    let armed = &cq.host.arena.view.cq(cq.index).armed;
    // Sequentially consistent with the slot states: either the requester sees the queue armed, or the poll that must
    // follow sees the completion.
    if solicited_only == 0 {
        armed.store(ARMED_ANY, SeqCst);
    } else {
        // A request for every completion stands (IBTA vol. 1, section 11.4.2.2).
        let _ = armed.compare_exchange(0, ARMED_SOLICITED, SeqCst, SeqCst);
    }
    0
}

/// Announces a completion in a queue of `view`'s process if it is armed. `peer` is `None` for this process.
#[inline]
pub(crate) fn notify(host: &Host, view: &View, peer: Option<&Peer>, index: u32, solicited: bool) {
    if view.cq(index).armed.load(SeqCst) != 0 {
        announce(host, view, peer, index, solicited);
    }
}

#[cold]
fn announce(host: &Host, view: &View, peer: Option<&Peer>, index: u32, solicited: bool) {
    let cq = view.cq(index);
    let armed = cq.armed.load(SeqCst);
    if armed == 0 || (armed == ARMED_SOLICITED && !solicited) {
        return;
    }
    if cq.armed.compare_exchange(armed, 0, SeqCst, SeqCst).is_err() {
        return; // Another completion took the one event.
    }
    let (fd, inode) = (cq.channel_fd.load(Relaxed), cq.channel_inode.load(Relaxed));
    if fd < 0 {
        return;
    }
    let own;
    let peer = match peer {
        Some(peer) => peer,
        None => match host.peer_of(host.block << crate::limits::QP_INDEX_BITS) {
            Some(peer) => {
                own = peer;
                &own
            }
            None => return,
        },
    };
    let handle = cq.handle.load(Relaxed).to_ne_bytes();
    let written = peer.channel(fd, inode).map(|channel| rustix::io::write(channel, &handle));
    if !matches!(written, Ok(Ok(_))) {
        // The pipe is full of events that nobody has read, or there are no more descriptors: the next completion tries
        // again.
        let _ = cq.armed.compare_exchange(0, armed, SeqCst, SeqCst);
    }
}

/// A completion channel: a pipe. Its peers open the writing end through `/proc`.
#[repr(C)]
pub(crate) struct Channel {
    ibv: ibv_comp_channel,
    writing: OwnedFd,
    inode: u64,
    queues: Mutex<Vec<(u64, *mut ibv_cq)>>,
    /// Threads that sleep, or are about to, without a look at waiting sends.
    sleepers: AtomicUsize,
}

/// Handle of no queue: wakes a sleeper so that it looks after waiting sends.
const NUDGE: u64 = 0;

pub(crate) unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let made = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).and_then(|(reading, writing)| {
        rustix::io::ioctl_fionbio(&writing, true)?;
        let inode = rustix::fs::fstat(&writing)?.st_ino;
        Ok((reading, writing, inode))
    });
    match made {
        Ok((reading, writing, inode)) => {
            let ibv = ibv_comp_channel { context, fd: reading.into_raw_fd(), refcnt: 0 };
            let (queues, sleepers) = (Mutex::default(), AtomicUsize::new(0));
            Box::into_raw(Box::new(Channel { ibv, writing, inode, queues, sleepers })).cast()
        }
        Err(errno) => fail(errno.raw_os_error()),
    }
}

pub(crate) unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    let channel = channel.cast::<Channel>();
    // SAFETY: the caller gives a live channel.
    if !unsafe { &*channel }.queues.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
        return libc::EBUSY;
    }
    // SAFETY: create_comp_channel made it, and no queue uses it.
    let channel = unsafe { Box::from_raw(channel) };
    if let Ok(host) = host() {
        host.forget_channel(channel.writing.as_raw_fd(), channel.inode);
    }
    // SAFETY: create_comp_channel gave the descriptor up to this member.
    drop(unsafe { OwnedFd::from_raw_fd(channel.ibv.fd) });
    0
}

/// Entries of the table of completion queues in use.
static INDEXES: Mutex<Indexes> = Mutex::new(Indexes { used: Vec::new(), next: 0, serial: 0 });

struct Indexes {
    used: Vec<bool>,
    next: usize,
    serial: u64,
}

impl Indexes {
    /// A free entry, with a serial number that makes its handle unique.
    fn take(&mut self) -> Option<(u32, u64)> {
        self.used.resize(CQS, false);
        let index = (0..CQS).map(|i| (self.next + i) % CQS).find(|i| !self.used[*i])?;
        self.used[index] = true;
        self.next = index + 1;
        self.serial += 1;
        Some((index as u32, self.serial))
    }
}

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    if !(1..=MAX_CQE).contains(&cqe) || comp_vector != 0 {
        return fail(libc::EINVAL);
    }
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    let Some((index, handle)) = INDEXES.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return fail(libc::ENOMEM);
    };
    // SAFETY: all-zero bytes are a valid ibv_cq: integers, null pointers, an unlocked mutex, an unused condition.
    let mut ibv: ibv_cq = unsafe { std::mem::zeroed() };
    (ibv.context, ibv.channel, ibv.cq_context, ibv.handle, ibv.cqe) =
        (context, channel, cq_context, index, cqe);
    let capacity = cqe as usize;
    let entries = Entries {
        own: VecDeque::with_capacity(capacity),
        capacity,
        overrun: false,
        receivers: Vec::new(),
        users: 0,
        turn: 0,
        received_in_a_row: 0,
        own_in_a_row: 0,
    };
    let (taken, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    let cq =
        Cq { ibv, index, host, entries: SpinLock::new(entries), peek: Peek::default(), taken, acknowledged };
    let cq = Box::into_raw(Box::new(cq)).cast::<ibv_cq>();
    let shared = host.arena.view.cq(index);
    shared.armed.store(0, SeqCst);
    shared.handle.store(handle, Relaxed);
    // SAFETY: the caller gives null or a live channel of this device.
    match unsafe { channel.cast::<Channel>().as_ref() } {
        Some(channel) => {
            channel.queues.lock().unwrap_or_else(PoisonError::into_inner).push((handle, cq));
            shared.channel_inode.store(channel.inode, Relaxed);
            shared.channel_fd.store(channel.writing.as_raw_fd(), SeqCst);
        }
        None => shared.channel_fd.store(-1, SeqCst),
    }
    cq
}

pub(crate) unsafe extern "C" fn destroy_cq(raw: *mut ibv_cq) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let cq = unsafe { Cq::from(raw) };
    if cq.entries.lock().users != 0 {
        return libc::EBUSY;
    }
    cq.host.arena.view.cq(cq.index).armed.store(0, SeqCst);
    // SAFETY: the channel lives at least as long as its queues.
    if let Some(channel) = unsafe { cq.ibv.channel.cast::<Channel>().as_ref() } {
        channel.queues.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, other)| *other != raw);
    }
    // man ibv_get_cq_event: destruction waits until every event that was taken is acknowledged.
    while cq.taken.load(SeqCst) != cq.acknowledged.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    INDEXES.lock().unwrap_or_else(PoisonError::into_inner).used[cq.index as usize] = false;
    // SAFETY: create_cq made it, and neither queue pairs nor the channel refer to it any more.
    drop(unsafe { Box::from_raw(raw.cast::<Cq>()) });
    0
}

/// How long a sleeping process leaves its waiting sends alone.
const RETRY_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };

pub(crate) unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller gives a live channel of this device.
    let channel = unsafe { &*channel.cast::<Channel>() };
    loop {
        let handle = match channel.read() {
            Ok(handle) => handle,
            Err(errno) => {
                fail::<c_void>(errno.raw_os_error());
                return -1;
            }
        };
        let queues = channel.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, raw)) = queues.iter().find(|(other, _)| *other == handle) else {
            continue; // The queue has been destroyed since.
        };
        // SAFETY: the queue is on the channel's list, so it is alive; its destruction waits for the acknowledgement.
        let found = unsafe { Cq::from(*raw) };
        found.taken.fetch_add(1, SeqCst);
        // SAFETY: the caller gives two writable pointers.
        unsafe {
            cq.write(*raw);
            cq_context.write(found.ibv.cq_context);
        }
        return 0;
    }
}

impl Cq {
    /// A send of this process waits: whoever sleeps on the queue's channel has to look after it.
    pub(crate) fn nudge(&self) {
        // SAFETY: the channel lives at least as long as its queues.
        let Some(channel) = (unsafe { self.ibv.channel.cast::<Channel>().as_ref() }) else { return };
        if channel.sleepers.load(SeqCst) != 0 {
            let _ = rustix::io::write(&channel.writing, &NUDGE.to_ne_bytes());
        }
    }
}

impl Channel {
    /// Waits for an event; carries on with waiting sends meanwhile. A signal ends it with EINTR, as in the kernel.
    fn read(&self) -> Result<u64, Errno> {
        // SAFETY: a channel's context lives at least as long as the channel.
        let ctx = unsafe { &*self.ibv.context.cast::<Ctx>() };
        // SAFETY: the descriptor is open as long as the channel lives.
        let reading = unsafe { BorrowedFd::borrow_raw(self.ibv.fd) };
        let blocks = !rustix::fs::fcntl_getfl(reading)?.contains(rustix::fs::OFlags::NONBLOCK);
        loop {
            ctx.progress();
            if !blocks {
                return take_handle(reading);
            }
            // Sequentially consistent with `Cq::nudge`: either this sees the send that waits, or who made it wait sees
            // the sleeper.
            self.sleepers.fetch_add(1, SeqCst);
            let taken = (ctx.waiting.load(SeqCst) == 0).then(|| take_handle(reading));
            self.sleepers.fetch_sub(1, SeqCst);
            if let Some(taken) = taken {
                return taken;
            }
            let mut polled = [PollFd::new(&reading, PollFlags::IN)];
            if rustix::event::poll(&mut polled, Some(&RETRY_EVERY))? != 0 {
                return take_handle(reading);
            }
        }
    }
}

/// Reads one event; waits for it where the descriptor does.
fn take_handle(reading: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut handle = [0; 8];
    match rustix::io::read(reading, &mut handle)? {
        8 => Ok(u64::from_ne_bytes(handle)),
        _ => Err(Errno::IO), // Cannot be: the writing end is open here and every write is of 8 bytes.
    }
}

pub(crate) unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, nevents: u32) {
    // SAFETY: the caller gives a queue with events to acknowledge, so it is alive.
    unsafe { Cq::from(cq) }.acknowledged.fetch_add(u64::from(nevents), SeqCst);
}
