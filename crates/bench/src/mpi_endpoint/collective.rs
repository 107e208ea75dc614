//! Collective operations of MPI, by blocking calls.

use mpi::{Communicator, Datatype, Op, Parts};

use super::contents::Contents;
use super::memory::Memory;
use crate::Error;
use crate::endpoint::collectives::{Collective, CollectiveSpec, Element, Reduction};

/// A call, and the memory that it reads and writes.
pub(super) struct CollectiveCall {
    contents: Contents,
    datatype: Datatype,
    op: Op,
    sent: Memory,
    received: Memory,
    /// The block of each rank, for calls that take them one by one: all have the same length, as
    /// those of the OSU and the Intel MPI Benchmarks.
    counts: Vec<i32>,
    displacements: Vec<i32>,
}

impl CollectiveCall {
    pub(super) fn new(communicator: &Communicator, spec: CollectiveSpec) -> Result<Self, Error> {
        let contents = Contents::new(communicator, spec)?;
        let [sent, received] = contents.lengths();
        let mut call = Self {
            contents,
            datatype: datatype(spec.element),
            op: op(spec.reduction),
            sent: Memory::new(communicator, sent)?,
            received: Memory::new(communicator, received)?,
            counts: Vec::new(),
            displacements: Vec::new(),
        };
        if spec.operation.has_blocks_of_their_own() {
            let too_long = |_| Error::Impossible {
                reason: format!(
                    "{} blocks of {} B lie beyond 2147483647 B, the last that an int counts",
                    contents.ranks, spec.size_bytes
                ),
            };
            for rank in 0..contents.ranks as usize {
                call.counts.push(i32::try_from(spec.size_bytes).map_err(too_long)?);
                call.displacements.push(i32::try_from(rank * spec.size_bytes).map_err(too_long)?);
            }
        }
        call.sent.bytes_mut().copy_from_slice(&contents.given());
        call.clear();
        Ok(call)
    }

    #[inline]
    pub(super) fn run(&mut self, all: &Communicator) -> Result<(), mpi::Error> {
        let Self { sent, received, datatype, op, .. } = self;
        let blocks = Parts { counts: &self.counts, displacements: &self.displacements };
        match self.contents.spec.operation {
            Collective::Allgather => all.allgather(sent.bytes(), received.bytes_mut()),
            Collective::Allgatherv => all.allgatherv(sent.bytes(), received.bytes_mut(), blocks),
            Collective::Allreduce => all.allreduce(sent.bytes(), received.bytes_mut(), *datatype, *op),
            Collective::Alltoall => all.alltoall(sent.bytes(), received.bytes_mut()),
            Collective::Alltoallv => all.alltoallv((sent.bytes(), blocks), (received.bytes_mut(), blocks)),
            Collective::Barrier => all.barrier(),
            Collective::Bcast => all.bcast(received.bytes_mut(), 0),
            Collective::Gather => all.gather(sent.bytes(), received.bytes_mut(), 0),
            Collective::Gatherv => all.gatherv(sent.bytes(), received.bytes_mut(), blocks, 0),
            Collective::Reduce => all.reduce(sent.bytes(), received.bytes_mut(), *datatype, *op, 0),
            Collective::ReduceScatter => {
                all.reduce_scatter_block(sent.bytes(), received.bytes_mut(), *datatype, *op)
            }
            Collective::Scatter => all.scatter(sent.bytes(), received.bytes_mut(), 0),
            Collective::Scatterv => all.scatterv(sent.bytes(), blocks, received.bytes_mut(), 0),
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
