//! Memory that calls of MPI read and write, and what is in it.

use mpi::{Communicator, Slots};

use crate::Error;

/// Memory for a call, as aligned as that of messages.
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

/// A byte that one rank gives another, or puts on one of its sides.
pub(super) fn byte(from: u32, to: u32, at: usize) -> u8 {
    (from.wrapping_mul(31) as usize + to.wrapping_mul(17) as usize + at * 7 + 1) as u8
}

/// Compares what a call brought to a rank with what it should have.
///
/// # Errors
/// [`Error::WrongResult`] with the first byte that differs.
pub(super) fn compare(call: &'static str, rank: u32, expected: &[u8], found: &[u8]) -> Result<(), Error> {
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        None => Ok(()),
        Some(byte) => {
            Err(Error::WrongResult { call, rank, byte, found: found[byte], expected: expected[byte] })
        }
    }
}

/// What no call brings everywhere.
pub(super) const CLEARED: u8 = 0xa5;
