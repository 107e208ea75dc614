//! Shared receive queues.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use verbs::abi::*;

use crate::objects::receiving::Receiving;
use crate::objects::wqe::Wqes;
use crate::sys::own_lock::OwnLock;
use crate::transport::local::host::Host;
use crate::transport::local::pool::{Area, Pool};

/// A shared receive queue. What requesters see of it stands in this process's arena.
#[repr(C)]
pub(crate) struct Srq {
    pub(crate) ibv: ibv_srq,
    pub(crate) host: &'static Host,
    /// Number of its protection domain.
    pub(crate) pd: u32,
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    pub(crate) area: Area,
    pub(crate) pool: Pool,
    pub(crate) queue: OwnLock<SrqQueue>,
    /// What is posted, by index.
    pub(crate) wqes: Wqes,
    /// The receive queues of the pairs that take from it.
    pub(crate) members: Mutex<Vec<*const Receiving>>,
    /// Looks at a queue that has run dry.
    pub(crate) doubts: AtomicU32,
}

// SAFETY: the pointers are to memory that processes share anyway, and to queue pairs, which take
// themselves off the list before they go.
unsafe impl Sync for Srq {}

/// What the lock protects.
pub(crate) struct SrqQueue {
    /// Number of the next receive to be posted.
    pub(crate) tail: u32,
    /// Indexes that are not in use.
    pub(crate) free: Vec<u32>,
    /// How each index is in use.
    pub(crate) posted: Box<[Option<Use>]>,
}

/// An index that is in use.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Number under which it was posted.
    pub(crate) k: u32,
    /// Block of the process that has taken it, where its word has been used again since.
    pub(crate) taker: Option<u32>,
}
