//! Multicast: a datagram to a group reaches every queue pair that has joined it, in every process of this user.
//!
//! Who has joined stands in each process's arena. The requester delivers a copy to each, as it delivers any datagram: to
//! those of its own process too, and to itself where it has joined, as on adapters unless they are told otherwise
//! (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
//!
//! Which processes there are, the kernel's list of sockets says. Reading it takes long, so a process remembers what it has
//! found until a word in its arena has changed, which whoever joins counts up in all arenas that there are. A process that
//! is not on the list yet has not looked for members either. Who leaves takes the entry back, which is looked at again
//! with every datagram.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use verbs::abi::*;

use crate::deliver::Delivery;
use crate::device::{MULTICAST_LIDS, is_group, is_same_network};
use crate::host::{Host, Peer, blocks};
use crate::memory::layout::SharedMember;
use crate::message::Message;
use crate::queue_pair::Qp;
use crate::send::SendQueue;
use crate::sys::limits::{MEMBERS, QP_INDEX_BITS};
use crate::sys::settings::{LinkLayer, link_layer};

/// The number that datagrams to a group name instead of a queue pair's (IBTA vol. 1, section 3.5.10).
pub(crate) const MULTICAST_QP: u32 = 0xff_ffff;

/// Queue pairs of this process and the groups that they have joined, by entry of the table.
static JOINED: Mutex<Vec<Option<(u32, ibv_gid)>>> = Mutex::new(Vec::new());

fn joined() -> MutexGuard<'static, Vec<Option<(u32, ibv_gid)>>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a queue pair has joined any group: then it cannot be destroyed, as in the kernel (`uverbs_free_qp()` in
/// core/uverbs_std_types_qp.c).
pub(crate) fn is_member(qp_num: u32) -> bool {
    joined().iter().flatten().any(|(member, _)| *member == qp_num)
}

/// What the kernel asks of who joins or leaves (`ib_attach_mcast()` and `is_valid_mcast_lid()` in core/verbs.c).
fn is_valid(qp: &Qp, group: &ibv_gid, lid: u16) -> bool {
    let has_lid = link_layer() == LinkLayer::Ethernet || MULTICAST_LIDS.contains(&lid);
    qp.ibv.qp_type == IBV_QPT_UD && is_group(group) && has_lid
}

pub(crate) unsafe extern "C" fn attach_mcast(qp: *mut ibv_qp, group: *const ibv_gid, lid: u16) -> c_int {
    // SAFETY: the caller gives a live queue pair of this device and a readable GID.
    let (qp, group) = unsafe { (Qp::from(qp), *group) };
    if !is_valid(qp, &group, lid) {
        return libc::EINVAL;
    }
    let mut joined = joined();
    let entry = Some((qp.ibv.qp_num, group));
    if joined.contains(&entry) {
        return 0; // As in the kernel: once is enough.
    }
    let free = joined.iter().position(Option::is_none).unwrap_or(joined.len());
    if free == MEMBERS {
        return libc::ENOMEM;
    }
    if free == joined.len() {
        joined.push(None);
    }
    joined[free] = entry;
    let view = &qp.host.arena.view;
    view.member(free as u32).show(qp.ibv.qp_num, &group);
    view.header().members.store(joined.len() as u32, SeqCst);
    drop(joined);
    tell(qp.host);
    0
}

pub(crate) unsafe extern "C" fn detach_mcast(qp: *mut ibv_qp, group: *const ibv_gid, lid: u16) -> c_int {
    // SAFETY: the caller gives a live queue pair of this device and a readable GID.
    let (qp, group) = unsafe { (Qp::from(qp), *group) };
    let mut joined = joined();
    let entry = Some((qp.ibv.qp_num, group));
    let Some(found) = joined.iter().position(|other| *other == entry).filter(|_| is_valid(qp, &group, lid))
    else {
        return libc::EINVAL;
    };
    joined[found] = None;
    qp.host.arena.view.member(found as u32).qp_num.store(0, SeqCst);
    0
}

/// Tells all processes that there is a new member.
fn tell(host: &Host) {
    for block in blocks(host.block) {
        if let Some(peer) = host.peer_of(block << QP_INDEX_BITS) {
            peer.view(&host.arena.view).header().epoch.fetch_add(1, SeqCst);
        }
    }
}

impl SharedMember {
    fn show(&self, qp_num: u32, group: &ibv_gid) {
        let [high, low] = halves(group);
        self.group[0].store(high, Relaxed);
        self.group[1].store(low, Relaxed);
        self.qp_num.store(qp_num, Release);
    }

    /// The member, if it is one of a group.
    fn of(&self, [high, low]: [u64; 2]) -> Option<u32> {
        let qp_num = self.qp_num.load(Acquire);
        let is_its = self.group[0].load(Relaxed) == high && self.group[1].load(Relaxed) == low;
        (qp_num != 0 && is_its).then_some(qp_num)
    }
}

fn halves(group: &ibv_gid) -> [u64; 2] {
    let half = |i: usize| u64::from_be_bytes(std::array::from_fn(|byte| group.raw[i + byte]));
    [half(0), half(8)]
}

/// What this process has found: entries that are in use.
struct Directory {
    /// What the own arena's word was before it was looked.
    epoch: Option<u32>,
    entries: Vec<Entry>,
}

struct Entry {
    peer: Arc<Peer>,
    block: u32,
    index: u32,
}

static DIRECTORY: Mutex<Directory> = Mutex::new(Directory { epoch: None, entries: Vec::new() });

fn directory() -> MutexGuard<'static, Directory> {
    DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    /// Looks again if somebody has joined since.
    fn refresh(&mut self, host: &Host) {
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

/// Lets the arenas of processes that have ended go.
pub(crate) fn forget_the_dead() {
    directory().entries.retain(|entry| entry.peer.is_alive());
}

impl Qp {
    /// Delivers a datagram to all members of a group. Whether any of them gets it, nobody learns.
    pub(crate) fn deliver_to_group(
        &self,
        queue: &mut SendQueue,
        group: &ibv_gid,
        message: &Message<'_>,
    ) -> Delivery {
        let group = halves(group);
        let mut directory = directory();
        directory.refresh(self.host);
        for Entry { peer, block, index } in &directory.entries {
            let found = peer.view(&self.host.arena.view).member(*index).of(group);
            // A process speaks for its own queue pairs only.
            if let Some(qp_num) = found.filter(|qp_num| qp_num >> QP_INDEX_BITS == *block) {
                self.deliver_datagram(queue, qp_num, is_same_network, message);
            }
        }
        Delivery::Done
    }
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

    #[test]
    fn groups_are_told_from_ports() {
        let gid = |text: &str| ibv_gid { raw: text.parse::<std::net::Ipv6Addr>().unwrap().octets() };
        assert!(
            ["ff12::1", "ff02::2", "::ffff:224.0.0.1", "::ffff:239.1.2.3"].iter().all(|t| is_group(&gid(t)))
        );
        assert!(!["fe80::1", "::ffff:10.0.0.1", "::", "2001:db8::ff"].iter().any(|t| is_group(&gid(t))));
    }
}
