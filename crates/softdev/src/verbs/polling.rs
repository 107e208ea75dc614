//! Completion queues that are read member by member (man ibv_create_cq_ex).
//!
//! From `start_poll` to `end_poll`, a thread has the queue for itself, and a poll of another thread
//! waits. The completion that it reads has already left the queue, so it can be read whatever
//! happens to its queue pair.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::objects::blank::blank_completion;
use crate::objects::completion::Cq;
use crate::objects::polling::{Current, Extended, Making};
use crate::sys::clock;
use crate::sys::errno::fail;
use crate::sys::spin::SpinLock;
use crate::verbs::completion::create;

/// The completion fields that the device supports (`IBV_WC_EX_WITH_*`).
const FIELDS: u32 = IBV_WC_EX_WITH_BYTE_LEN
    | IBV_WC_EX_WITH_IMM
    | IBV_WC_EX_WITH_QP_NUM
    | IBV_WC_EX_WITH_SRC_QP
    | IBV_WC_EX_WITH_SLID
    | IBV_WC_EX_WITH_SL
    | IBV_WC_EX_WITH_DLID_PATH_BITS
    | STAMPS;
const STAMPS: u32 = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
const FLAGS: u32 = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

/// `ibv_create_cq_ex`(3). A parent domain has no effect on a queue here.
pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: the caller passes readable attributes.
    let attr = unsafe { &*attr };
    let flags = if attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 { attr.flags } else { 0 };
    let refused = attr.comp_mask & !(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) != 0
        || flags & !FLAGS != 0
        || attr.wc_flags & !u64::from(FIELDS) != 0;
    if refused {
        return fail(libc::EOPNOTSUPP);
    }
    let has = |field: u32| attr.wc_flags & u64::from(field) != 0;
    let extended = Extended {
        turn: SpinLock::new(()),
        single_threaded: flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0,
        wallclock: has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK),
        current: UnsafeCell::new(Current { wc: blank_completion(0, 0, 0, 0), stamp: 0, to_wallclock: 0 }),
    };
    let making = Making {
        cqe: c_int::try_from(attr.cqe).unwrap_or(c_int::MAX),
        cq_context: attr.cq_context,
        channel: attr.channel,
        comp_vector: c_int::try_from(attr.comp_vector).unwrap_or(c_int::MAX),
        keeps_latest: flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN != 0,
        stamped: has(STAMPS),
        extended: Some(extended),
    };
    // SAFETY: the caller passes an open context, and null or a live channel.
    unsafe { create(context, making, |cq| install(cq, attr.wc_flags as u32)) }.cast()
}

/// Installs the functions of a queue. Those of fields that cost nothing are always there.
fn install(cq: &mut ibv_cq_ex, fields: u32) {
    cq.start_poll = Some(start_poll);
    cq.next_poll = Some(next_poll);
    cq.end_poll = Some(end_poll);
    cq.read_opcode = Some(read_opcode);
    cq.read_vendor_err = Some(read_vendor_err);
    cq.read_byte_len = Some(read_byte_len);
    cq.read_imm_data = Some(read_imm_data);
    cq.read_qp_num = Some(read_qp_num);
    cq.read_src_qp = Some(read_src_qp);
    cq.read_wc_flags = Some(read_wc_flags);
    cq.read_slid = Some(read_slid);
    cq.read_sl = Some(read_sl);
    cq.read_dlid_path_bits = Some(read_dlid_path_bits);
    if fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP != 0 {
        cq.read_completion_ts = Some(read_completion_ts);
    }
    if fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK != 0 {
        cq.read_completion_wallclock_ns = Some(read_completion_wallclock_ns);
    }
}

impl Cq {
    /// Takes a completion to be read. Called by the holder of the turn.
    #[inline]
    fn advance(&self, extended: &Extended) -> c_int {
        if self.is_seen_empty() {
            return libc::ENOENT;
        }
        // SAFETY: only the holder of the turn is here.
        let current = unsafe { &mut *extended.current.get() };
        // SAFETY: there is room for one completion.
        match unsafe { self.take(1, &raw mut current.wc) } {
            0 => libc::ENOENT,
            1 => {
                current.stamp = self.last_stamp();
                self.ibv.wr_id.store(current.wc.wr_id, Relaxed);
                self.ibv.status.store(current.wc.status, Relaxed);
                0
            }
            error => -error,
        }
    }
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let cq = unsafe { Cq::from(cq.cast()) };
    // SAFETY: the caller passes null or readable attributes.
    let asked = unsafe { attr.as_ref() }.map_or(0, |attr| attr.comp_mask);
    let Some(extended) = cq.extended().filter(|_| asked == 0) else { return libc::EINVAL };
    // Most polls find nothing, and need no turn.
    if cq.is_seen_empty() {
        return libc::ENOENT;
    }
    extended.begin();
    let error = cq.advance(extended);
    if error != 0 {
        // SAFETY: this thread has just taken it.
        drop(unsafe { extended.turn.held() });
    } else if extended.wallclock {
        // SAFETY: only the holder of the turn is here.
        unsafe { (*extended.current.get()).to_wallclock = clock::to_wallclock() };
    }
    error
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let cq = unsafe { Cq::from(cq.cast()) };
    match cq.extended().filter(|extended| extended.turn.is_held()) {
        Some(extended) => cq.advance(extended),
        None => libc::EINVAL, // No poll was started.
    }
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: the caller passes a live queue of this device.
    let cq = unsafe { Cq::from(cq.cast()) };
    if let Some(extended) = cq.extended().filter(|extended| extended.turn.is_held()) {
        // SAFETY: the thread that ends a poll has started it, and so holds the turn.
        drop(unsafe { extended.turn.held() });
    }
}

/// Defines the functions that read the current completion.
macro_rules! readers {
    ($($name:ident -> $type:ty = |$current:ident| $value:expr;)*) => {$(
        unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            // SAFETY: the caller passes a live queue of this device.
            let cq = unsafe { Cq::from(cq.cast()) };
            let Some(extended) = cq.extended() else { return 0 };
            // SAFETY: the caller is between start_poll and end_poll, so no other thread is here.
            let $current = unsafe { &*extended.current.get() };
            $value
        }
    )*};
}

readers! {
    read_opcode -> ibv_wc_opcode = |current| current.wc.opcode;
    read_vendor_err -> u32 = |current| current.wc.vendor_err;
    read_byte_len -> u32 = |current| current.wc.byte_len;
    read_imm_data -> u32 = |current| current.wc.imm_data;
    read_qp_num -> u32 = |current| current.wc.qp_num;
    read_src_qp -> u32 = |current| current.wc.src_qp;
    read_wc_flags -> u32 = |current| current.wc.wc_flags;
    read_slid -> u32 = |current| u32::from(current.wc.slid);
    read_sl -> u8 = |current| current.wc.sl;
    read_dlid_path_bits -> u8 = |current| current.wc.dlid_path_bits;
    read_completion_ts -> u64 = |current| current.stamp;
    read_completion_wallclock_ns -> u64 = |current| current.stamp.wrapping_add(current.to_wallclock);
}
