//! Shared receive queues (IBTA vol. 1, section 10.2.9): receives that several queue pairs take
//! from.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use verbs::abi::*;

use crate::objects::context::Ctx;
use crate::objects::receiving::Receiving;
use crate::objects::srq::{Srq, SrqQueue, Use};
use crate::objects::work::list_of;
use crate::objects::wqe::Receive;
use crate::transport::local::order::{Entry, Order, ROOM_MAX, Ticket};
use crate::transport::local::raise::Kind;

/// How often a dry queue is looked at before it is searched for receives that dead processes have
/// taken.
const PATIENCE: u32 = 1 << 10;

impl Srq {
    /// Enables events of the queue; returns the program's pointer to it.
    pub(crate) fn enter(&mut self) -> *mut ibv_srq {
        let context = self.ibv.context;
        let number = self.ibv.handle;
        let raw = (&raw mut *self).cast();
        // SAFETY: a queue's context lives at least as long as the queue.
        unsafe { Ctx::from(context) }.events.enter(Kind::SharedReceiveQueue, number, number, raw);
        raw
    }

    /// # Safety
    /// `srq` is a live queue of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(srq: *mut ibv_srq) -> &'a Self {
        // SAFETY: every ibv_srq of this device is the first member of an Srq.
        unsafe { &*srq.cast::<Self>() }
    }

    /// Lets a queue pair take receives from the queue.
    pub(crate) fn attach(&self, member: *const Receiving) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(member);
    }

    /// Undoes [`attach`](Self::attach).
    pub(crate) fn detach(&self, member: *const Receiving) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != member);
    }

    /// # Safety
    /// The request's elements are readable.
    #[inline]
    pub(crate) unsafe fn post(&self, queue: &mut SrqQueue, wr: &ibv_recv_wr) -> Result<(), c_int> {
        if !(0..=self.max_sge.cast_signed()).contains(&wr.num_sge) {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller guarantees the elements.
        let elements = unsafe { list_of(wr.sg_list, wr.num_sge as usize) };
        let index = queue.free.pop().ok_or(libc::ENOMEM)?;
        let (post, list) = self.pool.post(index);
        let receive = Receive::show(wr.wr_id, elements, post, list, &self.host.arena.view, self.pd);
        self.wqes.store(index, receive, elements);
        self.offer(queue, index);
        Ok(())
    }

    /// Shows the receive of an index to the requesters, behind all others.
    fn offer(&self, queue: &mut SrqQueue, index: u32) {
        // A receive that was lost a lap ago comes first: its word is about to be reused.
        while let Some(lost) = self.look_after(queue) {
            self.append(queue, lost);
        }
        self.append(queue, index);
    }

    fn append(&self, queue: &mut SrqQueue, index: u32) {
        let k = queue.tail;
        queue.tail = k.wrapping_add(1);
        queue.posted[index as usize] = Some(Use { k, taker: None });
        let Receive { room, valid, .. } = self.wqes.load(index);
        let room = if valid { room.min(ROOM_MAX.into()) as u16 } else { 0 };
        self.pool.show(Ticket { k, index, room });
        self.pool.shared().tail.value.store(queue.tail, Release);
    }

    /// Looks at the word that is to be used next. Returns the index in it if no process will ever
    /// deliver to it.
    fn look_after(&self, queue: &mut SrqQueue) -> Option<u32> {
        let before = queue.tail.wrapping_sub(self.area.size);
        let (index, taker) = match Entry::decode(self.pool.word(before).load(Acquire)) {
            Entry::Taken { k, index, block } if k == before => (index, Some(block)),
            Entry::Posted { k, index, .. } if k == before => (index, None),
            _ => return None,
        };
        let in_use = queue.posted.get_mut(index as usize)?.as_mut().filter(|used| used.k == before)?;
        in_use.taker = taker;
        self.is_lost(queue, index).then_some(index)
    }

    /// Whether a receive that is in use, and cannot be taken, will never complete: the process that
    /// took it has died without delivering, or put it back unseen.
    #[cold]
    fn is_lost(&self, queue: &SrqQueue, index: u32) -> bool {
        let Some(Some(Use { k, taker })) = queue.posted.get(index as usize).copied() else { return false };
        let taker = match Entry::decode(self.pool.word(k).load(Acquire)) {
            Entry::Taken { k: taken, block, index: of } if (taken, of) == (k, index) => Some(block),
            Entry::Posted { k: posted, index: of, .. } if (posted, of) == (k, index) => {
                return self.pool.withdraw(k, index);
            }
            _ => taker,
        };
        taker.is_some_and(|block| !self.host.lives(block) && !self.is_delivered(index))
    }

    /// Whether a message that took this index waits to be polled.
    fn is_delivered(&self, index: u32) -> bool {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
        // destroyed.
        members.iter().any(|member| unsafe { &**member }.has_message_for(index))
    }

    /// Notes that a queue pair that takes from here was polled in vain. If the queue has been dry
    /// for long, receives that dead processes have taken are offered again.
    #[inline]
    pub(crate) fn doubt(&self) {
        // A count that is lost to another thread does no harm; a locked instruction would wait for
        // all earlier stores.
        let doubts = self.doubts.load(Relaxed);
        self.doubts.store(doubts.wrapping_add(1), Relaxed);
        if doubts.is_multiple_of(PATIENCE) && self.pool.is_dry() {
            self.find_lost();
        }
    }

    /// Offers the receives again that dead processes have taken.
    #[cold]
    fn find_lost(&self) {
        let mut queue = self.queue.lock();
        // A requester that was stopped for very long between its load of the mark and its store may
        // have set the mark back so far that it seems to be ahead.
        let first = queue.tail.wrapping_sub(self.area.size);
        if self.pool.mark().load(Relaxed).wrapping_sub(first) > self.area.size {
            self.pool.mark().store(first, Release);
        }
        if !self.pool.is_dry() {
            return; // Another thread has posted meanwhile.
        }
        for index in 0..self.area.size {
            if self.is_lost(&queue, index) {
                self.offer(&mut queue, index);
            }
        }
    }

    /// Whether the receive that a message claims to have taken is in use.
    pub(crate) fn has(&self, index: u32) -> bool {
        self.queue.lock().posted.get(index as usize).is_some_and(Option::is_some)
    }

    /// Frees the index of a receive that is complete.
    pub(crate) fn give_back(&self, index: u32) {
        let mut queue = self.queue.lock();
        if queue.posted.get_mut(index as usize).is_some_and(|posted| posted.take().is_some()) {
            queue.free.push(index);
        }
    }
}
