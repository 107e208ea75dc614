//! Work requests that are built by calls.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use verbs::abi::*;

use crate::objects::work::operations;
use crate::sys::spin::SpinLock;

/// The requests that are being built.
pub(crate) struct Builder(pub(crate) SpinLock<Batch>);

pub(crate) struct Batch {
    /// As many requests as the send queue has room for.
    pub(crate) requests: Box<[MaybeUninit<ibv_send_wr>]>,
    /// `max_sge` for each request.
    pub(crate) elements: Box<[MaybeUninit<ibv_sge>]>,
    /// `max_inline` bytes for each request.
    pub(crate) inline: Box<[MaybeUninit<u8>]>,
    pub(crate) max_sge: usize,
    pub(crate) max_inline: usize,
    /// Operations of the service, a bit for each `IBV_WR_*`.
    pub(crate) operations: u32,
    /// Whether each request needs an address.
    pub(crate) is_datagram: bool,
    /// The number of requests begun; this many are initialised.
    pub(crate) count: usize,
    /// Whether the last request has its address.
    pub(crate) addressed: bool,
    /// The first error; 0 if there is none.
    pub(crate) error: c_int,
}

// SAFETY: the pointers in requests are to the batch's own memory, to null, or to address handles,
// which threads may share.
unsafe impl Send for Batch {}

impl Builder {
    pub(crate) fn new(cap: &ibv_qp_cap, service: ibv_qp_type) -> Self {
        let wr = cap.max_send_wr as usize;
        let max_sge = cap.max_send_sge as usize;
        let max_inline = cap.max_inline_data as usize;
        Self(SpinLock::new(Batch {
            requests: Box::new_uninit_slice(wr),
            elements: Box::new_uninit_slice(wr * max_sge),
            inline: Box::new_uninit_slice(wr * max_inline),
            max_sge,
            max_inline,
            operations: operations(service),
            is_datagram: service == IBV_QPT_UD,
            count: 0,
            addressed: true,
            error: 0,
        }))
    }
}
