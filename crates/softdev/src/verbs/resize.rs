//! Resizing a completion queue.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::objects::completion::Cq;
use crate::sys::limits::MAX_CQE;

/// `ibv_resize_cq`(3). Completions of receives are in their lanes and need no entry.
pub(crate) unsafe extern "C" fn resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    let mut entries = cq.entries.lock();
    let unpolled = entries.own.len();
    if !(1..=MAX_CQE).contains(&cqe) || unpolled > cqe as usize {
        return libc::EINVAL;
    }
    entries.own.resize(cqe as usize);
    cq.ibv.cqe.store(cqe, Relaxed);
    0
}
