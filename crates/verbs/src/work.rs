//! Work requests.
//!
//! A request is made once and posted many times: posting only sets the pointer to its elements.

use crate::abi::*;
use crate::address::AddressHandle;
use crate::memory::Remote;

/// A request for the send queue.
pub struct SendRequest {
    pub(crate) raw: ibv_send_wr,
    pub(crate) elements: Vec<ibv_sge>,
    /// The inline bytes. The CPU reads them when the request is posted and no key protects them, so
    /// the request owns them.
    payload: Box<[u8]>,
    /// The address handle is in `raw`; this keeps it alive.
    handle: Option<AddressHandle>,
}

// SAFETY: posting needs exclusive access to the request, and sets the pointers to elements and to
// the next request before a device reads them. An address handle may be used from any thread.
unsafe impl Send for SendRequest {}

impl SendRequest {
    /// A Send of the bytes of `elements`.
    #[must_use]
    pub fn send(id: u64, elements: Vec<ibv_sge>) -> Self {
        // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
        let mut raw: ibv_send_wr = unsafe { std::mem::zeroed() };
        raw.wr_id = id;
        raw.opcode = IBV_WR_SEND;
        raw.num_sge = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        Self { raw, elements, payload: Box::default(), handle: None }
    }

    /// An RDMA Write of the bytes of `elements`.
    #[must_use]
    pub fn write(id: u64, elements: Vec<ibv_sge>, to: Remote) -> Self {
        let mut request = Self::send(id, elements);
        request.raw.opcode = IBV_WR_RDMA_WRITE;
        request.raw.wr.rdma = ibv_wr_rdma { remote_addr: to.addr, rkey: to.rkey };
        request
    }

    /// An RDMA Read into `elements`.
    #[must_use]
    pub fn read(id: u64, elements: Vec<ibv_sge>, from: Remote) -> Self {
        let mut request = Self::write(id, elements, from);
        request.raw.opcode = IBV_WR_RDMA_READ;
        request
    }

    /// A compare-and-swap of the eight bytes at `at`. The value before goes to `element`.
    #[must_use]
    pub fn compare_swap(id: u64, element: ibv_sge, at: Remote, compare: u64, swap: u64) -> Self {
        let mut request = Self::send(id, vec![element]);
        request.raw.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        request.raw.wr.atomic =
            ibv_wr_atomic { remote_addr: at.addr, compare_add: compare, swap, rkey: at.rkey };
        request
    }

    /// A fetch-and-add to the eight bytes at `at`. The value before goes to `element`.
    #[must_use]
    pub fn fetch_add(id: u64, element: ibv_sge, at: Remote, add: u64) -> Self {
        let mut request = Self::compare_swap(id, element, at, add, 0);
        request.raw.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        request
    }

    /// Makes the request inline: it sends `payload` instead of its elements, and the CPU copies
    /// these bytes when the request is posted (`IBV_SEND_INLINE`). Applies to Send and RDMA Write;
    /// other requests have no payload and do not change.
    #[must_use]
    pub fn inline(mut self, payload: &[u8]) -> Self {
        let gathers = [IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM];
        if !gathers.contains(&self.raw.opcode) {
            return self;
        }
        let mut payload = Box::<[u8]>::from(payload);
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.elements = vec![ibv_sge { addr: payload.as_mut_ptr() as u64, length, lkey: 0 }];
        self.raw.num_sge = 1;
        self.payload = payload;
        self.flag(IBV_SEND_INLINE, true);
        self
    }

    /// The inline bytes; none if the request is not inline.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// Adds immediate data. Applies to Send and RDMA Write, inline or not; other requests do not
    /// change.
    #[must_use]
    pub fn immediate(mut self, data: u32) -> Self {
        self.raw.opcode = match self.raw.opcode {
            IBV_WR_SEND => IBV_WR_SEND_WITH_IMM,
            IBV_WR_RDMA_WRITE => IBV_WR_RDMA_WRITE_WITH_IMM,
            other => other,
        };
        self.raw.imm_data = data.to_be();
        self
    }

    /// Sets whether the request is signalled.
    #[must_use]
    pub fn signaled(mut self, signaled: bool) -> Self {
        self.set_signaled(signaled);
        self
    }

    /// Sets whether the request waits for all RDMA Reads and atomics before it (`IBV_SEND_FENCE`),
    /// so that it may send the data that they return.
    #[must_use]
    pub fn fenced(mut self, fenced: bool) -> Self {
        self.flag(IBV_SEND_FENCE, fenced);
        self
    }

    /// Sets the peer of a datagram.
    #[must_use]
    pub fn to(mut self, handle: &AddressHandle, qp_num: u32, qkey: u32) -> Self {
        self.raw.wr.ud = ibv_wr_ud { ah: handle.inner.raw, remote_qpn: qp_num, remote_qkey: qkey };
        self.handle = Some(handle.clone());
        self
    }

    /// Whether the request may be posted as a datagram: the device reads the address handle without
    /// a check.
    #[inline]
    pub(crate) fn is_datagram(&self) -> bool {
        self.handle.is_some() && matches!(self.raw.opcode, IBV_WR_SEND | IBV_WR_SEND_WITH_IMM)
    }

    /// Changes whether the request is signalled.
    #[inline]
    pub fn set_signaled(&mut self, signaled: bool) {
        self.flag(IBV_SEND_SIGNALED, signaled);
    }

    /// Changes the identifier that the completion will carry.
    #[inline]
    pub fn set_id(&mut self, id: u64) {
        self.raw.wr_id = id;
    }

    /// Changes the immediate data of a request that has some.
    #[inline]
    pub fn set_immediate(&mut self, data: u32) {
        self.raw.imm_data = data.to_be();
    }

    /// Changes the memory of the first element. An inline request keeps its own bytes, and a
    /// request without elements does not change.
    #[inline]
    pub fn set_element(&mut self, element: ibv_sge) {
        if let (Some(first), true) = (self.elements.first_mut(), self.payload.is_empty()) {
            *first = element;
        }
    }

    /// Changes the remote address of an RDMA Write or Read; other requests do not change.
    #[inline]
    pub fn set_remote(&mut self, to: Remote) {
        if matches!(self.raw.opcode, IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_RDMA_READ) {
            self.raw.wr.rdma = ibv_wr_rdma { remote_addr: to.addr, rkey: to.rkey };
        }
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

// SAFETY: as above; `next` stays null.
unsafe impl Send for ReceiveRequest {}

impl ReceiveRequest {
    /// A receive into `elements`.
    #[must_use]
    pub fn new(id: u64, elements: Vec<ibv_sge>) -> Self {
        let num_sge = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let raw =
            ibv_recv_wr { wr_id: id, next: std::ptr::null_mut(), sg_list: std::ptr::null_mut(), num_sge };
        Self { raw, elements }
    }

    /// Changes the identifier that the completion will carry.
    #[inline]
    pub fn set_id(&mut self, id: u64) {
        self.raw.wr_id = id;
    }
}
