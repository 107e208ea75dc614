//! Contexts, protection domains and address handles.

use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::completion;
use crate::device::{self};
use crate::event::Events;
use crate::extended;
use crate::flight::Keeper;
use crate::parent_domain::{self, Parts};
use crate::port;
use crate::queue_pair::Qp;
use crate::sys::errno::fail;
use crate::sys::limits::{
    BLOCKS, CQS, MAX_CQE, MAX_RD_ATOMIC, MAX_SGE, MAX_SRQS, MAX_WR, MEMBERS, MRS, PART, QPS, VENDOR,
};
use crate::sys::settings::settings;
use crate::transport::local::address::{Way, device_guid, follow, is_valid_route};
use crate::transport::local::host::{agree, guid, host};
use crate::{receive, send, srq};

/// A context with what the device keeps for it.
#[repr(C)]
pub(crate) struct Ctx {
    pub(crate) verbs: verbs_context,
    /// Number of its device.
    pub(crate) device: u8,
    /// Its asynchronous events.
    pub(crate) events: Events,
    /// Queue pairs of this context with sends that wait: all that polling has to look at when nothing waits.
    pub(crate) waiting: AtomicUsize,
    pub(crate) queue_pairs: Mutex<Vec<*const Qp>>,
    /// What imitates a link, if anything does.
    pub(crate) keeper: Mutex<Option<Keeper>>,
}

impl Ctx {
    /// # Safety
    /// `context` is a live context of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(context: *mut ibv_context) -> &'a Self {
        // SAFETY: every ibv_context of this device is the last member of the verbs_context that a Ctx begins with.
        unsafe { &*context.byte_sub(CONTEXT_AT).cast::<Self>() }
    }

    /// Tries waiting sends again.
    #[inline]
    pub(crate) fn progress(&self) {
        if self.waiting.load(Relaxed) != 0 {
            self.progress_waiting();
        }
    }

    /// Waits until every message to or from memory of a domain that is under way has been placed.
    pub(crate) fn settle(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                // Copying of this process's own takes place under these two locks.
                drop(qp.send.lock());
                qp.pause_polling();
                qp.await_messages();
            }
        }
    }

    /// Waits until no peer is at work in the memory of a domain that had a right to it before.
    pub(crate) fn await_access(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                qp.await_access();
            }
        }
    }

    #[cold]
    fn progress_waiting(&self) {
        // Another thread at work here, or at a queue, does for both: nobody waits.
        let Ok(queue_pairs) = self.queue_pairs.try_lock() else { return };
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            unsafe { &**qp }.retry();
        }
    }
}

/// Where the part of a [`Ctx`] that programs know begins.
const CONTEXT_AT: usize = offset_of!(Ctx, verbs.context);

pub(crate) unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    let (events, async_fd) = match host().and_then(Events::new) {
        Ok(made) => made,
        Err(error) => return fail(error.raw_os_error().unwrap_or(libc::ENODEV)),
    };
    // SAFETY: all-zero bytes are a valid verbs_context: integers, null pointers, absent functions, an unlocked mutex.
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    extended::install(&mut verbs);
    parent_domain::install(&mut verbs);
    let ibv = &mut verbs.context;
    ibv.abi_compat = std::ptr::without_provenance_mut(ABI_IS_EXTENDED);
    ibv.device = device;
    ibv.ops.poll_cq = Some(completion::poll_cq);
    ibv.ops.req_notify_cq = Some(completion::req_notify_cq);
    ibv.ops.post_send = Some(send::post_send);
    ibv.ops.post_recv = Some(receive::post_recv);
    ibv.ops.post_srq_recv = Some(srq::post_srq_recv);
    // Nobody gives commands by it, but programs duplicate it to share a device, which is then refused by name.
    ibv.cmd_fd = events.descriptor();
    ibv.async_fd = async_fd;
    ibv.num_comp_vectors = 1;
    // SAFETY: the caller gives a device of the list.
    let device = unsafe { device::number(device) };
    let ctx = Box::into_raw(Box::new(Ctx {
        verbs,
        device,
        events,
        waiting: AtomicUsize::new(0),
        queue_pairs: Mutex::default(),
        keeper: Mutex::default(),
    }));
    port::enter(ctx);
    if let Ok(settings) = settings() {
        // SAFETY: it was just made.
        unsafe { &*ctx }.set_link(settings.link.as_ref());
    }
    // SAFETY: the context lies in what was just made.
    unsafe { &raw mut (*ctx).verbs.context }
}

pub(crate) unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: the caller gives a context that open_device made.
    port::leave(unsafe { Ctx::from(context) });
    // SAFETY: as below; whoever looks after the context has to end before it is taken apart.
    drop(unsafe { Ctx::from(context) }.keeper.lock().unwrap_or_else(PoisonError::into_inner).take());
    // SAFETY: the caller gives a context that open_device made and does not use it again.
    let ctx = unsafe { Box::from_raw(context.byte_sub(CONTEXT_AT).cast::<Ctx>()) };
    ctx.events.close(ctx.verbs.context.async_fd);
    0
}

pub(crate) unsafe extern "C" fn query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
    // SAFETY: the caller gives a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    // SAFETY: all-zero bytes are a valid ibv_device_attr: integers.
    let mut made: ibv_device_attr = unsafe { std::mem::zeroed() };
    for (to, from) in made.fw_ver.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()) {
        *to = from.cast_signed();
    }
    made.node_guid = device_guid(device).to_be();
    // All devices are of the one system.
    made.sys_image_guid = guid().to_be();
    made.max_mr_size = u64::MAX;
    made.page_size_cap = 4096;
    made.vendor_id = VENDOR;
    made.vendor_part_id = PART;
    made.max_qp = QPS as c_int;
    made.max_qp_wr = MAX_WR.cast_signed();
    made.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD
        | IBV_DEVICE_PORT_ACTIVE_EVENT
        | IBV_DEVICE_RC_RNR_NAK_GEN
        | IBV_DEVICE_SYS_IMAGE_GUID;
    made.max_sge = MAX_SGE as c_int;
    made.max_cq = CQS as c_int;
    made.max_cqe = MAX_CQE;
    made.max_mr = MRS as c_int;
    made.max_pd = c_int::MAX;
    made.max_qp_rd_atom = c_int::from(MAX_RD_ATOMIC);
    made.max_qp_init_rd_atom = c_int::from(MAX_RD_ATOMIC);
    made.max_res_rd_atom = c_int::from(MAX_RD_ATOMIC) * QPS as c_int;
    // Not GLOB: see `foreign`.
    made.atomic_cap = IBV_ATOMIC_HCA;
    made.max_mcast_grp = MEMBERS as c_int;
    made.max_mcast_qp_attach = MEMBERS as c_int;
    made.max_total_mcast_qp_attach = MEMBERS as c_int;
    made.max_ah = c_int::MAX;
    made.max_pkeys = 1;
    made.max_srq = MAX_SRQS as c_int;
    made.max_srq_wr = MAX_WR.cast_signed();
    made.max_srq_sge = MAX_SGE as c_int;
    made.phys_port_cnt = 1;
    // SAFETY: the caller gives writable attributes.
    unsafe { attr.write(made) };
    0
}

/// A protection domain. Its handle is its number in this process.
#[repr(C)]
pub(crate) struct Pd {
    pub(crate) ibv: ibv_pd,
    /// Regions, queue pairs, address handles and parent domains in it.
    pub(crate) children: AtomicUsize,
    /// What it stands for, if it is a parent domain.
    pub(crate) parts: Option<Parts>,
}

pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let ibv = ibv_pd { context, handle: NUMBERS.fetch_add(1, Relaxed) };
    Box::into_raw(Box::new(Pd { ibv, children: AtomicUsize::new(0), parts: None })).cast()
}

pub(crate) unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    let pd = pd.cast::<Pd>();
    // SAFETY: the caller gives a live domain.
    if unsafe { &*pd }.children.load(SeqCst) != 0 {
        return libc::EBUSY;
    }
    // SAFETY: alloc_pd made it, and nothing is left in it.
    let pd = unsafe { Box::from_raw(pd) };
    if let Some(parts) = &pd.parts {
        parent_domain::release(parts);
    }
    0
}

/// An address handle.
#[repr(C)]
pub(crate) struct Ah {
    ibv: ibv_ah,
    pub(crate) attr: ibv_ah_attr,
    pub(crate) destination: Way,
}

pub(crate) unsafe extern "C" fn create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: the caller gives readable attributes.
    let attr = unsafe { *attr };
    if !is_valid_route(&attr) {
        return fail(libc::EINVAL);
    }
    // SAFETY: the caller gives a live domain.
    let domain = unsafe { &*pd.cast::<Pd>() };
    domain.children.fetch_add(1, Relaxed);
    let ibv = ibv_ah { context: domain.ibv.context, pd, handle: 0 };
    Box::into_raw(Box::new(Ah { ibv, attr, destination: follow(&attr) })).cast()
}

pub(crate) unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: the caller gives a handle that create_ah made and does not use it again.
    let ah = unsafe { Box::from_raw(ah.cast::<Ah>()) };
    // SAFETY: a handle's domain lives at least as long as the handle.
    unsafe { &*ah.ibv.pd.cast::<Pd>() }.children.fetch_sub(1, Relaxed);
    0
}

/// So that the number of blocks is seen to fit the 24 bits of a queue-pair number.
const _: () = assert!(BLOCKS as usize * QPS == 1 << 24);
