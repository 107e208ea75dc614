//! The data of joint operations, and the results that they should produce: the same bytes on every
//! kind of endpoint.

use super::collectives::{Blocks, Collective, CollectiveSpec, Element, HaloSpec};
use crate::Error;
use crate::patterns::halo::choices::{SIDES, opposite};

/// The byte of cleared memory, which no operation produces everywhere.
pub(crate) const CLEARED: u8 = 0xa5;

/// The data that a collective operation takes from a rank and brings to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    pub(crate) spec: CollectiveSpec,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

impl Contents {
    /// Creates the contents of one rank.
    ///
    /// # Errors
    /// [`Error::Impossible`] if this number of ranks cannot do the operation.
    pub(crate) fn new(spec: CollectiveSpec, rank: u32, ranks: u32) -> Result<Self, Error> {
        let size = spec.size_bytes;
        if spec.operation.scatters_a_reduction()
            && !size.is_multiple_of(ranks as usize * spec.element.bytes())
        {
            let reason =
                format!("a vector of {size} B cannot be split into {ranks} equal blocks of whole elements");
            return Err(Error::Impossible { reason });
        }
        Ok(Self { spec, rank, ranks })
    }

    /// Returns the length in bytes of a rank's block: of the block it sends, and of each block sent
    /// to it.
    pub(crate) fn block(&self, of: u32) -> usize {
        let size = self.spec.size_bytes;
        match self.spec.blocks {
            Blocks::Rising if self.spec.operation.has_blocks_of_their_own() => {
                size * 2 * (of as usize + 1) / (self.ranks as usize + 1)
            }
            Blocks::Equal | Blocks::Rising => size,
        }
    }

    /// Returns the lengths in bytes of the send and the receive buffer.
    pub(crate) fn lengths(&self) -> [usize; 2] {
        let size = self.spec.size_bytes;
        let own = self.block(self.rank);
        let all = (0..self.ranks).map(|rank| self.block(rank)).sum();
        match self.spec.operation {
            Collective::Barrier => [0, 0],
            Collective::Bcast => [0, size],
            Collective::Allreduce | Collective::Reduce => [size, size],
            Collective::ReduceScatter | Collective::ReduceScatterBlock => [size, size / self.ranks as usize],
            Collective::Allgather | Collective::Allgatherv | Collective::Gather | Collective::Gatherv => {
                [own, all]
            }
            Collective::Alltoall | Collective::Alltoallv => [all, own * self.ranks as usize],
            Collective::Scatter | Collective::Scatterv => [all, own],
        }
    }

    /// Returns the data that this rank sends.
    pub(crate) fn given(&self) -> Vec<u8> {
        let rank = self.rank;
        let block = |to: u32, bytes: usize| (0..bytes).map(move |at| byte(rank, to, at));
        match self.spec.operation {
            operation if operation.reduces() => {
                vector(self.spec.element, self.spec.size_bytes, |index| element(rank, index))
            }
            Collective::Alltoall | Collective::Alltoallv | Collective::Scatter | Collective::Scatterv => {
                (0..self.ranks).flat_map(|to| block(to, self.block(to))).collect()
            }
            _ => block(0, self.lengths()[0]).collect(),
        }
    }

    /// Clears the result of the last call. At rank 0, a broadcast sends from the buffer that it
    /// fills at other ranks, so the data is restored there.
    pub(crate) fn clear(&self, received: &mut [u8]) {
        received.fill(CLEARED);
        if self.spec.operation == Collective::Bcast && self.rank == 0 {
            received.iter_mut().enumerate().for_each(|(at, here)| *here = byte(0, 0, at));
        }
    }

    /// Compares the result of the last call with the expected one.
    ///
    /// # Errors
    /// As [`compare`].
    pub(crate) fn verify(&self, received: &[u8]) -> Result<(), Error> {
        compare(self.spec.operation.word(), self.rank, &self.expected(), received)
    }

    /// Returns the expected result; it is empty if the call brings nothing to this rank.
    fn expected(&self) -> Vec<u8> {
        let Self { spec, rank, ranks } = *self;
        let size = spec.size_bytes;
        let own = self.block(rank);
        let reduced = |first: usize, bytes: usize| {
            let of = |index: usize| spec.reduction.of((0..ranks).map(|from| element(from, first + index)));
            vector(spec.element, bytes, of)
        };
        match spec.operation {
            Collective::Barrier => Vec::new(),
            Collective::Gather | Collective::Gatherv | Collective::Reduce if rank > 0 => Vec::new(),
            Collective::Bcast => (0..size).map(|at| byte(0, 0, at)).collect(),
            Collective::Scatter | Collective::Scatterv => (0..own).map(|at| byte(0, rank, at)).collect(),
            Collective::Allgather | Collective::Allgatherv | Collective::Gather | Collective::Gatherv => {
                let block = |from: u32| (0..self.block(from)).map(move |at| byte(from, 0, at));
                (0..ranks).flat_map(block).collect()
            }
            Collective::Alltoall | Collective::Alltoallv => {
                (0..ranks).flat_map(|from| (0..own).map(move |at| byte(from, rank, at))).collect()
            }
            Collective::Allreduce | Collective::Reduce => reduced(0, size),
            Collective::ReduceScatter | Collective::ReduceScatterBlock => {
                let own = size / ranks as usize;
                reduced(rank as usize * own / spec.element.bytes(), own)
            }
        }
    }
}

/// Returns the four sides that a rank sends, in the order of its neighbours, each with different
/// bytes.
pub(crate) fn sides(of: u32, side_bytes: usize) -> Vec<u8> {
    (0..SIDES * side_bytes).map(|at| byte(of, (at / side_bytes) as u32, at % side_bytes)).collect()
}

/// Returns what a rank receives from its neighbour at a side.
pub(crate) fn side_expected(spec: HaloSpec, rank: u32, side: usize) -> Vec<u8> {
    let bytes = spec.side_bytes;
    let given = sides(spec.grid.neighbours(rank)[side], bytes);
    given[opposite(side) * bytes..(opposite(side) + 1) * bytes].to_vec()
}

/// Compares the result of a call on a rank with the expected one.
///
/// # Errors
/// [`Error::WrongResult`] with the first byte that differs.
pub(crate) fn compare(call: &'static str, rank: u32, expected: &[u8], found: &[u8]) -> Result<(), Error> {
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        None => Ok(()),
        Some(byte) => {
            Err(Error::WrongResult { call, rank, byte, found: found[byte], expected: expected[byte] })
        }
    }
}

/// Returns a byte that one rank sends to another, or puts on one of its sides.
pub(crate) fn byte(from: u32, to: u32, at: usize) -> u8 {
    (from.wrapping_mul(31) as usize + to.wrapping_mul(17) as usize + at * 7 + 1) as u8
}

/// Returns an element that a rank sends to be reduced: so small that every datatype adds it
/// exactly.
fn element(rank: u32, index: usize) -> u32 {
    rank % 100 + 1 + (index % 7) as u32
}

/// Returns `bytes` bytes of elements.
fn vector(element: Element, bytes: usize, value: impl Fn(usize) -> u32) -> Vec<u8> {
    (0..bytes / element.bytes()).flat_map(|index| element.encode(value(index))).collect()
}
