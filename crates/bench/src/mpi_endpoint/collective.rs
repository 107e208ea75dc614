//! Collective operations of MPI.

use mpi::{Communicator, Datatype, Op};

use super::memory::{CLEARED, Memory, byte, compare};
use crate::Error;
use crate::endpoint::collectives::{Collective, CollectiveSpec, Element, Reduction};

/// A call, and the memory that it reads and writes.
pub(super) struct CollectiveCall {
    spec: CollectiveSpec,
    datatype: Datatype,
    op: Op,
    rank: u32,
    ranks: u32,
    sent: Memory,
    received: Memory,
}

impl CollectiveCall {
    pub(super) fn new(communicator: &Communicator, spec: CollectiveSpec) -> Result<Self, Error> {
        let ranks = communicator.size();
        let size = spec.size_bytes;
        let all = size * ranks as usize;
        if spec.operation == Collective::ReduceScatter
            && !size.is_multiple_of(ranks as usize * spec.element.bytes())
        {
            let reason =
                format!("a vector of {size} B has no equal blocks of whole elements for {ranks} ranks");
            return Err(Error::Impossible { reason });
        }
        let [sent, received] = match spec.operation {
            Collective::Barrier => [0, 0],
            Collective::Bcast => [0, size],
            Collective::Allreduce | Collective::Reduce => [size, size],
            Collective::ReduceScatter => [size, size / ranks as usize],
            Collective::Allgather | Collective::Gather => [size, all],
            Collective::Alltoall => [all, all],
            Collective::Scatter => [all, size],
        };
        let mut call = Self {
            spec,
            datatype: datatype(spec.element),
            op: op(spec.reduction),
            rank: communicator.rank(),
            ranks,
            sent: Memory::new(communicator, sent)?,
            received: Memory::new(communicator, received)?,
        };
        call.fill();
        Ok(call)
    }

    /// Fills what this rank gives.
    fn fill(&mut self) {
        let rank = self.rank;
        let spec = self.spec;
        let size = spec.size_bytes;
        let given: Vec<u8> = match spec.operation {
            operation if operation.reduces() => vector(spec.element, size, |index| element(rank, index)),
            _ => (0..self.sent.length())
                .map(|at| byte(rank, (at / size.max(1)) as u32, at % size.max(1)))
                .collect(),
        };
        self.sent.bytes_mut().copy_from_slice(&given);
        self.give();
    }

    /// Puts what rank 0 broadcasts where it is sent from, which is where it arrives elsewhere.
    fn give(&mut self) {
        if self.spec.operation == Collective::Bcast && self.rank == 0 {
            let given: Vec<u8> = (0..self.received.length()).map(|at| byte(0, 0, at)).collect();
            self.received.bytes_mut().copy_from_slice(&given);
        }
    }

    #[inline]
    pub(super) fn run(&mut self, all: &Communicator) -> Result<(), mpi::Error> {
        let Self { sent, received, datatype, op, .. } = self;
        match self.spec.operation {
            Collective::Allgather => all.allgather(sent.bytes(), received.bytes_mut()),
            Collective::Allreduce => all.allreduce(sent.bytes(), received.bytes_mut(), *datatype, *op),
            Collective::Alltoall => all.alltoall(sent.bytes(), received.bytes_mut()),
            Collective::Barrier => all.barrier(),
            Collective::Bcast => all.bcast(received.bytes_mut(), 0),
            Collective::Gather => all.gather(sent.bytes(), received.bytes_mut(), 0),
            Collective::Reduce => all.reduce(sent.bytes(), received.bytes_mut(), *datatype, *op, 0),
            Collective::ReduceScatter => {
                all.reduce_scatter_block(sent.bytes(), received.bytes_mut(), *datatype, *op)
            }
            Collective::Scatter => all.scatter(sent.bytes(), received.bytes_mut(), 0),
        }
    }

    /// Removes what the last call brought.
    pub(super) fn clear(&mut self) {
        self.received.bytes_mut().fill(CLEARED);
        self.give();
    }

    /// Compares what the last call brought with what it should have.
    pub(super) fn verify(&self) -> Result<(), Error> {
        compare(self.spec.operation.word(), self.rank, &self.expected(), self.received.bytes())
    }

    /// What the call should have brought; nothing where it brings nothing to this rank.
    fn expected(&self) -> Vec<u8> {
        let Self { spec, rank, ranks, .. } = *self;
        let size = spec.size_bytes;
        let blocks = |to: u32| (0..ranks).flat_map(move |from| (0..size).map(move |at| byte(from, to, at)));
        let reduced = |first: usize, bytes: usize| {
            let of = |index: usize| spec.reduction.of((0..ranks).map(|from| element(from, first + index)));
            vector(spec.element, bytes, of)
        };
        match spec.operation {
            Collective::Barrier => Vec::new(),
            Collective::Gather | Collective::Reduce if rank > 0 => Vec::new(),
            Collective::Bcast => (0..size).map(|at| byte(0, 0, at)).collect(),
            Collective::Scatter => (0..size).map(|at| byte(0, rank, at)).collect(),
            Collective::Allgather | Collective::Gather => blocks(0).collect(),
            Collective::Alltoall => blocks(rank).collect(),
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

fn datatype(element: Element) -> Datatype {
    match element {
        Element::Double => Datatype::Double,
        Element::Float => Datatype::Float,
        Element::Int32 => Datatype::Int32,
        Element::Uint64 => Datatype::Uint64,
    }
}

fn op(reduction: Reduction) -> Op {
    match reduction {
        Reduction::Max => Op::Max,
        Reduction::Min => Op::Min,
        Reduction::Sum => Op::Sum,
    }
}
