//! Asynchronous events as a program takes them.

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;

use verbs::abi::*;

use crate::objects::completion::Cq;
use crate::objects::context::Ctx;
use crate::sys::errno::fail;
use crate::transport::local::raise::{Kind, kind_of};

pub(crate) unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: the caller passes a live context of this device.
    let (ctx, fd) = unsafe { (Ctx::from(context), (*context).async_fd) };
    // SAFETY: the descriptor is open as long as the context.
    match ctx.events.next(unsafe { BorrowedFd::borrow_raw(fd) }) {
        Ok(found) => {
            // SAFETY: the caller passes a writable event.
            unsafe { event.write(found) };
            0
        }
        Err(errno) => {
            fail::<c_void>(errno.raw_os_error());
            -1
        }
    }
}

pub(crate) unsafe extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: the caller passes an event that get_async_event made.
    let ibv_async_event { element, event_type } = unsafe { *event };
    // SAFETY: the type says which member is set; its object is alive, since its destruction waits
    // for this.
    let (context, kind, handle) = unsafe {
        match kind_of(event_type) {
            Some(Kind::QueuePair) => ((*element.qp).context, Kind::QueuePair, (*element.qp).qp_num),
            Some(Kind::CompletionQueue) => {
                ((*element.cq).context, Kind::CompletionQueue, Cq::from(element.cq).index)
            }
            Some(Kind::SharedReceiveQueue) => {
                ((*element.srq).context, Kind::SharedReceiveQueue, (*element.srq).handle)
            }
            Some(Kind::Port) | None => return,
        }
    };
    // SAFETY: an object's context lives at least as long as the object.
    unsafe { Ctx::from(context) }.events.acknowledge(kind, handle);
}
