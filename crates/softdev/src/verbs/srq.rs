//! Making, changing, querying and destroying shared receive queues.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::memory::slots::Ring;
use crate::objects::context::{Ctx, Pd};
use crate::objects::srq::{Srq, SrqQueue};
use crate::objects::wqe::Wqes;
use crate::sys::errno::fail;
use crate::sys::limits::{MAX_SGE, MAX_SRQS, MAX_WR};
use crate::sys::own_lock::OwnLock;
use crate::transport::local::host::host;
use crate::transport::local::pool::Area;
use crate::transport::local::raise::Kind;

/// The number of shared receive queues of this process.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The number of the next one, for its events.
static NUMBERS: AtomicU32 = AtomicU32::new(1);

pub(crate) unsafe extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the caller passes readable and writable attributes, and a live domain.
    let (init, domain) = unsafe { (&mut *init, &*pd.cast::<Pd>()) };
    let max_wr = init.attr.max_wr;
    let max_sge = init.attr.max_sge;
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
    // SAFETY: all-zero bytes are a valid ibv_srq: integers, null pointers, an unlocked mutex, an
    // unused condition.
    let mut ibv: ibv_srq = unsafe { std::mem::zeroed() };
    let number = NUMBERS.fetch_add(1, Relaxed);
    pool.shared().number.store(number, Relaxed);
    (ibv.context, ibv.srq_context, ibv.pd) = (domain.ibv.context, init.srq_context, pd);
    ibv.handle = number;
    // `srq_limit` has no meaning at creation (man ibv_create_srq).
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
        queue: OwnLock::new(queue),
        wqes: Wqes::new(size, max_sge.max(1)),
        members: Mutex::default(),
        doubts: AtomicU32::new(1),
    };
    Box::leak(Box::new(srq)).enter()
}

pub(crate) unsafe extern "C" fn modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
    // SAFETY: the caller passes a live queue of this device and readable attributes.
    let (srq, attr) = unsafe { (Srq::from(srq), &*attr) };
    let mask = mask.cast_unsigned();
    if mask & !(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) != 0 {
        return libc::EINVAL;
    }
    if mask & IBV_SRQ_MAX_WR != 0 {
        return libc::EOPNOTSUPP; // As on a device without IBV_DEVICE_SRQ_RESIZE.
    }
    if mask & IBV_SRQ_LIMIT != 0 {
        if attr.srq_limit > srq.max_wr {
            return libc::EINVAL;
        }
        srq.pool.shared().limit.store(attr.srq_limit, SeqCst);
        // If there are already fewer receives, the next one that is taken raises the event, as in
        // Soft-RoCE (get_srq_wqe() in rxe_resp.c).
    }
    0
}

pub(crate) unsafe extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let srq = unsafe { Srq::from(srq) };
    let srq_limit = srq.pool.shared().limit.load(SeqCst);
    // SAFETY: the caller passes writable attributes.
    unsafe { attr.write(ibv_srq_attr { max_wr: srq.max_wr, max_sge: srq.max_sge, srq_limit }) };
    0
}

pub(crate) unsafe extern "C" fn destroy_srq(raw: *mut ibv_srq) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
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
