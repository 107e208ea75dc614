//! Shared receive queues (IBTA vol. 1, section 10.2.9).

use std::sync::Arc;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::memory::{PdInner, ProtectionDomain};
use crate::work::ReceiveRequest;

/// A shared receive queue: several queue pairs take receives from it. Clones share it.
#[derive(Clone, Debug)]
pub struct SharedReceiveQueue {
    pub(crate) inner: Arc<SrqInner>,
}

#[derive(Debug)]
pub(crate) struct SrqInner {
    pub(crate) raw: *mut ibv_srq,
    pd: Arc<PdInner>,
}

// SAFETY: verbs are thread-safe.
unsafe impl Send for SrqInner {}
// SAFETY: verbs are thread-safe.
unsafe impl Sync for SrqInner {}

impl Drop for SrqInner {
    fn drop(&mut self) {
        // SAFETY: the queue is alive and is destroyed once, after the queue pairs that held it and
        // before its domain.
        unsafe { (self.pd.context.provider().destroy_srq)(self.raw) };
    }
}

impl ProtectionDomain {
    /// Makes a shared receive queue for `max_wr` receives of `max_sge` elements (`ibv_create_srq`).
    ///
    /// # Errors
    /// The device's error, also if it has no shared receive queues.
    pub fn shared_receive_queue(&self, max_wr: u32, max_sge: u32) -> Result<SharedReceiveQueue> {
        let mut attr = ibv_srq_init_attr {
            srq_context: std::ptr::null_mut(),
            attr: ibv_srq_attr { max_wr, max_sge, srq_limit: 0 },
        };
        // SAFETY: the domain is alive and held by the queue; the attributes are writable.
        let raw = unsafe { (self.inner.context.provider().create_srq)(self.inner.raw, &raw mut attr) };
        if raw.is_null() {
            return Err(Error::last("create_srq", format!("{max_wr} receives of {max_sge} elements")));
        }
        Ok(SharedReceiveQueue { inner: Arc::new(SrqInner { raw, pd: Arc::clone(&self.inner) }) })
    }
}

impl SharedReceiveQueue {
    /// Posts a receive (`ibv_post_srq_recv`). This is safe whatever the elements contain, as with
    /// [`QueuePair::post_receive`](crate::QueuePair::post_receive).
    ///
    /// # Errors
    /// ENOMEM if the queue is full; EINVAL if the request has too many elements.
    #[inline]
    pub fn post_receive(&self, request: &mut ReceiveRequest) -> Result<()> {
        request.raw.sg_list = request.elements.as_mut_ptr();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the context of a live queue is alive; libibverbs reads its operations in the same
        // way.
        let post = unsafe { (*(*self.inner.raw).context).ops.post_srq_recv };
        let Some(post) = post else {
            return Error::check("post_srq_recv", String::new, libc::EOPNOTSUPP);
        };
        // SAFETY: the request and its elements are readable until it returns.
        let returned = unsafe { post(self.inner.raw, &raw mut request.raw, &raw mut bad) };
        Error::check("post_srq_recv", || "shared receive queue".to_owned(), returned)
    }

    /// Requests an event when fewer than `limit` receives are left; 0 requests none
    /// (`ibv_modify_srq`).
    ///
    /// # Errors
    /// The device's error: EINVAL if the queue is shorter.
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        let mut attr = ibv_srq_attr { srq_limit: limit, ..ibv_srq_attr::default() };
        let mask = IBV_SRQ_LIMIT.cast_signed();
        // SAFETY: the queue is alive and the attributes are readable.
        let returned =
            unsafe { (self.inner.pd.context.provider().modify_srq)(self.inner.raw, &raw mut attr, mask) };
        Error::check("modify_srq", || format!("limit {limit}"), returned)
    }

    /// The raw queue, valid as long as this is alive.
    #[must_use]
    pub fn raw(&self) -> *mut ibv_srq {
        self.inner.raw
    }

    /// Returns the attributes of the queue (`ibv_query_srq`).
    ///
    /// # Errors
    /// The device does not answer.
    pub fn attributes(&self) -> Result<ibv_srq_attr> {
        let mut attr = ibv_srq_attr::default();
        // SAFETY: the queue is alive and the attributes are writable.
        let returned = unsafe { (self.inner.pd.context.provider().query_srq)(self.inner.raw, &raw mut attr) };
        Error::check("query_srq", || "shared receive queue".to_owned(), returned)?;
        Ok(attr)
    }
}
