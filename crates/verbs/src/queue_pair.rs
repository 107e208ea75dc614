//! Queue pairs. The state is part of the type: `QueuePair<Reset>` becomes `QueuePair<Init>`, and so
//! on.

mod attributes;
mod groups;
mod modify;

use std::marker::PhantomData;
use std::sync::Arc;

pub use self::attributes::{Connection, Initialisation, QueuePairOptions, Service};
use crate::abi::*;
use crate::completion::CompletionQueue;
use crate::context::Transport;
use crate::error::{Error, Result};
use crate::memory::{PdInner, ProtectionDomain};
use crate::provider::Provider;
use crate::srq::SharedReceiveQueue;
use crate::work::{ReceiveRequest, SendRequest};

/// New: nothing may be posted.
#[derive(Debug)]
pub enum Reset {}
/// Initialised: receives may be posted.
#[derive(Debug)]
pub enum Init {}
/// Ready to receive (RTR): messages are received.
#[derive(Debug)]
pub enum ReadyToReceive {}
/// Ready to send (RTS).
#[derive(Debug)]
pub enum ReadyToSend {}

/// States in which a receive may be posted.
pub trait CanReceive {}
impl CanReceive for Init {}
impl CanReceive for ReadyToReceive {}
impl CanReceive for ReadyToSend {}

/// The attributes of `ibv_modify_qp`; a kernel may have more.
const ATTRIBUTES: u32 = (IBV_QP_DEST_QPN << 1) - 1;

/// A queue pair in a state. The state decides what may be posted. A send may be posted once the
/// queue pair is ready to send,
///
/// ```
/// # use verbs::{QueuePair, ReadyToSend, Result, SendRequest};
/// fn post(pair: &mut QueuePair<ReadyToSend>, request: &mut SendRequest) -> Result<()> {
///     pair.post_send(request)
/// }
/// ```
///
/// but not before:
///
/// ```compile_fail,E0599
/// # use verbs::{QueuePair, Init, Result, SendRequest};
/// fn post(pair: &mut QueuePair<Init>, request: &mut SendRequest) -> Result<()> {
///     pair.post_send(request)
/// }
/// ```
///
/// ```compile_fail,E0599
/// # use verbs::{QueuePair, ReadyToReceive, Result, SendRequest};
/// fn post(pair: &mut QueuePair<ReadyToReceive>, request: &mut SendRequest) -> Result<()> {
///     pair.post_send(request)
/// }
/// ```
///
/// A receive may be posted from INIT on,
///
/// ```
/// # use verbs::{QueuePair, Init, ReceiveRequest, Result};
/// fn post(pair: &mut QueuePair<Init>, request: &mut ReceiveRequest) -> Result<()> {
///     pair.post_receive(request)
/// }
/// ```
///
/// but not before:
///
/// ```compile_fail,E0599
/// # use verbs::{QueuePair, ReceiveRequest, Reset, Result};
/// fn post(pair: &mut QueuePair<Reset>, request: &mut ReceiveRequest) -> Result<()> {
///     pair.post_receive(request)
/// }
/// ```
///
/// No state is skipped, and none can be used after it was left:
///
/// ```compile_fail,E0599
/// # use verbs::{Connection, QueuePair, ReadyToReceive, Reset, Result};
/// fn skip(pair: QueuePair<Reset>, to: &Connection) -> Result<QueuePair<ReadyToReceive>> {
///     pair.ready_to_receive(to)
/// }
/// ```
///
/// ```compile_fail,E0382
/// # use verbs::{Initialisation, QueuePair, Reset, Result};
/// fn twice(pair: QueuePair<Reset>, with: &Initialisation) -> Result<()> {
///     pair.init(with)?;
///     pair.init(with)?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct QueuePair<State> {
    inner: QpInner,
    service: Service,
    max_inline_data: u32,
    state: PhantomData<State>,
}

#[derive(Debug)]
struct QpInner {
    raw: *mut ibv_qp,
    pd: Arc<PdInner>,
    /// The multicast groups that it has joined.
    groups: Vec<(ibv_gid, u16)>,
    /// Held so that the queues outlive the queue pair.
    _queues: [CompletionQueue; 2],
    _shared: Option<SharedReceiveQueue>,
}

// SAFETY: verbs are thread-safe; posting takes `&mut`.
unsafe impl Send for QpInner {}
// SAFETY: as above.
unsafe impl Sync for QpInner {}

impl Drop for QpInner {
    fn drop(&mut self) {
        self.leave_groups();
        // SAFETY: the queue pair is alive and is destroyed once, before its queues and its domain.
        unsafe { (self.provider().destroy_qp)(self.raw) };
    }
}

impl QpInner {
    fn provider(&self) -> &'static Provider {
        self.pd.context.provider()
    }
}

impl ProtectionDomain {
    /// Makes a queue pair (`ibv_create_qp`).
    ///
    /// # Errors
    /// [`Error::Limit`] if the device's limit of inline data is lower than asked for; otherwise the
    /// device's error.
    pub fn queue_pair(
        &self,
        options: &QueuePairOptions,
        send_queue: &CompletionQueue,
        receive_queue: &CompletionQueue,
    ) -> Result<QueuePair<Reset>> {
        self.queue_pair_with(options, send_queue, receive_queue, None)
    }

    /// Makes a queue pair that takes receives from a shared queue instead of a queue of its own.
    ///
    /// # Errors
    /// The device's error.
    pub fn queue_pair_sharing(
        &self,
        options: &QueuePairOptions,
        send_queue: &CompletionQueue,
        receive_queue: &CompletionQueue,
        shared: &SharedReceiveQueue,
    ) -> Result<QueuePair<Reset>> {
        self.queue_pair_with(options, send_queue, receive_queue, Some(shared))
    }

    fn queue_pair_with(
        &self,
        options: &QueuePairOptions,
        send_queue: &CompletionQueue,
        receive_queue: &CompletionQueue,
        shared: Option<&SharedReceiveQueue>,
    ) -> Result<QueuePair<Reset>> {
        let mut attr = ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: send_queue.inner.raw,
            recv_cq: receive_queue.inner.raw,
            srq: shared.map_or(std::ptr::null_mut(), |shared| shared.inner.raw),
            cap: ibv_qp_cap {
                max_send_wr: options.max_send_wr,
                max_recv_wr: options.max_recv_wr,
                max_send_sge: options.max_send_sge,
                max_recv_sge: options.max_recv_sge,
                max_inline_data: options.max_inline_data,
            },
            qp_type: options.service.raw(),
            sq_sig_all: 0,
        };
        // SAFETY: domain and queues are alive and held by the queue pair; the attributes are
        // writable.
        let raw = unsafe { (self.inner.context.provider().create_qp)(self.inner.raw, &raw mut attr) };
        if raw.is_null() {
            return Err(Error::last("create_qp", format!("{options:?}")));
        }
        let inner = QpInner {
            raw,
            pd: Arc::clone(&self.inner),
            groups: Vec::new(),
            _queues: [send_queue.clone(), receive_queue.clone()],
            _shared: shared.cloned(),
        };
        let max_inline_data = attr.cap.max_inline_data;
        Ok(QueuePair { inner, service: options.service, max_inline_data, state: PhantomData })
    }
}

impl<State> QueuePair<State> {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { (*self.inner.raw).qp_num }
    }

    /// The raw queue pair, valid as long as this is alive.
    #[must_use]
    pub fn raw(&self) -> *mut ibv_qp {
        self.inner.raw
    }

    /// Its transport service.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service
    }

    /// The transport of its device.
    pub(crate) fn transport(&self) -> Transport {
        self.inner.pd.context.device.transport()
    }

    /// The bytes that may be sent inline, at least as many as asked for.
    #[must_use]
    pub fn max_inline_data(&self) -> u32 {
        self.max_inline_data
    }

    fn into_state<Next>(self) -> QueuePair<Next> {
        let Self { inner, service, max_inline_data, .. } = self;
        QueuePair { inner, service, max_inline_data, state: PhantomData }
    }

    /// Asks the device for the state of the queue pair: an error may have changed it.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn device_state(&self) -> Result<ibv_qp_state> {
        let mut attr = ibv_qp_attr::default();
        // SAFETY: all-zero bytes are a valid ibv_qp_init_attr: integers and null pointers.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let mask = IBV_QP_STATE.cast_signed();
        // SAFETY: the queue pair is alive and both results are writable.
        let returned =
            unsafe { (self.inner.provider().query_qp)(self.inner.raw, &raw mut attr, mask, &raw mut init) };
        Error::check("query_qp", || format!("queue pair {:#08x}", self.number()), returned)?;
        Ok(attr.qp_state)
    }
}

impl QueuePair<Reset> {
    /// RESET to INIT.
    ///
    /// # Errors
    /// The device refuses.
    pub fn init(self, with: &Initialisation) -> Result<QueuePair<Init>> {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: with.port,
            pkey_index: with.pkey_index,
            qkey: with.qkey,
            qp_access_flags: with.access,
            ..ibv_qp_attr::default()
        };
        let own = if self.service == Service::Ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
        self.inner.modify(&mut attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own)?;
        Ok(self.into_state())
    }
}

impl QueuePair<Init> {
    /// INIT to RTR. A datagram queue pair uses nothing of the connection.
    ///
    /// # Errors
    /// The device refuses.
    pub fn ready_to_receive(self, to: &Connection) -> Result<QueuePair<ReadyToReceive>> {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: to.mtu.code(),
            dest_qp_num: to.qp_num,
            rq_psn: to.peer_psn,
            ah_attr: to.route.raw(),
            max_dest_rd_atomic: to.responder_reads,
            min_rnr_timer: to.min_rnr_timer,
            ..ibv_qp_attr::default()
        };
        let connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        let mask = match self.service {
            Service::Rc => connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
            Service::Uc => connected,
            Service::Ud => 0,
        };
        self.inner.modify(&mut attr, mask)?;
        Ok(self.into_state())
    }

    /// INIT to RTR, with attributes of the connection manager.
    pub(crate) fn ready_to_receive_as(
        self,
        attr: &mut ibv_qp_attr,
        mask: u32,
    ) -> Result<QueuePair<ReadyToReceive>> {
        self.inner.modify(attr, mask & ATTRIBUTES)?;
        Ok(self.into_state())
    }

    /// INIT to RTS, after the adapter's connection manager has made the transition.
    pub(crate) fn assume_connected(self) -> QueuePair<ReadyToSend> {
        self.into_state()
    }
}

impl QueuePair<ReadyToReceive> {
    /// RTR to RTS.
    ///
    /// # Errors
    /// The device refuses.
    pub fn ready_to_send(self, to: &Connection) -> Result<QueuePair<ReadyToSend>> {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            sq_psn: to.own_psn,
            timeout: to.timeout,
            retry_cnt: to.retry_count,
            rnr_retry: to.rnr_retry,
            max_rd_atomic: to.initiator_reads,
            ..ibv_qp_attr::default()
        };
        let reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        let mask = if self.service == Service::Rc { IBV_QP_SQ_PSN | reliable } else { IBV_QP_SQ_PSN };
        self.inner.modify(&mut attr, mask)?;
        Ok(self.into_state())
    }

    /// RTR to RTS, with attributes of the connection manager.
    pub(crate) fn ready_to_send_as(
        self,
        attr: &mut ibv_qp_attr,
        mask: u32,
    ) -> Result<QueuePair<ReadyToSend>> {
        self.inner.modify(attr, mask & ATTRIBUTES)?;
        Ok(self.into_state())
    }
}

impl<State: CanReceive> QueuePair<State> {
    /// Posts a receive (`ibv_post_recv`).
    ///
    /// This is safe whatever the elements contain: a device accesses only bytes of a live
    /// registration, and otherwise ends the request with an error.
    ///
    /// # Errors
    /// ENOMEM if the queue is full; EINVAL if the request has too many elements.
    #[inline]
    pub fn post_receive(&mut self, request: &mut ReceiveRequest) -> Result<()> {
        request.raw.sg_list = request.elements.as_mut_ptr();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the context of a live queue pair is alive; libibverbs reads its operations in the
        // same way.
        let post = unsafe { (*(*self.inner.raw).context).ops.post_recv };
        // SAFETY: every provider sets post_recv; the request and its elements are readable until it
        // returns.
        let returned = unsafe { post.unwrap_unchecked()(self.inner.raw, &raw mut request.raw, &raw mut bad) };
        Error::check("post_recv", || format!("queue pair {:#08x}", self.number()), returned)
    }
}

impl QueuePair<ReadyToSend> {
    /// Posts a send (`ibv_post_send`). This is safe whatever the elements contain, as with
    /// [`post_receive`](Self::post_receive).
    ///
    /// # Errors
    /// ENOMEM if the queue is full; EINVAL if the request has too many elements, too much inline
    /// data, or an operation that the service does not have.
    #[inline]
    pub fn post_send(&mut self, request: &mut SendRequest) -> Result<()> {
        self.post_sends(std::slice::from_mut(request))
    }

    /// Posts sends as one list, with one call.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send); requests before the refused one are posted.
    #[inline(always)]
    pub fn post_sends(&mut self, requests: &mut [SendRequest]) -> Result<()> {
        let mut next = std::ptr::null_mut();
        for request in requests.iter_mut().rev() {
            if self.service == Service::Ud && !request.is_datagram() {
                let object = format!("queue pair {:#08x}: not a datagram with an address", self.number());
                return Err(Error::Verb { verb: "post_send", object, errno: libc::EINVAL });
            }
            request.raw.sg_list = request.elements.as_mut_ptr();
            request.raw.next = next;
            next = &raw mut request.raw;
        }
        if next.is_null() {
            return Ok(());
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: the context of a live queue pair is alive; libibverbs reads its operations in the
        // same way.
        let post = unsafe { (*(*self.inner.raw).context).ops.post_send };
        // SAFETY: every provider sets post_send; the requests and their elements are readable until
        // it returns.
        let returned = unsafe { post.unwrap_unchecked()(self.inner.raw, next, &raw mut bad) };
        Error::check("post_send", || format!("queue pair {:#08x}", self.number()), returned)
    }
}
