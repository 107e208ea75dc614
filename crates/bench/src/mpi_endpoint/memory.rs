//! Memory that calls of MPI read and write.

use mpi::{Communicator, Slots};

use crate::Error;

/// Memory for a call, aligned like that of messages.
pub(super) struct Memory {
    slots: Slots,
    length: usize,
}

impl Memory {
    pub(super) fn new(communicator: &Communicator, length: usize) -> Result<Self, Error> {
        Ok(Self { slots: Slots::new(communicator, 1, length)?, length })
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.slots.bytes(0)[..self.length]
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.slots.bytes_mut(0)[..self.length]
    }
}
