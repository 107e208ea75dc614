//! Collective operations of MPI with nonblocking calls.

use mpi::{Communicator, Datatype, NonblockingCollective, Op};

use super::collective::{datatype, op};
use crate::Error;
use crate::endpoint::collectives::{Collective, CollectiveSpec};
use crate::endpoint::contents::Contents;

/// A call with separate start and completion, and the memory that it reads and writes.
pub(super) struct NonblockingCall {
    contents: Contents,
    datatype: Datatype,
    op: Op,
    call: NonblockingCollective,
}

impl NonblockingCall {
    pub(super) fn new(communicator: &Communicator, spec: CollectiveSpec) -> Result<Self, Error> {
        let contents = Contents::new(spec, communicator.rank(), communicator.size())?;
        let [sent, received] = contents.lengths();
        let mut call = NonblockingCollective::new(communicator, sent, received)?;
        call.sent_mut().copy_from_slice(&contents.given());
        contents.clear(call.received_mut());
        Ok(Self { contents, datatype: datatype(spec.element), op: op(spec.reduction), call })
    }

    /// Starts the operation.
    #[inline]
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        let Self { call, datatype, op, .. } = self;
        let begun = match self.contents.spec.operation {
            Collective::Allgather => call.iallgather(),
            Collective::Allreduce => call.iallreduce(*datatype, *op),
            Collective::Alltoall => call.ialltoall(),
            Collective::Barrier => call.ibarrier(),
            Collective::Bcast => call.ibcast(0),
            Collective::Gather => call.igather(0),
            Collective::Reduce => call.ireduce(*datatype, *op, 0),
            Collective::ReduceScatter => call.ireduce_scatter(*datatype, *op),
            Collective::ReduceScatterBlock => call.ireduce_scatter_block(*datatype, *op),
            Collective::Scatter => call.iscatter(0),
            // The check of the plan refuses these.
            Collective::Allgatherv | Collective::Alltoallv | Collective::Gatherv | Collective::Scatterv => {
                return Err(Error::Impossible { reason: BLOCKING_ONLY.to_owned() });
            }
        };
        Ok(begun?)
    }

    /// Returns whether the operation has completed, and lets the library progress it.
    #[inline]
    pub(super) fn test(&mut self) -> Result<bool, Error> {
        if self.call.is_pending() { Ok(self.call.test()?) } else { Ok(true) }
    }

    /// Completes the operation.
    #[inline]
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if self.call.is_pending() { Ok(self.call.wait()?) } else { Ok(()) }
    }

    pub(super) fn clear(&mut self) {
        self.contents.clear(self.call.received_mut());
    }

    pub(super) fn verify(&self) -> Result<(), Error> {
        self.contents.verify(self.call.received())
    }
}

const BLOCKING_ONLY: &str = "operations with a block length for each rank need collective_call blocking";
