//! Nonblocking collective calls.

use std::ffi::{c_int, c_void};

use crate::abi::{Datatype, Op};
use crate::collectives::Elements;
use crate::communicator::{Communicator, Inner, count};
use crate::error::{Error, Result};
use crate::functions::{Call, Functions};
use crate::handles::HandleArray;
use crate::memory::Memory;
use crate::status::RawStatus;
use crate::waiting;

/// How often a dropped collective is tested before its buffers are leaked: MPI cannot cancel it.
const LAST_TESTS: usize = 10_000;

/// The reusable buffers and the request of one nonblocking collective at a time. All ranks start
/// the same call with the same length, datatype, operation and root.
pub struct NonblockingCollective {
    communicator: Communicator,
    sent: Memory,
    received: Memory,
    sent_bytes: usize,
    received_bytes: usize,
    request: HandleArray,
    /// A count for each rank, which MPI reads until a call that takes them has completed.
    counts: Vec<c_int>,
    is_pending: bool,
    status: RawStatus,
}

impl NonblockingCollective {
    /// Allocates the buffers, page-aligned, and touches them.
    ///
    /// # Errors
    /// More bytes than the address space allows.
    pub fn new(communicator: &Communicator, sent_bytes: usize, received_bytes: usize) -> Result<Self> {
        let constants = &communicator.0.library.constants;
        Ok(Self {
            communicator: communicator.clone(),
            sent: Memory::new(sent_bytes)?,
            received: Memory::new(received_bytes)?,
            sent_bytes,
            received_bytes,
            request: HandleArray::new(constants.numbers.handle_bytes, 1, constants.handles.request_null),
            counts: vec![0; communicator.0.ranks()],
            is_pending: false,
            status: RawStatus::new(),
        })
    }

    /// The send buffer, to be filled.
    ///
    /// # Panics
    /// While a call is pending.
    #[must_use]
    pub fn sent_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_pending, "the collective is pending");
        // SAFETY: no call is pending, and to start one takes `&mut self`.
        unsafe { self.sent.bytes_mut(0, self.sent_bytes) }
    }

    /// The receive buffer.
    ///
    /// # Panics
    /// While a call is pending.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        assert!(!self.is_pending, "the collective is pending");
        // SAFETY: as in `sent_mut`.
        unsafe { self.received.bytes(0, self.received_bytes) }
    }

    /// The receive buffer, to be cleared, or filled for `ibcast`.
    ///
    /// # Panics
    /// While a call is pending.
    #[must_use]
    pub fn received_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_pending, "the collective is pending");
        // SAFETY: as in `sent_mut`.
        unsafe { self.received.bytes_mut(0, self.received_bytes) }
    }

    /// Whether a call has started and is not known to be complete.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// `MPI_Ibarrier`.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function.
    #[inline]
    pub fn ibarrier(&mut self) -> Result<()> {
        let function = self.function(Call::Ibarrier, |functions| functions.ibarrier)?;
        // SAFETY: the communicator is valid, and there is room for the request.
        self.begin(Call::Ibarrier, None, |on| unsafe { function(on.inner.handle, on.request) })
    }

    /// `MPI_Ibcast` of the receive buffer: all ranks receive the root's bytes.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, a root that does not exist.
    #[inline]
    pub fn ibcast(&mut self, root: u32) -> Result<()> {
        let function = self.function(Call::Ibcast, |functions| functions.ibcast)?;
        let peer = self.communicator.0.peer(root)?;
        let length = count(self.received_bytes)?;
        // SAFETY: the receive buffer has `length` bytes, and is neither freed nor lent before the
        // call has completed.
        self.begin(Call::Ibcast, Some(root), |on| unsafe {
            function(on.received, length, on.inner.byte, peer, on.inner.handle, on.request)
        })
    }

    /// `MPI_Iallreduce` of the whole send buffer.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, lengths that do not fit.
    #[inline]
    pub fn iallreduce(&mut self, datatype: Datatype, op: Op) -> Result<()> {
        let call = Call::Iallreduce;
        let function = self.function(call, |functions| functions.iallreduce)?;
        Inner::length(call, "the receive buffer", self.received_bytes, (1, self.sent_bytes))?;
        let Elements { count, datatype, op } = self.elements(call, datatype, op)?;
        // SAFETY: both buffers have `count` elements, and are neither freed nor lent before the
        // call has completed.
        self.begin(call, None, |on| unsafe {
            function(on.sent, on.received, count, datatype, op, on.inner.handle, on.request)
        })
    }

    /// `MPI_Ireduce` of the whole send buffer; the root's receive buffer has the same length.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, a root that does not exist,
    /// lengths that do not fit.
    #[inline]
    pub fn ireduce(&mut self, datatype: Datatype, op: Op, root: u32) -> Result<()> {
        let call = Call::Ireduce;
        let function = self.function(call, |functions| functions.ireduce)?;
        let peer = self.communicator.0.peer(root)?;
        if self.communicator.rank() == root {
            Inner::length(call, "the receive buffer", self.received_bytes, (1, self.sent_bytes))?;
        }
        let Elements { count, datatype, op } = self.elements(call, datatype, op)?;
        // SAFETY: as in `iallreduce`; MPI writes at the root only.
        self.begin(call, Some(root), |on| unsafe {
            function(on.sent, on.received, count, datatype, op, peer, on.inner.handle, on.request)
        })
    }

    /// `MPI_Ireduce_scatter` of the whole send buffer, which has the length of the receive buffer
    /// for each rank: the counts of all ranks are equal.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, lengths that do not fit.
    #[inline]
    pub fn ireduce_scatter(&mut self, datatype: Datatype, op: Op) -> Result<()> {
        let call = Call::Ireduce_scatter;
        let function = self.function(call, |functions| functions.ireduce_scatter)?;
        let Elements { count, datatype, op } = self.parts(call, datatype, op)?;
        if !self.is_pending {
            self.counts.fill(count);
        }
        let counts = self.counts.as_ptr();
        // SAFETY: there is a count for each rank; the receive buffer has `count` elements and the
        // send buffer as many per rank; none of them is changed, freed or lent before the call has
        // completed.
        self.begin(call, None, |on| unsafe {
            function(on.sent, on.received, counts, datatype, op, on.inner.handle, on.request)
        })
    }

    /// `MPI_Ireduce_scatter_block` of the whole send buffer, which has the length of the receive
    /// buffer for each rank.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, lengths that do not fit.
    #[inline]
    pub fn ireduce_scatter_block(&mut self, datatype: Datatype, op: Op) -> Result<()> {
        let call = Call::Ireduce_scatter_block;
        let function = self.function(call, |functions| functions.ireduce_scatter_block)?;
        let Elements { count, datatype, op } = self.parts(call, datatype, op)?;
        // SAFETY: the receive buffer has `count` elements and the send buffer as many per rank;
        // neither is freed nor lent before the call has completed.
        self.begin(call, None, |on| unsafe {
            function(on.sent, on.received, count, datatype, op, on.inner.handle, on.request)
        })
    }

    /// `MPI_Iallgather` of the whole send buffer.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, lengths that do not fit.
    #[inline]
    pub fn iallgather(&mut self) -> Result<()> {
        let call = Call::Iallgather;
        let function = self.function(call, |functions| functions.iallgather)?;
        let parts = (self.communicator.0.ranks(), self.sent_bytes);
        Inner::length(call, "the receive buffer", self.received_bytes, parts)?;
        let length = count(self.sent_bytes)?;
        // SAFETY: the send buffer has `length` bytes and the receive buffer as many per rank;
        // neither is freed nor lent before the call has completed.
        self.begin(call, None, |on| unsafe {
            let byte = on.inner.byte;
            function(on.sent, length, byte, on.received, length, byte, on.inner.handle, on.request)
        })
    }

    /// `MPI_Ialltoall` of the whole send buffer, an equal part to each rank.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, lengths that do not fit.
    #[inline]
    pub fn ialltoall(&mut self) -> Result<()> {
        let call = Call::Ialltoall;
        let function = self.function(call, |functions| functions.ialltoall)?;
        Inner::length(call, "the receive buffer", self.received_bytes, (1, self.sent_bytes))?;
        let length = count(self.communicator.0.part(call, self.sent_bytes)?)?;
        // SAFETY: both buffers have `length` bytes per rank; neither is freed nor lent before the
        // call has completed.
        self.begin(call, None, |on| unsafe {
            let byte = on.inner.byte;
            function(on.sent, length, byte, on.received, length, byte, on.inner.handle, on.request)
        })
    }

    /// `MPI_Igather` of the whole send buffer; the root's receive buffer has as many bytes for each
    /// rank.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, a root that does not exist,
    /// lengths that do not fit.
    #[inline]
    pub fn igather(&mut self, root: u32) -> Result<()> {
        let call = Call::Igather;
        let function = self.function(call, |functions| functions.igather)?;
        let peer = self.communicator.0.peer(root)?;
        if self.communicator.rank() == root {
            let parts = (self.communicator.0.ranks(), self.sent_bytes);
            Inner::length(call, "the receive buffer", self.received_bytes, parts)?;
        }
        let length = count(self.sent_bytes)?;
        // SAFETY: as in `iallgather`; MPI writes at the root only.
        self.begin(call, Some(root), |on| unsafe {
            let byte = on.inner.byte;
            function(on.sent, length, byte, on.received, length, byte, peer, on.inner.handle, on.request)
        })
    }

    /// `MPI_Iscatter` of the root's send buffer, which has the length of the receive buffer for
    /// each rank.
    ///
    /// # Errors
    /// Errors of MPI, a pending call, a library without the function, a root that does not exist,
    /// lengths that do not fit.
    #[inline]
    pub fn iscatter(&mut self, root: u32) -> Result<()> {
        let call = Call::Iscatter;
        let function = self.function(call, |functions| functions.iscatter)?;
        let peer = self.communicator.0.peer(root)?;
        if self.communicator.rank() == root {
            let parts = (self.communicator.0.ranks(), self.received_bytes);
            Inner::length(call, "the send buffer", self.sent_bytes, parts)?;
        }
        let length = count(self.received_bytes)?;
        // SAFETY: the receive buffer has `length` bytes and the root's send buffer as many per
        // rank; neither is freed nor lent before the call has completed.
        self.begin(call, Some(root), |on| unsafe {
            let byte = on.inner.byte;
            function(on.sent, length, byte, on.received, length, byte, peer, on.inner.handle, on.request)
        })
    }

    /// `MPI_Test`: whether the call has completed.
    ///
    /// # Errors
    /// Errors of MPI, no pending call.
    #[inline]
    pub fn test(&mut self) -> Result<bool> {
        self.pending(Call::Test)?;
        let inner = &*self.communicator.0;
        let mut is_complete = 0;
        // SAFETY: the request is valid, the flag and the status are writable.
        let code =
            unsafe { (inner.functions.test)(self.request.at(0), &raw mut is_complete, self.status.out()) };
        inner.library.check(Call::Test, None, code)?;
        self.is_pending = is_complete == 0;
        Ok(!self.is_pending)
    }

    /// `MPI_Wait`: returns when the call has completed.
    ///
    /// # Errors
    /// Errors of MPI, no pending call.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        self.pending(Call::Wait)?;
        let inner = &*self.communicator.0;
        waiting::enter(Call::Wait, None);
        // SAFETY: as in `test`.
        let code = unsafe { (inner.functions.wait)(self.request.at(0), self.status.out()) };
        waiting::leave();
        inner.library.check(Call::Wait, None, code)?;
        self.is_pending = false;
        Ok(())
    }

    #[inline]
    fn function<F>(&self, call: Call, function: impl FnOnce(&'static Functions) -> Option<F>) -> Result<F> {
        let inner = &self.communicator.0;
        inner.library.optional(function(inner.functions), call)
    }

    #[inline]
    fn elements(&self, call: Call, datatype: Datatype, op: Op) -> Result<Elements> {
        self.communicator.0.elements(call, (self.sent.at(0), self.sent_bytes), datatype, op)
    }

    /// Returns the elements of the receive buffer. The send buffer has as many for each rank.
    #[inline]
    fn parts(&self, call: Call, datatype: Datatype, op: Op) -> Result<Elements> {
        let inner = &self.communicator.0;
        self.elements(call, datatype, op)?;
        let elements = inner.elements(call, (self.received.at(0), self.received_bytes), datatype, op)?;
        Inner::length(call, "the send buffer", self.sent_bytes, (inner.ranks(), self.received_bytes))?;
        Ok(elements)
    }

    #[inline]
    fn pending(&self, call: Call) -> Result<()> {
        if self.is_pending {
            return Ok(());
        }
        Err(Error::State { call: call.name(), reason: "no collective is pending" })
    }

    /// Starts a call unless one is pending.
    #[inline]
    fn begin(
        &mut self,
        call: Call,
        peer: Option<u32>,
        start: impl FnOnce(Operands<'_>) -> c_int,
    ) -> Result<()> {
        if self.is_pending {
            return Err(Error::State { call: call.name(), reason: "a collective is pending" });
        }
        let inner = &*self.communicator.0;
        let sent = self.sent.at(0).cast::<c_void>().cast_const();
        let received = self.received.at(0).cast();
        let code = start(Operands { inner, sent, received, request: self.request.at(0) });
        inner.library.check(call, peer, code)?;
        self.is_pending = true;
        Ok(())
    }
}

/// The arguments of a call.
struct Operands<'a> {
    inner: &'a Inner,
    sent: *const c_void,
    received: *mut c_void,
    request: *mut c_void,
}

impl Drop for NonblockingCollective {
    fn drop(&mut self) {
        for _ in 0..LAST_TESTS {
            if !self.is_pending || self.test().is_err() {
                break;
            }
        }
        if self.is_pending {
            self.sent.leak();
            self.received.leak();
            std::mem::take(&mut self.counts).leak();
        }
    }
}
