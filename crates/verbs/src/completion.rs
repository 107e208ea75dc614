//! Completion queues, completion channels and completions.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::abi::*;
use crate::context::{Context, ContextInner};
use crate::error::{Error, Result};

/// A completion channel: a pollable descriptor that becomes readable when an armed queue receives a
/// completion.
#[derive(Clone, Debug)]
pub struct CompletionChannel {
    inner: Arc<ChannelInner>,
}

#[derive(Debug)]
struct ChannelInner {
    raw: *mut ibv_comp_channel,
    context: Arc<ContextInner>,
}

// SAFETY: verbs are thread-safe.
unsafe impl Send for ChannelInner {}
// SAFETY: verbs are thread-safe.
unsafe impl Sync for ChannelInner {}

impl Drop for ChannelInner {
    fn drop(&mut self) {
        // SAFETY: the channel is alive, and the queues that used it are gone, because they held it.
        unsafe { (self.context.provider().destroy_comp_channel)(self.raw) };
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel is.
        unsafe { BorrowedFd::borrow_raw((*self.inner.raw).fd) }
    }
}

impl CompletionChannel {
    /// Takes one event (`ibv_get_cq_event`) and acknowledges it. Blocks unless the descriptor is
    /// non-blocking.
    ///
    /// # Errors
    /// EINTR on a signal, EAGAIN if a non-blocking descriptor has no event.
    pub fn event(&self) -> Result<()> {
        let provider = self.inner.context.provider();
        let mut cq = std::ptr::null_mut();
        let mut context = std::ptr::null_mut();
        // SAFETY: the channel is alive and the two results are writable.
        let returned = unsafe { (provider.get_cq_event)(self.inner.raw, &raw mut cq, &raw mut context) };
        Error::check("get_cq_event", || "the completion channel".to_owned(), returned)?;
        // SAFETY: the queue has just reported an event; it cannot be destroyed before this
        // acknowledgement (ibv_destroy_cq waits for it).
        unsafe { (provider.ack_cq_events)(cq, 1) };
        Ok(())
    }
}

/// A completion queue. Clones share it.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    pub(crate) inner: Arc<CqInner>,
}

#[derive(Debug)]
pub(crate) struct CqInner {
    pub(crate) raw: *mut ibv_cq,
    context: Arc<ContextInner>,
    /// Held so that the channel outlives the queue.
    _channel: Option<CompletionChannel>,
}

// SAFETY: verbs are thread-safe.
unsafe impl Send for CqInner {}
// SAFETY: verbs are thread-safe.
unsafe impl Sync for CqInner {}

impl Drop for CqInner {
    fn drop(&mut self) {
        // SAFETY: the queue is alive, and the queue pairs that used it are gone, because they held
        // it.
        unsafe { (self.context.provider().destroy_cq)(self.raw) };
    }
}

impl Context {
    /// Makes a completion channel (`ibv_create_comp_channel`).
    ///
    /// # Errors
    /// The process has no more descriptors.
    pub fn completion_channel(&self) -> Result<CompletionChannel> {
        // SAFETY: the context is open.
        let raw = unsafe { (self.inner.provider().create_comp_channel)(self.inner.raw) };
        if raw.is_null() {
            return Err(Error::last("create_comp_channel", self.device().name()));
        }
        Ok(CompletionChannel { inner: Arc::new(ChannelInner { raw, context: Arc::clone(&self.inner) }) })
    }

    /// Makes a completion queue for at least `entries` completions (`ibv_create_cq`).
    ///
    /// # Errors
    /// The device has no more completion queues, or none of this length.
    pub fn completion_queue(
        &self,
        entries: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<CompletionQueue> {
        let provider = self.inner.provider();
        let raw_channel = channel.map_or(std::ptr::null_mut(), |c| c.inner.raw);
        let cqe = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: the context is open and the channel, if any, is alive and held by the queue.
        let raw = unsafe { (provider.create_cq)(self.inner.raw, cqe, std::ptr::null_mut(), raw_channel, 0) };
        if raw.is_null() {
            return Err(Error::last("create_cq", format!("{entries} entries of {}", self.device().name())));
        }
        let inner = CqInner { raw, context: Arc::clone(&self.inner), _channel: channel.cloned() };
        Ok(CompletionQueue { inner: Arc::new(inner) })
    }
}

impl CompletionQueue {
    /// Takes completions that have arrived, at most the length of `into`.
    ///
    /// # Errors
    /// The queue has been overrun.
    #[inline]
    pub fn poll<'a>(&self, into: &'a mut [Completion]) -> Result<&'a [Completion]> {
        let room = i32::try_from(into.len()).unwrap_or(i32::MAX);
        // SAFETY: the context of a live queue is alive; libibverbs reads its operations in the same
        // way.
        let poll = unsafe { (*(*self.inner.raw).context).ops.poll_cq };
        // SAFETY: every provider sets poll_cq; `Completion` is a transparent ibv_wc, and there is
        // space for `room` completions.
        let found = unsafe { poll.unwrap_unchecked()(self.inner.raw, room, into.as_mut_ptr().cast()) };
        match usize::try_from(found) {
            Ok(found) => Ok(&into[..found]),
            Err(_) => Err(Error::Verb { verb: "poll_cq", object: "an overrun queue".into(), errno: -found }),
        }
    }

    /// Requests one event on the channel for the next completion (`ibv_req_notify_cq`). Poll once
    /// more after this call: earlier completions cause no event.
    ///
    /// # Errors
    /// The device refuses.
    pub fn arm(&self) -> Result<()> {
        // SAFETY: as in `poll`.
        let notify = unsafe { (*(*self.inner.raw).context).ops.req_notify_cq };
        // SAFETY: every provider sets req_notify_cq, and the queue is alive.
        let returned = unsafe { notify.unwrap_unchecked()(self.inner.raw, 0) };
        Error::check("req_notify_cq", || "a completion queue".to_owned(), returned)
    }
}

/// One completion.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Completion(ibv_wc);

impl Default for Completion {
    fn default() -> Self {
        // SAFETY: all-zero bytes are a valid ibv_wc: it has only integers.
        Self(unsafe { std::mem::zeroed() })
    }
}

impl Completion {
    /// The identifier that its work request was posted with.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.wr_id
    }

    /// How the work request ended.
    #[must_use]
    #[inline]
    pub fn status(&self) -> WcStatus {
        WcStatus(self.0.status)
    }

    /// The completed operation. Defined only if the status is success.
    #[must_use]
    #[inline]
    pub fn opcode(&self) -> WcOpcode {
        WcOpcode(self.0.opcode)
    }

    /// Bytes received; for UD, including the 40 of the global route header.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// Number of the local queue pair.
    #[must_use]
    pub fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// Number of the sending queue pair. UD only.
    #[must_use]
    pub fn source_qp(&self) -> u32 {
        self.0.src_qp
    }

    /// Immediate data, if there is some.
    #[must_use]
    pub fn immediate(&self) -> Option<u32> {
        (self.0.wc_flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(self.0.imm_data))
    }

    /// Whether the first 40 bytes of the buffer are a global route header.
    #[must_use]
    pub fn has_grh(&self) -> bool {
        self.0.wc_flags & IBV_WC_GRH != 0
    }
}

/// How a work request ended (`ibv_wc_status`). A device may answer with a status that this version
/// does not know.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct WcStatus(pub ibv_wc_status);

impl WcStatus {
    /// Whether it succeeded.
    #[must_use]
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 == IBV_WC_SUCCESS
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 22] = [
            "success",
            "local length error",
            "local QP operation error",
            "local EE context operation error",
            "local protection error",
            "work request flushed error",
            "memory window bind error",
            "bad response error",
            "local access error",
            "remote invalid request error",
            "remote access error",
            "remote operation error",
            "transport retry counter exceeded (the peer does not answer)",
            "RNR retry counter exceeded (the peer posts no receives)",
            "local RDD violation error",
            "remote invalid RD request",
            "remote aborted error",
            "invalid EE context number",
            "invalid EE context state",
            "fatal error",
            "response timeout error",
            "general error",
        ];
        match NAMES.get(self.0 as usize) {
            Some(name) => write!(f, "{name} (status {})", self.0),
            None => write!(f, "unknown status {}", self.0),
        }
    }
}

impl fmt::Debug for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What completed (`ibv_wc_opcode`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WcOpcode(pub ibv_wc_opcode);

impl WcOpcode {
    /// Whether it is a receive.
    #[must_use]
    #[inline]
    pub fn is_receive(self) -> bool {
        self.0 & IBV_WC_RECV != 0
    }
}
