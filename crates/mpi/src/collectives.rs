//! Blocking collective calls. All ranks of the communicator make the same call with the same
//! length, datatype, operation and root.

use std::ffi::c_int;

use crate::abi::{Datatype, Op};
use crate::communicator::{Communicator, Inner, address, address_mut, count};
use crate::error::{Error, Result};
use crate::functions::{Call, Handle};

/// The arguments of a reduction that describe its elements, as MPI takes them.
#[derive(Clone, Copy)]
pub(crate) struct Elements {
    pub(crate) count: c_int,
    pub(crate) datatype: Handle,
    pub(crate) op: Handle,
}

impl Inner {
    /// Returns the elements of a buffer of `bytes` bytes at `address`.
    ///
    /// # Errors
    /// A partial element, an address that is not a multiple of an element's size, too many
    /// elements.
    #[inline]
    pub(crate) fn elements(
        &self,
        call: Call,
        (address, bytes): (*const u8, usize),
        datatype: Datatype,
        op: Op,
    ) -> Result<Elements> {
        let element = datatype.bytes();
        if !bytes.is_multiple_of(element) || (bytes != 0 && !address.addr().is_multiple_of(element)) {
            return Err(Error::Elements { call: call.name(), bytes, element });
        }
        let constants = &self.library.constants;
        let count = count(bytes / element)?;
        Ok(Elements { count, datatype: constants.datatype(datatype), op: constants.op(op) })
    }

    /// Returns the bytes of each rank's part of a buffer that is divided equally.
    ///
    /// # Errors
    /// Parts that are not equal.
    #[inline]
    pub(crate) fn part(&self, call: Call, bytes: usize) -> Result<usize> {
        let ranks = self.size as usize;
        if !bytes.is_multiple_of(ranks) {
            let reason = "the send buffer must have an equal part for each rank";
            return Err(Error::State { call: call.name(), reason });
        }
        Ok(bytes / ranks)
    }

    /// Returns `Ok` if a buffer has `parts` parts of `part` bytes.
    ///
    /// # Errors
    /// Another length.
    #[inline]
    pub(crate) fn length(
        call: Call,
        what: &'static str,
        given: usize,
        (parts, part): (usize, usize),
    ) -> Result<()> {
        let needed = parts.checked_mul(part).ok_or(Error::TooLong { bytes: part })?;
        if given == needed { Ok(()) } else { Err(Error::Length { call: call.name(), what, needed, given }) }
    }

    /// The number of ranks, to compute lengths.
    #[inline]
    pub(crate) fn ranks(&self) -> usize {
        self.size as usize
    }
}

impl Communicator {
    /// `MPI_Barrier`.
    ///
    /// # Errors
    /// Errors of MPI.
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        let inner = &*self.0;
        // SAFETY: the communicator is valid.
        inner.blocking(Call::Barrier, None, |functions| unsafe { (functions.barrier)(inner.handle) })
    }

    /// `MPI_Bcast`: all ranks get the bytes of `root`.
    ///
    /// # Errors
    /// Errors of MPI, a root that does not exist, more than 2147483647 B.
    #[inline]
    pub fn bcast(&self, bytes: &mut [u8], root: u32) -> Result<()> {
        let inner = &*self.0;
        let length = count(bytes.len())?;
        let peer = inner.peer(root)?;
        inner.blocking(Call::Bcast, Some(root), |functions| {
            // SAFETY: MPI reads or writes `length` bytes, which the slice has, until it returns.
            unsafe { (functions.bcast)(address_mut(bytes), length, inner.byte, peer, inner.handle) }
        })
    }

    /// `MPI_Reduce`: `root` receives the combined elements; other ranks may pass an empty
    /// `received`.
    ///
    /// # Errors
    /// Errors of MPI, a root that does not exist, lengths that do not fit.
    #[inline]
    pub fn reduce(
        &self,
        sent: &[u8],
        received: &mut [u8],
        datatype: Datatype,
        op: Op,
        root: u32,
    ) -> Result<()> {
        let inner = &*self.0;
        let peer = inner.peer(root)?;
        let elements = inner.elements(Call::Reduce, (sent.as_ptr(), sent.len()), datatype, op)?;
        if inner.rank == root {
            inner.elements(Call::Reduce, (received.as_ptr(), received.len()), datatype, op)?;
            Inner::length(Call::Reduce, "the receive buffer", received.len(), (1, sent.len()))?;
        }
        let Elements { count, datatype, op } = elements;
        inner.blocking(Call::Reduce, Some(root), |functions| {
            let received = address_mut(received);
            // SAFETY: MPI reads `count` elements, which `sent` has, and at the root writes as many,
            // which `received` has, until it returns.
            unsafe { (functions.reduce)(address(sent), received, count, datatype, op, peer, inner.handle) }
        })
    }

    /// `MPI_Allreduce`: all ranks get the combined elements.
    ///
    /// # Errors
    /// Errors of MPI, lengths that do not fit.
    #[inline]
    pub fn allreduce(&self, sent: &[u8], received: &mut [u8], datatype: Datatype, op: Op) -> Result<()> {
        let inner = &*self.0;
        let elements = inner.elements(Call::Allreduce, (sent.as_ptr(), sent.len()), datatype, op)?;
        inner.elements(Call::Allreduce, (received.as_ptr(), received.len()), datatype, op)?;
        Inner::length(Call::Allreduce, "the receive buffer", received.len(), (1, sent.len()))?;
        let Elements { count, datatype, op } = elements;
        inner.blocking(Call::Allreduce, None, |functions| {
            let received = address_mut(received);
            // SAFETY: as in `reduce`.
            unsafe { (functions.allreduce)(address(sent), received, count, datatype, op, inner.handle) }
        })
    }

    /// `MPI_Reduce_scatter_block`: each rank gets its part of the combined elements.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, lengths that do not fit.
    #[inline]
    pub fn reduce_scatter_block(
        &self,
        sent: &[u8],
        received: &mut [u8],
        datatype: Datatype,
        op: Op,
    ) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Reduce_scatter_block;
        let function = inner.library.optional(inner.functions.reduce_scatter_block, call)?;
        inner.elements(call, (sent.as_ptr(), sent.len()), datatype, op)?;
        let elements = inner.elements(call, (received.as_ptr(), received.len()), datatype, op)?;
        Inner::length(call, "the send buffer", sent.len(), (inner.ranks(), received.len()))?;
        let Elements { count, datatype, op } = elements;
        inner.blocking(call, None, |_| {
            let received = address_mut(received);
            // SAFETY: MPI reads `count` elements per rank, which `sent` has, and writes `count`
            // elements, which `received` has, until it returns.
            unsafe { function(address(sent), received, count, datatype, op, inner.handle) }
        })
    }

    /// `MPI_Allgather`: all ranks get the bytes of all, in the order of the ranks.
    ///
    /// # Errors
    /// Errors of MPI, lengths that do not fit.
    #[inline]
    pub fn allgather(&self, sent: &[u8], received: &mut [u8]) -> Result<()> {
        let inner = &*self.0;
        let length = count(sent.len())?;
        Inner::length(Call::Allgather, "the receive buffer", received.len(), (inner.ranks(), sent.len()))?;
        inner.blocking(Call::Allgather, None, |functions| {
            let sent = address(sent);
            let received = address_mut(received);
            // SAFETY: MPI reads `length` bytes, which `sent` has, and writes `length` bytes per
            // rank, which `received` has, until it returns.
            unsafe {
                (functions.allgather)(sent, length, inner.byte, received, length, inner.byte, inner.handle)
            }
        })
    }

    /// `MPI_Alltoall`: part `i` of `sent` goes to rank `i`, part `i` of `received` comes from it.
    ///
    /// # Errors
    /// Errors of MPI, lengths that do not fit.
    #[inline]
    pub fn alltoall(&self, sent: &[u8], received: &mut [u8]) -> Result<()> {
        let inner = &*self.0;
        let length = count(inner.part(Call::Alltoall, sent.len())?)?;
        Inner::length(Call::Alltoall, "the receive buffer", received.len(), (1, sent.len()))?;
        inner.blocking(Call::Alltoall, None, |functions| {
            let sent = address(sent);
            let received = address_mut(received);
            // SAFETY: MPI reads and writes `length` bytes per rank, which both buffers have, until
            // it returns.
            unsafe {
                (functions.alltoall)(sent, length, inner.byte, received, length, inner.byte, inner.handle)
            }
        })
    }

    /// `MPI_Gather`: `root` receives the bytes of all ranks; other ranks may pass an empty
    /// `received`.
    ///
    /// # Errors
    /// Errors of MPI, a root that does not exist, lengths that do not fit.
    #[inline]
    pub fn gather(&self, sent: &[u8], received: &mut [u8], root: u32) -> Result<()> {
        let inner = &*self.0;
        let peer = inner.peer(root)?;
        let length = count(sent.len())?;
        if inner.rank == root {
            Inner::length(Call::Gather, "the receive buffer", received.len(), (inner.ranks(), sent.len()))?;
        }
        inner.blocking(Call::Gather, Some(root), |functions| {
            let sent = address(sent);
            let received = address_mut(received);
            let byte = inner.byte;
            // SAFETY: as in `allgather`; MPI writes at the root only.
            unsafe { (functions.gather)(sent, length, byte, received, length, byte, peer, inner.handle) }
        })
    }

    /// `MPI_Scatter`: each rank receives its part of the root's bytes; other ranks than `root` may
    /// pass an empty `sent`.
    ///
    /// # Errors
    /// Errors of MPI, a root that does not exist, lengths that do not fit.
    #[inline]
    pub fn scatter(&self, sent: &[u8], received: &mut [u8], root: u32) -> Result<()> {
        let inner = &*self.0;
        let peer = inner.peer(root)?;
        let length = count(received.len())?;
        if inner.rank == root {
            Inner::length(Call::Scatter, "the send buffer", sent.len(), (inner.ranks(), received.len()))?;
        }
        inner.blocking(Call::Scatter, Some(root), |functions| {
            let sent = address(sent);
            let received = address_mut(received);
            let byte = inner.byte;
            // SAFETY: MPI writes `length` bytes, which `received` has, and reads at the root
            // `length` bytes per rank, which `sent` has, until it returns.
            unsafe { (functions.scatter)(sent, length, byte, received, length, byte, peer, inner.handle) }
        })
    }
}
