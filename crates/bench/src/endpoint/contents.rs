//! What ranks give each other in calls that all make together, and what such calls should bring:
//! the same bytes whatever carries them.

use super::collectives::{Blocks, Collective, CollectiveSpec, Element, HaloSpec};
use crate::Error;
use crate::patterns::halo::choices::{SIDES, opposite};

/// What no call brings everywhere.
pub(crate) const CLEARED: u8 = 0xa5;

/// What a collective operation takes from a rank and brings to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    pub(crate) spec: CollectiveSpec,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

impl Contents {
    /// That of a rank among so many.
    ///
    /// # Errors
    /// [`Error::Impossible`] where so many ranks cannot do it.
    pub(crate) fn new(spec: CollectiveSpec, rank: u32, ranks: u32) -> Result<Self, Error> {
        let size = spec.size_bytes;
        if spec.operation == Collective::ReduceScatter
            && !size.is_multiple_of(ranks as usize * spec.element.bytes())
        {
            let reason =
                format!("a vector of {size} B has no equal blocks of whole elements for {ranks} ranks");
            return Err(Error::Impossible { reason });
        }
        Ok(Self { spec, rank, ranks })
    }

    /// Bytes of a rank's block: of the block that the rank sends, and of each block sent to it.
    pub(crate) fn block(&self, of: u32) -> usize {
        let size = self.spec.size_bytes;
        match self.spec.blocks {
            Blocks::Rising if self.spec.operation.has_blocks_of_their_own() => {
                size * 2 * (of as usize + 1) / (self.ranks as usize + 1)
            }
            Blocks::Equal | Blocks::Rising => size,
        }
    }

    /// Bytes that are sent from and received in.
    pub(crate) fn lengths(&self) -> [usize; 2] {
        let size = self.spec.size_bytes;
        let own = self.block(self.rank);
        let all = (0..self.ranks).map(|rank| self.block(rank)).sum();
        match self.spec.operation {
            Collective::Barrier => [0, 0],
            Collective::Bcast => [0, size],
            Collective::Allreduce | Collective::Reduce => [size, size],
            Collective::ReduceScatter => [size, size / self.ranks as usize],
            Collective::Allgather | Collective::Allgatherv | Collective::Gather | Collective::Gatherv => {
                [own, all]
            }
            Collective::Alltoall | Collective::Alltoallv => [all, own * self.ranks as usize],
            Collective::Scatter | Collective::Scatterv => [all, own],
        }
    }

    /// What this rank sends.
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

    /// Removes what the last call brought. What rank 0 broadcasts stands where it is sent from,
    /// which is where it arrives elsewhere.
    pub(crate) fn clear(&self, received: &mut [u8]) {
        received.fill(CLEARED);
        if self.spec.operation == Collective::Bcast && self.rank == 0 {
            received.iter_mut().enumerate().for_each(|(at, here)| *here = byte(0, 0, at));
        }
    }

    /// Compares what the last call brought with what it should have.
    ///
    /// # Errors
    /// As [`compare`].
    pub(crate) fn verify(&self, received: &[u8]) -> Result<(), Error> {
        compare(self.spec.operation.word(), self.rank, &self.expected(), received)
    }

    /// What the call should have brought; nothing where it brings nothing to this rank.
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
            Collective::ReduceScatter => {
                let own = size / ranks as usize;
                reduced(rank as usize * own / spec.element.bytes(), own)
            }
        }
    }
}

/// The four sides that a rank gives: in the order of its neighbours, each with bytes of its own.
pub(crate) fn sides(of: u32, side_bytes: usize) -> Vec<u8> {
    (0..SIDES * side_bytes).map(|at| byte(of, (at / side_bytes) as u32, at % side_bytes)).collect()
}

/// What a rank's neighbour at a side gives it.
pub(crate) fn side_expected(spec: HaloSpec, rank: u32, side: usize) -> Vec<u8> {
    let bytes = spec.side_bytes;
    let given = sides(spec.grid.neighbours(rank)[side], bytes);
    given[opposite(side) * bytes..(opposite(side) + 1) * bytes].to_vec()
}

/// Compares what a call brought to a rank with what it should have.
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

/// A byte that one rank gives another, or puts on one of its sides.
pub(crate) fn byte(from: u32, to: u32, at: usize) -> u8 {
    (from.wrapping_mul(31) as usize + to.wrapping_mul(17) as usize + at * 7 + 1) as u8
}

/// An element that a rank gives to be reduced: so small that every datatype adds it exactly.
fn element(rank: u32, index: usize) -> u32 {
    rank % 100 + 1 + (index % 7) as u32
}

/// So many bytes of elements.
fn vector(element: Element, bytes: usize, value: impl Fn(usize) -> u32) -> Vec<u8> {
    (0..bytes / element.bytes()).flat_map(|index| element.encode(value(index))).collect()
}
