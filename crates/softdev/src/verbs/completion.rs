//! Making, polling, arming and destroying completion queues.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::Duration;

use verbs::abi::*;

use crate::engine::channel;
use crate::objects::completion::{Cq, Entries, Peek};
use crate::objects::context::Ctx;
use crate::objects::own::Own;
use crate::objects::polling::{Extended, Making};
use crate::sys::errno::fail;
use crate::sys::indexes::Indexes;
use crate::sys::limits::{CQS, MAX_CQE};
use crate::sys::own_lock::OwnLock;
use crate::transport::local::arming::arm;
use crate::transport::local::host::host;
use crate::transport::local::raise::Kind;

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
    let cq = unsafe { Cq::from(cq) };
    if cq.is_seen_empty() {
        return 0;
    }
    // SAFETY: as the caller guarantees.
    unsafe { poll_closely(cq, num_entries, wc) }
}

/// As `poll_cq`, for a queue that may not be empty. It is a separate function, so that the many
/// polls that find nothing save no registers.
///
/// # Safety
/// There is space for `num_entries` completions.
#[inline(never)]
unsafe fn poll_closely(cq: &Cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    let _alone = cq.extended.as_ref().map(Extended::alone);
    // SAFETY: the caller passes space for num_entries completions.
    unsafe { cq.take(num_entries, wc) }
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
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
    // SAFETY: the caller passes an open context, and null or a live channel.
    unsafe { create(context, making, |_| ()) }
}

/// Entries of the table of completion queues in use.
static INDEXES: Indexes<CQS> = Indexes::new();

/// The next handle; no two queues share one. 0 stands for no queue: see `channel`.
static HANDLES: AtomicU64 = AtomicU64::new(1);

/// Makes a queue, to which `install` gives its functions.
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
    // SAFETY: all-zero bytes are a valid ibv_cq_ex: integers, null pointers, absent functions, an
    // unlocked mutex, an unused condition.
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
    // SAFETY: the caller passes a live context of this device.
    unsafe { Ctx::from(context) }.events.enter(Kind::CompletionQueue, index, handle as u32, cq);
    cq
}

pub(crate) unsafe extern "C" fn destroy_cq(raw: *mut ibv_cq) -> c_int {
    // SAFETY: the caller passes a live queue of this device.
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
