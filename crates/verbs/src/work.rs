//! Work requests.
//!
//! A request is made once and posted often: posting fills in the pointer to its elements and nothing else.

use crate::abi::*;
use crate::address::AddressHandle;

/// A request for the send queue.
pub struct SendRequest {
    pub(crate) raw: ibv_send_wr,
    pub(crate) elements: Vec<ibv_sge>,
    /// Bytes that are sent inline: the CPU reads them when the request is posted, unchecked by any key, so they are the
    /// request's own.
    payload: Box<[u8]>,
    /// The address handle is in `raw`; this keeps it alive.
    handle: Option<AddressHandle>,
}

impl SendRequest {
    /// A Send of what `elements` gather.
    #[must_use]
    pub fn send(id: u64, elements: Vec<ibv_sge>) -> Self {
        // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
        let mut raw: ibv_send_wr = unsafe { std::mem::zeroed() };
        raw.wr_id = id;
        raw.opcode = IBV_WR_SEND;
        raw.num_sge = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        Self { raw, elements, payload: Box::default(), handle: None }
    }

    /// A Send of the request's own bytes, which the device copies when it is posted (`IBV_SEND_INLINE`).
    #[must_use]
    pub fn send_inline(id: u64, payload: &[u8]) -> Self {
        let mut payload = Box::<[u8]>::from(payload);
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let element = ibv_sge { addr: payload.as_mut_ptr() as u64, length, lkey: 0 };
        let mut request = Self::send(id, vec![element]);
        request.payload = payload;
        request.flag(IBV_SEND_INLINE, true);
        request
    }

    /// The bytes that are sent inline; none where the request is not inline.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// With immediate data.
    #[must_use]
    pub fn immediate(mut self, data: u32) -> Self {
        self.raw.opcode = IBV_WR_SEND_WITH_IMM;
        self.raw.imm_data = data.to_be();
        self
    }

    /// Whether it asks for a completion.
    #[must_use]
    pub fn signaled(mut self, signaled: bool) -> Self {
        self.set_signaled(signaled);
        self
    }

    /// Where a datagram goes.
    #[must_use]
    pub fn to(mut self, handle: &AddressHandle, qp_num: u32, qkey: u32) -> Self {
        self.raw.wr.ud = ibv_wr_ud { ah: handle.inner.raw, remote_qpn: qp_num, remote_qkey: qkey };
        self.handle = Some(handle.clone());
        self
    }

    /// Whether it says where it goes, as a datagram must: a device reads the handle unasked.
    #[inline]
    pub(crate) fn has_address(&self) -> bool {
        self.handle.is_some()
    }

    /// Changes whether it asks for a completion.
    #[inline]
    pub fn set_signaled(&mut self, signaled: bool) {
        self.flag(IBV_SEND_SIGNALED, signaled);
    }

    /// Changes the identifier that the completion will carry.
    #[inline]
    pub fn set_id(&mut self, id: u64) {
        self.raw.wr_id = id;
    }

    #[inline]
    fn flag(&mut self, flag: u32, on: bool) {
        self.raw.send_flags = if on { self.raw.send_flags | flag } else { self.raw.send_flags & !flag };
    }
}

/// A request for the receive queue.
pub struct ReceiveRequest {
    pub(crate) raw: ibv_recv_wr,
    pub(crate) elements: Vec<ibv_sge>,
}

impl ReceiveRequest {
    /// A receive that scatters to `elements`.
    #[must_use]
    pub fn new(id: u64, elements: Vec<ibv_sge>) -> Self {
        let num_sge = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let raw =
            ibv_recv_wr { wr_id: id, next: std::ptr::null_mut(), sg_list: std::ptr::null_mut(), num_sge };
        Self { raw, elements }
    }
}
