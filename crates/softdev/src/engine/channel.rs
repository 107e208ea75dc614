//! Completion channels: how a sleeper learns of a completion.
//!
//! A channel is a pipe whose bytes name the queue that has an event. The process that completes
//! something in an armed queue writes them: this process, or a peer, which opens the write end
//! through `/proc`.
//!
//! # Invariants
//!
//! * If a channel has no room for an event of a completion queue, the event is owed, and the next
//!   reader of the channel raises it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use verbs::abi::*;

use crate::memory::layout::SharedCq;
use crate::objects::completion::Cq;
use crate::objects::context::Ctx;
use crate::transport::local::arming;
use crate::transport::local::link::Ticks;
use crate::transport::local::notify::Events;

/// A completion channel: a pipe. Peers open the write end through `/proc`.
#[repr(C)]
pub(crate) struct Channel {
    pub(crate) ibv: ibv_comp_channel,
    pub(crate) writing: OwnedFd,
    pub(crate) inode: u64,
    /// The queues that announce events here, by handle.
    pub(crate) queues: Mutex<Vec<(u64, *mut ibv_cq)>>,
    /// The number of threads that sleep, or are about to sleep, without a look at waiting sends.
    pub(crate) sleepers: AtomicUsize,
}

/// The handle of no queue: it wakes a sleeper, which then looks after waiting sends.
const NUDGE: u64 = 0;

impl Channel {
    /// # Safety
    /// `channel` is null or a live channel of this device.
    pub(crate) unsafe fn from<'a>(channel: *mut ibv_comp_channel) -> Option<&'a Self> {
        // SAFETY: every ibv_comp_channel of this device is the first member of a Channel.
        unsafe { channel.cast::<Self>().as_ref() }
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Vec<(u64, *mut ibv_cq)>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a new queue announce events in its channel, if it has one.
pub(crate) fn attach(cq: *mut ibv_cq, handle: u64, shared: &SharedCq) {
    // SAFETY: the queue was just made, with null or a live channel.
    match unsafe { Channel::from((*cq).channel) } {
        Some(channel) => {
            channel.queues().push((handle, cq));
            shared.channel_inode.store(channel.inode, Relaxed);
            shared.channel_fd.store(channel.writing.as_raw_fd(), SeqCst);
        }
        None => shared.channel_fd.store(-1, SeqCst),
    }
}

/// Undoes [`attach`].
pub(crate) fn detach(cq: *mut ibv_cq) {
    // SAFETY: the queue is alive, and its channel lives at least as long.
    if let Some(channel) = unsafe { Channel::from((*cq).channel) } {
        channel.queues().retain(|(_, other)| *other != cq);
    }
}

/// How often a sleeping process looks after its waiting sends.
const RETRY_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };
/// No time.
const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Cq {
    /// A send of this process waits: wakes a sleeper on the queue's channel, which has to look
    /// after the send.
    pub(crate) fn nudge(&self) {
        // SAFETY: the channel lives at least as long as its queues.
        let Some(channel) = (unsafe { Channel::from(self.ibv.channel) }) else { return };
        if channel.sleepers.load(SeqCst) != 0 {
            let _ = rustix::io::write(&channel.writing, &NUDGE.to_ne_bytes());
        }
    }
}

impl Channel {
    /// Waits for an event, and meanwhile makes progress with waiting sends. A signal ends the wait
    /// with EINTR, as in the kernel.
    pub(crate) fn read(&self) -> Result<u64, Errno> {
        // SAFETY: a channel's context lives at least as long as the channel.
        let ctx = unsafe { Ctx::from(self.ibv.context) };
        // SAFETY: the descriptor is open as long as the channel lives.
        let reading = unsafe { BorrowedFd::borrow_raw(self.ibv.fd) };
        let blocks = !rustix::fs::fcntl_getfl(reading)?.contains(rustix::fs::OFlags::NONBLOCK);
        loop {
            ctx.progress();
            if !blocks {
                return take_handle(reading);
            }
            // Sequentially consistent with `Cq::nudge`: either this thread sees the waiting send,
            // or the thread that made it wait sees the sleeper.
            self.sleepers.fetch_add(1, SeqCst);
            let taken = (ctx.waiting.load(SeqCst) == 0).then(|| take_handle(reading));
            self.sleepers.fetch_sub(1, SeqCst);
            if let Some(taken) = taken {
                return taken;
            }
            let mut polled = [PollFd::new(&reading, PollFlags::IN)];
            let patience = if ctx.next_due().is_some_and(is_soon) { NONE } else { RETRY_EVERY };
            if rustix::event::poll(&mut polled, Some(&patience))? != 0 {
                return take_handle(reading);
            }
        }
    }

    /// Writes events that are owed, now that something has been read.
    pub(crate) fn pay(&self, queues: &[(u64, *mut ibv_cq)]) {
        for (_, cq) in queues {
            // SAFETY: the queue is on the channel's list, so it is alive.
            let cq = unsafe { Cq::from(*cq) };
            let view = &cq.host.arena.view;
            if view.header().owes.load(Relaxed) == 0 {
                return;
            }
            let cq = view.cq(cq.index);
            // This process's pipe is open, and has room or something to read: nothing can fail.
            let _ = arming::pay(&cq.owed, &Events { pipe: self.writing.as_fd(), view, cq });
        }
    }
}

/// Whether a sleep would last longer than until `due`.
fn is_soon(due: Ticks) -> bool {
    due.ns_since(Ticks::now()) < 2 * RETRY_EVERY.tv_nsec.cast_unsigned()
}

/// Reads one event; blocks if the descriptor does.
fn take_handle(reading: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut handle = [0; 8];
    match rustix::io::read(reading, &mut handle)? {
        8 => Ok(u64::from_ne_bytes(handle)),
        _ => Err(Errno::IO), // Impossible: the write end is open here, and every write has 8 bytes.
    }
}
