//! What a work request does to its peer's memory.

use verbs::abi::*;

use crate::transport::local::link::Extended;
use crate::transport::local::region::Access;

/// What a work request does to its peer's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) operation: Operation,
    pub(crate) addr: u64,
    pub(crate) key: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operation {
    Write,
    Read,
    CompareSwap { compare: u64, swap: u64 },
    FetchAdd(u64),
}

/// The size of an atomic in bytes (IBTA vol. 1, section 9.4.5).
pub(crate) const ATOMIC_BYTES: u64 = 8;

impl Remote {
    /// Returns the bytes of the request's header on a link.
    pub(crate) fn header_bytes(&self) -> u64 {
        match self.operation {
            Operation::Write | Operation::Read => Extended::RDMA,
            Operation::CompareSwap { .. } | Operation::FetchAdd(_) => Extended::ATOMIC,
        }
    }

    /// Whether a request accesses the peer's memory.
    #[inline]
    pub(crate) fn is_asked_for(wr: &ibv_send_wr) -> bool {
        !matches!(wr.opcode, IBV_WR_SEND | IBV_WR_SEND_WITH_IMM)
    }

    /// Returns the access that a request asks for.
    #[inline]
    pub(crate) fn of(wr: &ibv_send_wr) -> Self {
        if matches!(wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD) {
            // SAFETY: the request is an atomic operation's, so this member is the one that was
            // written.
            let atomic = unsafe { wr.wr.atomic };
            let operation = if wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP {
                Operation::CompareSwap { compare: atomic.compare_add, swap: atomic.swap }
            } else {
                Operation::FetchAdd(atomic.compare_add)
            };
            return Self { operation, addr: atomic.remote_addr, key: atomic.rkey };
        }
        // SAFETY: the request is an RDMA operation's, so this member is the one that was written.
        let rdma = unsafe { wr.wr.rdma };
        let operation = if wr.opcode == IBV_WR_RDMA_READ { Operation::Read } else { Operation::Write };
        Self { operation, addr: rdma.remote_addr, key: rdma.rkey }
    }

    /// Returns how it accesses the requester's own memory.
    #[inline]
    pub(crate) fn local_access(&self) -> Access {
        if self.operation == Operation::Write { Access::Gather } else { Access::Scatter }
    }

    #[inline]
    pub(crate) fn access(&self) -> Access {
        match self.operation {
            Operation::Write => Access::RemoteWrite,
            Operation::Read => Access::RemoteRead,
            Operation::CompareSwap { .. } | Operation::FetchAdd(_) => Access::RemoteAtomic,
        }
    }

    #[inline]
    pub(crate) fn is_atomic(&self) -> bool {
        self.access() == Access::RemoteAtomic
    }

    /// Returns the error that the requester itself finds in a request whose elements have `bytes`
    /// bytes.
    #[inline]
    pub(crate) fn local_fault(&self, bytes: u64, initiator_depth: u8) -> Option<ibv_wc_status> {
        match self.operation {
            Operation::Write => None,
            _ if initiator_depth == 0 => Some(IBV_WC_LOC_QP_OP_ERR),
            Operation::Read => None,
            _ => (bytes != ATOMIC_BYTES).then_some(IBV_WC_LOC_LEN_ERR),
        }
    }
}
