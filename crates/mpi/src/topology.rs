//! Cartesian grids and their neighbours.

use crate::communicator::{Communicator, Inner, address, address_mut, count};
use crate::error::{Error, Result};
use crate::functions::Call;

impl Communicator {
    /// `MPI_Cart_create`: the ranks as a grid, the last dimension varying fastest. All ranks call
    /// it.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, a grid whose number of places is not this
    /// communicator's number of ranks.
    pub fn cart_create(&self, dims: &[u32], periods: &[bool], reorder: bool) -> Result<Self> {
        let inner = &*self.0;
        let call = Call::Cart_create;
        let function = inner.library.optional(inner.functions.cart_create, call)?;
        if dims.len() != periods.len() {
            return Err(Error::State { call: call.name(), reason: "it needs one period for each dimension" });
        }
        let ranks = dims.iter().try_fold(1_u32, |ranks, &dim| ranks.checked_mul(dim));
        if dims.is_empty() || ranks != Some(inner.size) {
            let reason = "the grid must have as many places as the communicator has ranks";
            return Err(Error::State { call: call.name(), reason });
        }
        // Each dimension divides the number of ranks, which is an int.
        let dims: Vec<_> = dims.iter().map(|&dim| dim as i32).collect();
        let periods: Vec<_> = periods.iter().map(|&period| i32::from(period)).collect();
        let length = count(dims.len())?;
        let grid = self.derive(call, |_, out| {
            // SAFETY: both arrays have `length` numbers, and `out` has room for a handle.
            unsafe {
                function(inner.handle, length, dims.as_ptr(), periods.as_ptr(), i32::from(reorder), out)
            }
        })?;
        Ok(grid.with_neighbors(2 * dims.len()))
    }

    /// `MPI_Neighbor_alltoall` on a grid of [`cart_create`](Self::cart_create): part `2 * d` of
    /// both buffers belongs to the neighbour below in dimension `d`, part `2 * d + 1` to the one
    /// above. Parts of neighbours that do not exist are left as they are.
    ///
    /// # Errors
    /// Errors of MPI, a library without the function, a communicator without a grid, lengths that
    /// do not fit.
    #[inline]
    pub fn neighbor_alltoall(&self, sent: &[u8], received: &mut [u8], bytes_each: usize) -> Result<()> {
        let inner = &*self.0;
        let call = Call::Neighbor_alltoall;
        let function = inner.library.optional(inner.functions.neighbor_alltoall, call)?;
        if inner.neighbors == 0 {
            return Err(Error::State { call: call.name(), reason: "the communicator has no grid" });
        }
        let length = count(bytes_each)?;
        Inner::length(call, "the send buffer", sent.len(), (inner.neighbors, bytes_each))?;
        Inner::length(call, "the receive buffer", received.len(), (inner.neighbors, bytes_each))?;
        inner.blocking(call, None, |_| {
            let sent = address(sent);
            let received = address_mut(received);
            // SAFETY: MPI reads and writes `length` bytes per neighbour, which both buffers have,
            // until it returns.
            unsafe { function(sent, length, inner.byte, received, length, inner.byte, inner.handle) }
        })
    }
}
