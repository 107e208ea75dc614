//! The members of multicast groups, in every process of this user.
//!
//! The kernel's list of sockets names the processes. Reading it takes long, so a process remembers
//! what it has found until a word in its arena changes. A process in which a queue pair joins
//! increments this word in all arenas. A process that is not on the list yet has not looked for
//! members either. A queue pair that leaves clears its entry, which senders look at again with
//! every datagram.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use verbs::abi::*;

use crate::memory::layout::SharedMember;
use crate::sys::limits::{MEMBERS, QP_INDEX_BITS};
use crate::transport::local::host::{Host, Peer, blocks};

/// Tells all processes that there is a new member.
pub(crate) fn tell(host: &Host) {
    for block in blocks(host.block) {
        if let Some(peer) = host.peer_of(block << QP_INDEX_BITS) {
            peer.view(&host.arena.view).header().epoch.fetch_add(1, SeqCst);
        }
    }
}

impl SharedMember {
    pub(crate) fn show(&self, qp_num: u32, group: &ibv_gid) {
        let [high, low] = halves(group);
        self.group[0].store(high, Relaxed);
        self.group[1].store(low, Relaxed);
        self.qp_num.store(qp_num, Release);
    }

    /// Returns the member if it belongs to a group.
    pub(crate) fn of(&self, [high, low]: [u64; 2]) -> Option<u32> {
        let qp_num = self.qp_num.load(Acquire);
        let is_its = self.group[0].load(Relaxed) == high && self.group[1].load(Relaxed) == low;
        (qp_num != 0 && is_its).then_some(qp_num)
    }
}

pub(crate) fn halves(group: &ibv_gid) -> [u64; 2] {
    let half = |i: usize| u64::from_be_bytes(std::array::from_fn(|byte| group.raw[i + byte]));
    [half(0), half(8)]
}

/// The entries in use that this process has found.
pub(crate) struct Directory {
    /// The word of this process's arena before the last look.
    epoch: Option<u32>,
    pub(crate) entries: Vec<Entry>,
}

pub(crate) struct Entry {
    pub(crate) peer: Arc<Peer>,
    pub(crate) block: u32,
    pub(crate) index: u32,
}

static DIRECTORY: Mutex<Directory> = Mutex::new(Directory { epoch: None, entries: Vec::new() });

pub(crate) fn directory() -> MutexGuard<'static, Directory> {
    DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// Looks again if a queue pair has joined since.
    pub(crate) fn refresh(&mut self, host: &Host) {
        let epoch = host.arena.view.header().epoch.load(SeqCst);
        if self.epoch == Some(epoch) {
            return;
        }
        self.entries.clear();
        for block in blocks(host.block) {
            let Some(peer) = host.peer_of(block << QP_INDEX_BITS) else { continue };
            let view = peer.view(&host.arena.view);
            let count = view.header().members.load(SeqCst).min(MEMBERS as u32);
            let used = (0..count).filter(|index| view.member(*index).qp_num.load(Relaxed) != 0);
            self.entries.extend(used.map(|index| Entry { peer: Arc::clone(&peer), block, index }));
        }
        self.epoch = Some(epoch);
    }
}

/// Releases the arenas of processes that have ended.
pub(crate) fn forget_the_dead() {
    directory().entries.retain(|entry| entry.peer.is_alive());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_member_is_of_its_group_alone_and_until_it_leaves() {
        let member = SharedMember { group: Default::default(), qp_num: AtomicU32::new(0) };
        let group = |last: u8| ibv_gid { raw: [0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last] };
        assert_eq!(member.of([0, 0]), None);
        member.show(5, &group(1));
        assert_eq!(member.of(halves(&group(1))), Some(5));
        assert_eq!(member.of(halves(&group(2))), None);
        member.qp_num.store(0, SeqCst);
        assert_eq!(member.of(halves(&group(1))), None);
    }
}
