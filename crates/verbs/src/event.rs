//! Asynchronous events of a device and its objects (man ibv_get_async_event).

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::abi::*;
use crate::context::Context;
use crate::error::{Error, Result};

/// An event, and the object that it is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AsyncEvent {
    /// The type of the event.
    pub event: AsyncEventType,
    /// The object.
    pub of: Affected,
}

/// A type of events (`ibv_event_type`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AsyncEventType(pub ibv_event_type);

/// The object that an event is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Affected {
    /// The queue pair with this number.
    QueuePair(u32),
    /// A completion queue.
    CompletionQueue,
    /// A shared receive queue.
    SharedReceiveQueue,
    /// The port with this number.
    Port(i32),
    /// The device itself.
    Device,
}

/// As in the specification (IBTA vol. 1, section 11.6.3).
impl fmt::Display for AsyncEventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            IBV_EVENT_CQ_ERR => "completion queue error",
            IBV_EVENT_QP_FATAL => "local work queue catastrophic error",
            IBV_EVENT_QP_REQ_ERR => "invalid request local work queue error",
            IBV_EVENT_QP_ACCESS_ERR => "local access violation work queue error",
            IBV_EVENT_COMM_EST => "communication established",
            IBV_EVENT_SQ_DRAINED => "send queue drained",
            IBV_EVENT_PATH_MIG => "path migrated",
            IBV_EVENT_PATH_MIG_ERR => "path migration request error",
            IBV_EVENT_DEVICE_FATAL => "local catastrophic error",
            IBV_EVENT_PORT_ACTIVE => "port active",
            IBV_EVENT_PORT_ERR => "port error",
            IBV_EVENT_LID_CHANGE => "LID changed",
            IBV_EVENT_PKEY_CHANGE => "P_Key table changed",
            IBV_EVENT_SM_CHANGE => "subnet manager changed",
            IBV_EVENT_SRQ_ERR => "shared receive queue catastrophic error",
            IBV_EVENT_SRQ_LIMIT_REACHED => "shared receive queue limit reached",
            IBV_EVENT_QP_LAST_WQE_REACHED => "last work request reached",
            IBV_EVENT_CLIENT_REREGISTER => "client reregistration",
            IBV_EVENT_GID_CHANGE => "GID table changed",
            other => return write!(f, "event {other}"),
        })
    }
}

impl Context {
    /// The descriptor that events arrive on, for polling, or to make it non-blocking.
    #[must_use]
    pub fn async_descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the context, which is borrowed.
        unsafe { BorrowedFd::borrow_raw((*self.inner.raw).async_fd) }
    }

    /// Waits for the next event, unless the descriptor is non-blocking, and acknowledges it at
    /// once, so that the object can be destroyed at any time.
    ///
    /// # Errors
    /// EINTR on a signal, EAGAIN if a non-blocking descriptor has no event.
    pub fn async_event(&self) -> Result<AsyncEvent> {
        let provider = self.inner.provider();
        let mut raw = ibv_async_event { element: ibv_async_element { port_num: 0 }, event_type: 0 };
        // SAFETY: the context is open and the event is writable.
        if unsafe { (provider.get_async_event)(self.inner.raw, &raw mut raw) } != 0 {
            return Err(Error::last("get_async_event", self.device().name()));
        }
        // SAFETY: the type tells which member the device has written; a queue pair lives until the
        // event is acknowledged.
        let of = unsafe {
            match raw.event_type {
                IBV_EVENT_CQ_ERR => Affected::CompletionQueue,
                IBV_EVENT_QP_FATAL..=IBV_EVENT_PATH_MIG_ERR | IBV_EVENT_QP_LAST_WQE_REACHED => {
                    Affected::QueuePair((*raw.element.qp).qp_num)
                }
                IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => Affected::SharedReceiveQueue,
                IBV_EVENT_DEVICE_FATAL => Affected::Device,
                _ => Affected::Port(raw.element.port_num),
            }
        };
        // SAFETY: the event was just taken and has not been acknowledged.
        unsafe { (provider.ack_async_event)(&raw mut raw) };
        Ok(AsyncEvent { event: AsyncEventType(raw.event_type), of })
    }
}
