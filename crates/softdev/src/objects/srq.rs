//! Shared receive queues.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use verbs::abi::*;

use crate::objects::receiving::Receiving;
use crate::objects::wqe::Wqes;
use crate::sys::own_lock::OwnLock;
use crate::transport::local::host::Host;
use crate::transport::local::pool::{Area, Pool};

/// A shared receive queue. The part that requesters see is in this process's arena.
#[repr(C)]
pub(crate) struct Srq {
    pub(crate) ibv: ibv_srq,
    pub(crate) host: &'static Host,
    /// The number of its protection domain.
    pub(crate) pd: u32,
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    pub(crate) area: Area,
    pub(crate) pool: Pool,
    pub(crate) queue: OwnLock<SrqQueue>,
    /// The posted receives, by index.
    pub(crate) wqes: Wqes,
    /// The receive queues of the queue pairs that take from it.
    pub(crate) members: Mutex<Vec<*const Receiving>>,
    /// How often a queue that has run dry was looked at.
    pub(crate) doubts: AtomicU32,
}

// SAFETY: the pointers are to memory that processes share anyway, and to queue pairs, which remove
// themselves from the list before they are destroyed.
unsafe impl Sync for Srq {}

/// What the lock protects.
pub(crate) struct SrqQueue {
    /// The number of the next receive to be posted.
    pub(crate) tail: u32,
    /// The unused indexes.
    pub(crate) free: Vec<u32>,
    /// The use of each index.
    pub(crate) posted: Box<[Option<Use>]>,
}

/// The use of an index.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// The number under which it was posted.
    pub(crate) k: u32,
    /// The block of the process that has taken it, if its word was reused since.
    pub(crate) taker: Option<u32>,
}
