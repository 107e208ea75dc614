//! What ranks give to a collective operation, and what it should bring.

use mpi::Communicator;

use super::memory::{CLEARED, byte, compare};
use crate::Error;
use crate::endpoint::collectives::{Blocks, Collective, CollectiveSpec, Element};

/// The share of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub(super) spec: CollectiveSpec,
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

impl Contents {
    /// # Errors
    /// [`Error::Impossible`] where so many ranks cannot do it.
    pub(super) fn new(communicator: &Communicator, spec: CollectiveSpec) -> Result<Self, Error> {
        let ranks = communicator.size();
        let size = spec.size_bytes;
        if spec.operation == Collective::ReduceScatter
            && !size.is_multiple_of(ranks as usize * spec.element.bytes())
        {
            let reason =
                format!("a vector of {size} B has no equal blocks of whole elements for {ranks} ranks");
            return Err(Error::Impossible { reason });
        }
        Ok(Self { spec, rank: communicator.rank(), ranks })
    }

    /// Bytes of the block of a rank: of the one that it gives, or of those that are for it.
    pub(super) fn block(&self, of: u32) -> usize {
        let size = self.spec.size_bytes;
        match self.spec.blocks {
            Blocks::Rising if self.spec.operation.has_blocks_of_their_own() => {
                size * 2 * (of as usize + 1) / (self.ranks as usize + 1)
            }
            Blocks::Equal | Blocks::Rising => size,
        }
    }

    /// Bytes that are sent from and received in.
    pub(super) fn lengths(&self) -> [usize; 2] {
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
    pub(super) fn given(&self) -> Vec<u8> {
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
    pub(super) fn clear(&self, received: &mut [u8]) {
        received.fill(CLEARED);
        if self.spec.operation == Collective::Bcast && self.rank == 0 {
            received.iter_mut().enumerate().for_each(|(at, here)| *here = byte(0, 0, at));
        }
    }

    /// Compares what the last call brought with what it should have.
    pub(super) fn verify(&self, received: &[u8]) -> Result<(), Error> {
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

/// An element that a rank gives to be reduced: so small that every datatype adds it exactly.
fn element(rank: u32, index: usize) -> u32 {
    rank % 100 + 1 + (index % 7) as u32
}

/// So many bytes of elements.
fn vector(element: Element, bytes: usize, value: impl Fn(usize) -> u32) -> Vec<u8> {
    (0..bytes / element.bytes()).flat_map(|index| element.encode(value(index))).collect()
}
