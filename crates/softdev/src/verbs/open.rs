//! Opening and closing a device.

use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

use verbs::LinkModel;
use verbs::abi::*;

use crate::engine::port;
use crate::objects::context::{CONTEXT_AT, Ctx};
use crate::objects::event::Events;
use crate::sys::errno::fail;
use crate::sys::settings::settings;
use crate::transport::local::host::host;
use crate::verbs::{completion, device, extended, parent_domain, post};

pub(crate) unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    // SAFETY: the caller passes a device of the list.
    let number = unsafe { device::number(device) };
    let (events, async_fd) = match host().and_then(|host| Events::new(host, number)) {
        Ok(made) => made,
        Err(error) => return fail(error.raw_os_error().unwrap_or(libc::ENODEV)),
    };
    // SAFETY: all-zero bytes are a valid verbs_context: integers, null pointers, absent functions,
    // an unlocked mutex.
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    extended::install(&mut verbs);
    parent_domain::install(&mut verbs);
    let ibv = &mut verbs.context;
    ibv.abi_compat = std::ptr::without_provenance_mut(ABI_IS_EXTENDED);
    ibv.device = device;
    ibv.ops.poll_cq = Some(completion::poll_cq);
    ibv.ops.req_notify_cq = Some(completion::req_notify_cq);
    ibv.ops.post_send = Some(post::post_send);
    ibv.ops.post_recv = Some(post::post_recv);
    ibv.ops.post_srq_recv = Some(post::post_srq_recv);
    // The device takes no commands by it, but programs duplicate it to share a device, which is
    // then refused by name.
    ibv.cmd_fd = events.descriptor();
    ibv.async_fd = async_fd;
    ibv.num_comp_vectors = 1;
    let ctx = Box::into_raw(Box::new(Ctx {
        verbs,
        device: number,
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
    // SAFETY: the context is a member of the Ctx that was just made.
    unsafe { &raw mut (*ctx).verbs.context }
}

pub(crate) unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: the caller passes a context that open_device made.
    port::leave(unsafe { Ctx::from(context) });
    // SAFETY: as below; the keeper must end before the context is destroyed.
    drop(unsafe { Ctx::from(context) }.keeper.lock().unwrap_or_else(PoisonError::into_inner).take());
    // SAFETY: the caller passes a context that open_device made and does not use it again.
    let ctx = unsafe { Box::from_raw(context.byte_sub(CONTEXT_AT).cast::<Ctx>()) };
    ctx.events.close(ctx.verbs.context.async_fd);
    0
}

pub(crate) unsafe extern "C" fn set_link(context: *mut ibv_context, model: *const LinkModel) -> c_int {
    // SAFETY: the caller passes a live context of this device.
    let ctx = unsafe { Ctx::from(context) };
    // SAFETY: the caller passes null or a readable model.
    ctx.set_link(unsafe { model.as_ref() })
}
