//! Collective calls with a separate length for each rank.

use crate::abi::{Datatype, Op};
use crate::communicator::{Communicator, address, address_mut, count};
use crate::error::{Error, Result};
use crate::functions::Call;

/// Where the bytes of each rank lie in a buffer, as MPI takes it: rank `i` has `counts[i]` bytes at
/// `displacements[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Bytes of each rank.
    pub counts: &'a [i32],
    /// First byte of each rank.
    pub displacements: &'a [i32],
}

impl Parts<'_> {
    /// Returns `Ok` if there is one part for each rank, and all parts lie in a buffer of `bytes`
    /// bytes.
    fn check(self, call: Call, ranks: usize, bytes: usize) -> Result<()> {
        if [self.counts.len(), self.displacements.len()] != [ranks; 2] {
            return Err(Error::State {
                call: call.name(),
                reason: "it needs one count and one displacement for each rank",
            });
        }
        for (&count, &displacement) in self.counts.iter().zip(self.displacements) {
            let Some((part, offset)) = usize::try_from(count).ok().zip(usize::try_from(displacement).ok())
            else {
                let reason = "counts and displacements must not be negative";
                return Err(Error::State { call: call.name(), reason });
            };
            if part + offset > bytes {
                return Err(Error::Range { offset, bytes: part, length: bytes });
            }
        }
        Ok(())
    }
}

impl Communicator {
    /// `MPI_Allgatherv`: all ranks receive the bytes of all ranks. `parts` describes `received`.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, parts that do not fit.
    #[inline]
    pub fn allgatherv(&self, sent: &[u8], received: &mut [u8], parts: Parts<'_>) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Allgatherv;
        let function = inner.library.optional(inner.functions.allgatherv, call)?;
        let length = count(sent.len())?;
        parts.check(call, inner.ranks(), received.len())?;
        inner.blocking(call, None, |_| {
            let received = address_mut(received);
            let counts = parts.counts.as_ptr();
            let displacements = parts.displacements.as_ptr();
            let byte = inner.byte;
            let sent = address(sent);
            // SAFETY: MPI reads `length` bytes, which `sent` has, and writes the parts, which lie
            // in `received`, until it returns.
            unsafe { function(sent, length, byte, received, counts, displacements, byte, inner.handle) }
        })
    }

    /// `MPI_Gatherv`: `root` receives the bytes of all ranks. `parts` describes `received`; both
    /// are used at the root only.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, a root that does not exist, parts that do not
    /// fit.
    #[inline]
    pub fn gatherv(&self, sent: &[u8], received: &mut [u8], parts: Parts<'_>, root: u32) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Gatherv;
        let function = inner.library.optional(inner.functions.gatherv, call)?;
        let peer = inner.peer(root)?;
        let length = count(sent.len())?;
        if inner.rank == root {
            parts.check(call, inner.ranks(), received.len())?;
        }
        inner.blocking(call, Some(root), |_| {
            let received = address_mut(received);
            let counts = parts.counts.as_ptr();
            let displacements = parts.displacements.as_ptr();
            let byte = inner.byte;
            let sent = address(sent);
            // SAFETY: as in `allgatherv`; MPI reads the parts and writes at the root only.
            unsafe { function(sent, length, byte, received, counts, displacements, byte, peer, inner.handle) }
        })
    }

    /// `MPI_Scatterv`: each rank receives its part of the root's bytes. `parts` describes `sent`;
    /// both are used at the root only.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, a root that does not exist, parts that do not
    /// fit.
    #[inline]
    pub fn scatterv(&self, sent: &[u8], parts: Parts<'_>, received: &mut [u8], root: u32) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Scatterv;
        let function = inner.library.optional(inner.functions.scatterv, call)?;
        let peer = inner.peer(root)?;
        let length = count(received.len())?;
        if inner.rank == root {
            parts.check(call, inner.ranks(), sent.len())?;
        }
        inner.blocking(call, Some(root), |_| {
            let received = address_mut(received);
            let counts = parts.counts.as_ptr();
            let displacements = parts.displacements.as_ptr();
            let byte = inner.byte;
            let sent = address(sent);
            // SAFETY: MPI writes `length` bytes, which `received` has, and reads the parts, which
            // lie in `sent`, at the root only, until it returns.
            unsafe { function(sent, counts, displacements, byte, received, length, byte, peer, inner.handle) }
        })
    }

    /// `MPI_Reduce_scatter`: rank `i` gets the next `counts[i]` of the combined elements.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, counts or lengths that do not fit.
    #[inline]
    pub fn reduce_scatter(
        &self,
        sent: &[u8],
        received: &mut [u8],
        counts: &[i32],
        datatype: Datatype,
        op: Op,
    ) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Reduce_scatter;
        let function = inner.library.optional(inner.functions.reduce_scatter, call)?;
        let all = inner.elements(call, (sent.as_ptr(), sent.len()), datatype, op)?;
        let own = inner.elements(call, (received.as_ptr(), received.len()), datatype, op)?;
        let sum: Option<i32> = counts.iter().try_fold(0_i32, |sum, count| match count {
            0.. => sum.checked_add(*count),
            _ => None,
        });
        let is_of_ranks = counts.len() == inner.ranks() && counts[inner.rank as usize] == own.count;
        if !is_of_ranks || sum != Some(all.count) {
            let reason = "it needs a count for each rank, of all elements together, and its own of this rank";
            return Err(Error::State { call: call.name(), reason });
        }
        inner.blocking(call, None, |_| {
            let received = address_mut(received);
            let counts = counts.as_ptr();
            // SAFETY: until it returns, MPI reads a count for each rank and as many elements of
            // `sent` as the counts have together, and writes as many elements of `received` as this
            // rank's count: the checks above compared these numbers with the lengths.
            unsafe { function(address(sent), received, counts, own.datatype, own.op, inner.handle) }
        })
    }

    /// `MPI_Alltoallv`: part `i` of `sent` goes to rank `i`, part `i` of `received` comes from it.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, parts that do not fit.
    #[inline]
    pub fn alltoallv(&self, sent: (&[u8], Parts<'_>), received: (&mut [u8], Parts<'_>)) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Alltoallv;
        let function = inner.library.optional(inner.functions.alltoallv, call)?;
        let (bytes, from) = sent;
        let (room, to) = received;
        from.check(call, inner.ranks(), bytes.len())?;
        to.check(call, inner.ranks(), room.len())?;
        inner.blocking(call, None, |_| {
            let bytes = address(bytes);
            let room = address_mut(room);
            // SAFETY: MPI reads and writes the parts, which lie in their buffers, until it returns.
            unsafe {
                function(
                    bytes,
                    from.counts.as_ptr(),
                    from.displacements.as_ptr(),
                    inner.byte,
                    room,
                    to.counts.as_ptr(),
                    to.displacements.as_ptr(),
                    inner.byte,
                    inner.handle,
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_in_their_buffer() {
        let check = |counts: &[i32], displacements: &[i32]| {
            Parts { counts, displacements }.check(Call::Gatherv, 2, 10)
        };
        assert_eq!(check(&[4, 2], &[0, 8]), Ok(()));
        assert_eq!(check(&[4, 3], &[0, 8]), Err(Error::Range { offset: 8, bytes: 3, length: 10 }));
        for (counts, displacements) in [(&[4][..], &[0, 4][..]), (&[4, -1], &[0, 4]), (&[4, 1], &[-1, 4])] {
            assert!(matches!(check(counts, displacements), Err(Error::State { call: "MPI_Gatherv", .. })));
        }
    }
}
