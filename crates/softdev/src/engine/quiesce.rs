//! Waiting until no peer accesses memory of this process.

use std::sync::atomic::Ordering::Relaxed;

use crate::memory::arena::QUARANTINE;
use crate::memory::touching::await_end;
use crate::objects::queue_pair::Qp;
use crate::sys::timer::Instant;
use crate::transport::local::region::REMOTE;
use crate::transport::local::target::index;

impl Qp {
    /// Waits until the connected peer no longer accesses memory by a right that it had before.
    pub(crate) fn await_access(&self) {
        if self.shared().access.load(Relaxed) & REMOTE != 0 {
            self.await_peer();
        }
    }

    /// Waits until the connected peer is not at work here; it may be if it began before. A peer
    /// that is stopped during its work is given up after the time for which freed memory is kept.
    /// Called after `agree`.
    pub(crate) fn await_peer(&self) {
        let peer_qp = self.peer_number();
        if peer_qp == 0 {
            return;
        }
        let Some(peer) = self.host.peer_of(peer_qp) else { return };
        let touching = &peer.view(&self.host.arena.view).qp(index(peer_qp)).touching.value;
        let end = Instant::now() + QUARANTINE;
        await_end(touching, self.ibv.qp_num, || peer.is_alive() && Instant::now() < end);
    }
}
