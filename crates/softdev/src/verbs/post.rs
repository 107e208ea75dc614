//! Posting work requests.

use std::ffi::c_int;

use verbs::abi::*;

use crate::objects::context::Ctx;
use crate::objects::queue_pair::Qp;
use crate::objects::srq::Srq;

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device.
    let qp = unsafe { Qp::from(qp) };
    let mut queue = qp.send.lock();
    // SAFETY: the caller passes a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable.
        if unsafe { qp.post_eagerly(&mut queue, request) } {
            wr = request.next;
            continue;
        }
        // SAFETY: as above; an address handle, if the service has one, is alive.
        if let Err(errno) = unsafe { qp.post(&mut queue, request) } {
            // SAFETY: the caller passes a writable pointer.
            unsafe { bad_wr.write(wr) };
            return errno;
        }
        wr = request.next;
    }
    0
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device.
    let qp = unsafe { Qp::from(qp) };
    let mut queue = qp.receiving.queue.lock();
    let before = qp.state();
    let mut posted = 0;
    // SAFETY: the caller passes a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable.
        if let Err(errno) = unsafe { qp.post_receive(&mut queue, request) } {
            // SAFETY: the caller passes a writable pointer.
            unsafe { bad_wr.write(wr) };
            posted = errno;
            break;
        }
        wr = request.next;
    }
    drop(queue);
    match qp.state() {
        IBV_QPS_ERR if before == IBV_QPS_ERR => qp.announce_flush(),
        // A peer has found an error meanwhile, and may have looked for receives before these were
        // posted.
        IBV_QPS_ERR => qp.flush_receives(),
        _ => {}
    }
    qp.ctx().progress();
    posted
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    mut wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let srq = unsafe { Srq::from(srq) };
    let mut queue = srq.queue.lock();
    // SAFETY: the caller passes a list of readable work requests that ends with null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: as above; the elements are readable.
        if let Err(errno) = unsafe { srq.post(&mut queue, request) } {
            // SAFETY: the caller passes a writable pointer.
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
