//! Collective operations of MPI with blocking calls.

use mpi::{Communicator, Datatype, Op, Parts};

use super::memory::Memory;
use crate::Error;
use crate::endpoint::collectives::{Collective, CollectiveSpec, Element, Reduction};
use crate::endpoint::contents::Contents;

/// A call, and the memory that it reads and writes.
pub(super) struct CollectiveCall {
    contents: Contents,
    datatype: Datatype,
    op: Op,
    sent: Memory,
    received: Memory,
    /// The blocks of all ranks, for calls that take a length for each; and the blocks that arrive
    /// at this rank, where these differ.
    blocks: Layout,
    arriving: Layout,
}

/// Counts and displacements of blocks, as MPI calls take them.
#[derive(Default)]
struct Layout {
    counts: Vec<i32>,
    displacements: Vec<i32>,
}

impl Layout {
    /// Creates a layout of adjacent blocks of these lengths.
    fn new(lengths: impl Iterator<Item = usize>) -> Result<Self, Error> {
        let int = |bytes: usize| {
            i32::try_from(bytes).map_err(|_| Error::Impossible {
                reason: format!(
                    "the length or displacement of a block is {bytes} B, and MPI's int ends at {}",
                    i32::MAX
                ),
            })
        };
        let mut layout = Self::default();
        let mut end = 0;
        for length in lengths {
            layout.counts.push(int(length)?);
            layout.displacements.push(int(end)?);
            end += length;
        }
        Ok(layout)
    }

    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts { counts: &self.counts, displacements: &self.displacements }
    }
}

impl CollectiveCall {
    pub(super) fn new(communicator: &Communicator, spec: CollectiveSpec) -> Result<Self, Error> {
        let contents = Contents::new(spec, communicator.rank(), communicator.size())?;
        let [sent, received] = contents.lengths();
        let mut call = Self {
            contents,
            datatype: datatype(spec.element),
            op: op(spec.reduction),
            sent: Memory::new(communicator, sent)?,
            received: Memory::new(communicator, received)?,
            blocks: Layout::default(),
            arriving: Layout::default(),
        };
        if spec.operation.has_blocks_of_their_own() {
            call.blocks = Layout::new((0..contents.ranks).map(|rank| contents.block(rank)))?;
            call.arriving = Layout::new((0..contents.ranks).map(|_| contents.block(contents.rank)))?;
        }
        if spec.operation == Collective::ReduceScatter {
            let elements = received / spec.element.bytes();
            call.blocks = Layout::new((0..contents.ranks).map(|_| elements))?;
        }
        call.sent.bytes_mut().copy_from_slice(&contents.given());
        call.clear();
        Ok(call)
    }

    #[inline]
    pub(super) fn run(&mut self, all: &Communicator) -> Result<(), mpi::Error> {
        let Self { sent, received, datatype, op, blocks, arriving, .. } = self;
        match self.contents.spec.operation {
            Collective::Allgather => all.allgather(sent.bytes(), received.bytes_mut()),
            Collective::Allgatherv => all.allgatherv(sent.bytes(), received.bytes_mut(), blocks.parts()),
            Collective::Allreduce => all.allreduce(sent.bytes(), received.bytes_mut(), *datatype, *op),
            Collective::Alltoall => all.alltoall(sent.bytes(), received.bytes_mut()),
            Collective::Alltoallv => {
                all.alltoallv((sent.bytes(), blocks.parts()), (received.bytes_mut(), arriving.parts()))
            }
            Collective::Barrier => all.barrier(),
            Collective::Bcast => all.bcast(received.bytes_mut(), 0),
            Collective::Gather => all.gather(sent.bytes(), received.bytes_mut(), 0),
            Collective::Gatherv => all.gatherv(sent.bytes(), received.bytes_mut(), blocks.parts(), 0),
            Collective::Reduce => all.reduce(sent.bytes(), received.bytes_mut(), *datatype, *op, 0),
            Collective::ReduceScatter => {
                all.reduce_scatter(sent.bytes(), received.bytes_mut(), &blocks.counts, *datatype, *op)
            }
            Collective::ReduceScatterBlock => {
                all.reduce_scatter_block(sent.bytes(), received.bytes_mut(), *datatype, *op)
            }
            Collective::Scatter => all.scatter(sent.bytes(), received.bytes_mut(), 0),
            Collective::Scatterv => all.scatterv(sent.bytes(), blocks.parts(), received.bytes_mut(), 0),
        }
    }

    pub(super) fn clear(&mut self) {
        self.contents.clear(self.received.bytes_mut());
    }

    pub(super) fn verify(&self) -> Result<(), Error> {
        self.contents.verify(self.received.bytes())
    }
}

pub(super) fn datatype(element: Element) -> Datatype {
    match element {
        Element::Double => Datatype::Double,
        Element::Float => Datatype::Float,
        Element::Int32 => Datatype::Int32,
        Element::Uint64 => Datatype::Uint64,
    }
}

pub(super) fn op(reduction: Reduction) -> Op {
    match reduction {
        Reduction::Max => Op::Max,
        Reduction::Min => Op::Min,
        Reduction::Sum => Op::Sum,
    }
}
