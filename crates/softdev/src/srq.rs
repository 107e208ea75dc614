//! Shared receive queues (IBTA vol. 1, section 10.2.9): receives that several queue pairs take from.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::context::{Ctx, Pd};
use crate::memory::layout::Ring;
use crate::queue_pair::Qp;
use crate::sys::errno::fail;
use crate::sys::limits::{MAX_SGE, MAX_SRQS, MAX_WR};
use crate::sys::spin::SpinLock;
use crate::transport::local::host::{Host, host};
use crate::transport::local::order::{Entry, Order};
use crate::transport::local::pool::{Area, Pool};
use crate::transport::local::raise::Kind;
use crate::work::list_of;
use crate::wqe::{Receive, Wqes};

/// A shared receive queue. What requesters see of it stands in this process's arena.
#[repr(C)]
pub(crate) struct Srq {
    ibv: ibv_srq,
    host: &'static Host,
    /// Number of its protection domain.
    pub(crate) pd: u32,
    max_wr: u32,
    max_sge: u32,
    pub(crate) area: Area,
    pub(crate) pool: Pool,
    queue: SpinLock<SrqQueue>,
    /// What is posted, by index.
    pub(crate) wqes: Wqes,
    /// The queue pairs that take from it.
    members: Mutex<Vec<*const Qp>>,
    /// Looks at a queue that has run dry.
    doubts: AtomicU32,
}

// SAFETY: the pointers are to memory that processes share anyway, and to queue pairs, which take themselves off the list
// before they go.
unsafe impl Sync for Srq {}

/// What the lock protects.
struct SrqQueue {
    /// Number of the next receive to be posted.
    tail: u32,
    /// Indexes that are not in use.
    free: Vec<u32>,
    /// How each index is in use.
    posted: Box<[Option<Use>]>,
}

/// An index that is in use.
#[derive(Clone, Copy)]
struct Use {
    /// Number under which it was posted.
    k: u32,
    /// Block of the process that has taken it, where its word has been used again since.
    taker: Option<u32>,
}

/// Looks at a queue that has run dry before it is searched for what the dead have taken.
const PATIENCE: u32 = 1 << 10;

/// Shared receive queues of this process.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The next one's number, for its events.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

impl Srq {
    /// From now on the queue can have events; the program's name of it.
    fn enter(&mut self) -> *mut ibv_srq {
        let (context, number, raw) = (self.ibv.context, self.ibv.handle, (&raw mut *self).cast());
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

    /// A queue pair takes from it from now on.
    pub(crate) fn attach(&self, qp: *const Qp) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(qp);
    }

    /// It does not any more.
    pub(crate) fn detach(&self, qp: *const Qp) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != qp);
    }

    /// # Safety
    /// The request's elements are readable.
    unsafe fn post(&self, queue: &mut SrqQueue, wr: &ibv_recv_wr) -> Result<(), c_int> {
        if !(0..=self.max_sge.cast_signed()).contains(&wr.num_sge) {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller vouches for the elements.
        let elements = unsafe { list_of(wr.sg_list, wr.num_sge as usize) };
        let index = queue.free.pop().ok_or(libc::ENOMEM)?;
        let post = self.pool.post(index);
        let receive = Receive::show(wr.wr_id, elements, post, &self.host.arena.view, self.pd);
        self.wqes.store(index, receive, elements);
        self.offer(queue, index);
        Ok(())
    }

    /// Shows the receive of an index to the requesters as the last one.
    fn offer(&self, queue: &mut SrqQueue, index: u32) {
        // Whatever was lost a lap ago comes first: its word is about to be used again.
        while let Some(lost) = self.look_after(queue) {
            self.append(queue, lost);
        }
        self.append(queue, index);
    }

    fn append(&self, queue: &mut SrqQueue, index: u32) {
        let k = queue.tail;
        queue.tail = k.wrapping_add(1);
        queue.posted[index as usize] = Some(Use { k, taker: None });
        self.pool.show(k, index);
        self.pool.shared().tail.value.store(queue.tail, Release);
    }

    /// Looks at the word that is to be used next: the index that stands there if nobody will ever deliver to it.
    fn look_after(&self, queue: &mut SrqQueue) -> Option<u32> {
        let before = queue.tail.wrapping_sub(self.area.size);
        let (index, taker) = match Entry::decode(self.pool.word(before).load(Acquire)) {
            Entry::Taken { k, index, block } if k == before => (index, Some(block)),
            Entry::Posted { k, index } if k == before => (index, None),
            _ => return None,
        };
        let in_use = queue.posted.get_mut(index as usize)?.as_mut().filter(|used| used.k == before)?;
        in_use.taker = taker;
        self.is_lost(queue, index).then_some(index)
    }

    /// Whether a receive that is in use, and is not there for the taking, will never complete: who took it has died without
    /// delivering, or put it back unseen.
    #[cold]
    fn is_lost(&self, queue: &SrqQueue, index: u32) -> bool {
        let Some(Some(Use { k, taker })) = queue.posted.get(index as usize).copied() else { return false };
        let taker = match Entry::decode(self.pool.word(k).load(Acquire)) {
            Entry::Taken { k: taken, block, index: of } if (taken, of) == (k, index) => Some(block),
            Entry::Posted { k: posted, index: of } if (posted, of) == (k, index) => {
                return self.pool.withdraw(k, index);
            }
            _ => taker,
        };
        taker.is_some_and(|block| !self.host.lives(block) && !self.is_delivered(index))
    }

    /// Whether a message that took this index waits to be polled.
    fn is_delivered(&self, index: u32) -> bool {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
        members.iter().any(|qp| unsafe { &**qp }.has_message_for(index))
    }

    /// A queue pair that takes from here was polled in vain. If the queue has run dry for long, what was taken by
    /// processes that have died is offered again.
    pub(crate) fn doubt(&self) {
        if !self.doubts.fetch_add(1, Relaxed).is_multiple_of(PATIENCE) || !self.pool.is_dry() {
            return;
        }
        let mut queue = self.queue.lock();
        for index in 0..self.area.size {
            if self.is_lost(&queue, index) {
                self.offer(&mut queue, index);
            }
        }
    }

    /// The receive of an index that a message says that it took; `None` where that cannot be.
    pub(crate) fn taken(&self, index: u32) -> Option<Receive> {
        let queue = self.queue.lock();
        let Use { k, .. } = queue.posted.get(index as usize).copied()??;
        let is_there = self.pool.word(k).load(Acquire) == Entry::Posted { k, index }.encode();
        (!is_there).then(|| self.wqes.load(index))
    }

    /// A receive is complete: its index may be used again.
    pub(crate) fn give_back(&self, index: u32) {
        let mut queue = self.queue.lock();
        if queue.posted.get_mut(index as usize).is_some_and(|posted| posted.take().is_some()) {
            queue.free.push(index);
        }
    }
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    mut wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let srq = unsafe { Srq::from(srq) };
    let mut queue = srq.queue.lock();
    // SAFETY: the caller gives a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable.
        if let Err(errno) = unsafe { srq.post(&mut queue, request) } {
            // SAFETY: the caller gives a writable pointer.
            unsafe { bad_wr.write(wr) };
            return errno;
        }
        wr = request.next;
    }
    drop(queue);
    // SAFETY: a queue's context lives at least as long as the queue.
    unsafe { Ctx::from(srq.ibv.context) }.progress();
    0
}

pub(crate) unsafe extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the caller gives readable and writable attributes, and a live domain.
    let (init, domain) = unsafe { (&mut *init, &*pd.cast::<Pd>()) };
    let (max_wr, max_sge) = (init.attr.max_wr, init.attr.max_sge);
    if !(1..=MAX_WR).contains(&max_wr) || max_sge as usize > MAX_SGE {
        return fail(libc::EINVAL);
    }
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    let more = |count: usize| (count < MAX_SRQS).then_some(count + 1);
    if COUNT.fetch_update(SeqCst, SeqCst, more).is_err() {
        return fail(libc::ENOMEM);
    }
    let size = max_wr.next_power_of_two();
    let mut area = Area { offset: 0, size, stride: Ring::stride_for(max_sge.max(1)) };
    let pool = host.arena.allocate(area.bytes()).and_then(|offset| {
        area.offset = offset;
        area.pool(&host.arena.view)
    });
    let Some(pool) = pool else {
        COUNT.fetch_sub(1, SeqCst);
        return fail(libc::ENOMEM);
    };
    pool.shared().pd.store(domain.ibv.handle, Relaxed);
    domain.children.fetch_add(1, Relaxed);
    // SAFETY: all-zero bytes are a valid ibv_srq: integers, null pointers, an unlocked mutex, an unused condition.
    let mut ibv: ibv_srq = unsafe { std::mem::zeroed() };
    let number = NUMBERS.fetch_add(1, Relaxed);
    pool.shared().number.store(number, Relaxed);
    (ibv.context, ibv.srq_context, ibv.pd) = (domain.ibv.context, init.srq_context, pd);
    ibv.handle = number;
    // `srq_limit` means nothing at creation (man ibv_create_srq).
    let queue = SrqQueue {
        tail: 0,
        free: (0..max_wr).rev().collect(),
        posted: vec![None; size as usize].into_boxed_slice(),
    };
    let srq = Srq {
        ibv,
        host,
        pd: domain.ibv.handle,
        max_wr,
        max_sge,
        area,
        pool,
        queue: SpinLock::new(queue),
        wqes: Wqes::new(size, max_sge.max(1)),
        members: Mutex::default(),
        doubts: AtomicU32::new(1),
    };
    Box::leak(Box::new(srq)).enter()
}

pub(crate) unsafe extern "C" fn modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
    // SAFETY: the caller gives a live queue of this device and readable attributes.
    let (srq, attr) = unsafe { (Srq::from(srq), &*attr) };
    let mask = mask.cast_unsigned();
    if mask & !(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) != 0 {
        return libc::EINVAL;
    }
    if mask & IBV_SRQ_MAX_WR != 0 {
        return libc::EOPNOTSUPP; // As without IBV_DEVICE_SRQ_RESIZE.
    }
    if mask & IBV_SRQ_LIMIT != 0 {
        if attr.srq_limit > srq.max_wr {
            return libc::EINVAL;
        }
        srq.pool.shared().limit.store(attr.srq_limit, SeqCst);
        // Where there are fewer receives already, the next one that is taken raises the event, as Soft-RoCE has it
        // (get_srq_wqe() in rxe_resp.c).
    }
    0
}

pub(crate) unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let srq = unsafe { Srq::from(srq) };
    let srq_limit = srq.pool.shared().limit.load(SeqCst);
    // SAFETY: the caller gives writable attributes.
    unsafe { attr.write(ibv_srq_attr { max_wr: srq.max_wr, max_sge: srq.max_sge, srq_limit }) };
    0
}

pub(crate) unsafe extern "C" fn destroy_srq(raw: *mut ibv_srq) -> c_int {
    // SAFETY: the caller gives a live queue of this device.
    let srq = unsafe { Srq::from(raw) };
    if !srq.members.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
        return libc::EBUSY;
    }
    // SAFETY: a queue's context lives at least as long as the queue.
    unsafe { Ctx::from(srq.ibv.context) }.events.leave(Kind::SharedReceiveQueue, srq.ibv.handle);
    srq.host.arena.free(srq.area.offset, srq.area.bytes());
    COUNT.fetch_sub(1, SeqCst);
    // SAFETY: a queue's domain lives at least as long as the queue.
    unsafe { &*srq.ibv.pd.cast::<Pd>() }.children.fetch_sub(1, Relaxed);
    // SAFETY: create_srq made it, and no queue pair refers to it any more.
    drop(unsafe { Box::from_raw(raw.cast::<Srq>()) });
    0
}
