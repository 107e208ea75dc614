//! Joint operations of all ranks, with the memory that they read and write.

use super::collective::CollectiveCall;
use super::halo::HaloCall;
use super::nonblocking::NonblockingCall;

/// A collective operation or a halo exchange.
pub(super) enum JointCall {
    Collective(CollectiveCall),
    Halo(HaloCall),
    Nonblocking(NonblockingCall),
}
