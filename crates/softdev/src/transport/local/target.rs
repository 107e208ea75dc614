//! A peer's queue pair: found once, used for every message.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;
use std::time::Duration;

use verbs::abi::*;

use crate::memory::arena::View;
use crate::memory::layout::{SharedPort, SharedQp, mr_index};
use crate::memory::slots::Ring;
use crate::sys::limits::QP_INDEX_BITS;
use crate::sys::timer::Instant;
use crate::transport::local::address::{End, device_of, port_word};
use crate::transport::local::host::{Host, Peer};
use crate::transport::local::lane::Lane;
use crate::transport::local::pool::{Area, Pool};
use crate::transport::message::Ends;

/// A queue pair of a peer.
pub(crate) struct Target {
    pub(crate) peer: Arc<Peer>,
    pub(crate) qp_num: u32,
    pub(crate) generation: u32,
    /// Its port: see `address::port_word`.
    pub(crate) port: u32,
    pub(crate) lane: Lane,
    /// What its shared receive queue shows, if it has one.
    pub(crate) pool: Option<Pool>,
    shared: NonNull<SharedQp>,
    /// The GIDs of the last datagram, and the number by which the peer knows them.
    pub(crate) ends: Cell<Option<(&'static Ends, u8)>>,
    warm: Warm,
    pub(crate) watch: Watch,
}

// SAFETY: the pointer is to memory that processes share anyway, and `Target` holds the mapping.
unsafe impl Send for Target {}

impl Target {
    /// Finds a queue pair by its number.
    pub(crate) fn find(host: &Host, qp_num: u32) -> Option<Self> {
        let peer = host.peer_of(qp_num)?;
        let view = peer.view(&host.arena.view);
        let shared = view.qp(index(qp_num));
        let named = shared.qp_num.load(Acquire) == qp_num;
        let generation = shared.generation.load(Acquire);
        let ring = Ring {
            offset: shared.posted.ring_offset.load(Relaxed),
            size: shared.posted.ring_size.load(Relaxed),
            stride: shared.posted.ring_stride.load(Relaxed),
        };
        let area = Area {
            offset: shared.posted.pool_offset.load(Relaxed),
            size: shared.posted.pool_size.load(Relaxed),
            stride: shared.posted.pool_stride.load(Relaxed),
        };
        let port = shared.port.load(Relaxed);
        // The entry must not have passed to another queue pair while it was read.
        fence(Acquire);
        let unchanged = shared.generation.load(Relaxed) == generation;
        let slots = ring.slots(view).filter(|_| named && unchanged)?;
        let pool = if area.offset == 0 { None } else { Some(area.pool(view)?) };
        view.populate(ring.offset, ring.lane_bytes().min(POPULATED_MAX));
        // SAFETY: the slots lie in the arena of `peer` (or in this process's), which stays mapped
        // as long as the peer is held.
        let lane = unsafe { Lane::new(slots, shared) };
        let shared = NonNull::from(shared);
        Some(Self {
            peer: Arc::clone(&peer),
            qp_num,
            generation,
            port,
            lane,
            pool,
            shared,
            ends: Cell::default(),
            warm: Warm::default(),
            watch: Watch::default(),
        })
    }

    /// Maps the pages of a region before the first access to it.
    #[inline]
    pub(crate) fn warm_up(&self, view: &View, key: u32) {
        if self.warm.is_new(key) {
            self.populate(view, key);
        }
    }

    /// Whether the pages of a region are known to be mapped.
    #[inline]
    pub(crate) fn is_warm(&self, key: u32) -> bool {
        self.warm.has(key)
    }

    #[cold]
    fn populate(&self, view: &View, key: u32) {
        if self.peer.is_new_region(key) {
            let region = view.mr(key);
            if region.in_arena.load(Relaxed) != 0 {
                view.populate(region.offset.load(Relaxed), region.length.load(Relaxed));
            }
        }
    }

    /// Its entry in the peer's table.
    #[inline]
    pub(crate) fn shared(&self) -> &SharedQp {
        // SAFETY: the entry lies in the arena of `peer`, which stays mapped as long as the peer is
        // held.
        unsafe { self.shared.as_ref() }
    }

    /// Whether it is still the queue pair that was found, in a state that receives.
    #[inline]
    pub(crate) fn receives(&self, shared: &SharedQp) -> bool {
        let state = shared.state.load(Acquire);
        (IBV_QPS_RTR..=IBV_QPS_SQE).contains(&state) && shared.generation.load(Relaxed) == self.generation
    }

    /// Whether it has this service, has its port at this end of a route and, for RC, expects this
    /// packet sequence number.
    pub(crate) fn answers(&self, service: ibv_qp_type, end: End, psn: u32) -> bool {
        let shared = self.shared();
        shared.state.load(Acquire) >= IBV_QPS_RTR
            && shared.service.load(Relaxed) == service
            && end.is_at(self.port, port_word(0))
            && (service != IBV_QPT_RC || shared.posted.rq_psn.load(Relaxed) == psn)
    }

    /// Whether it takes datagrams, at a port that `is_port` accepts.
    #[inline]
    pub(crate) fn takes_datagrams(&self, is_port: impl Fn(u32) -> bool) -> bool {
        self.shared().service.load(Relaxed) == IBV_QPT_UD && is_port(self.port)
    }

    /// Returns the code of the time after which a message that found no receive may be sent again.
    pub(crate) fn rnr_timer(&self) -> u32 {
        self.shared().posted.min_rnr_timer.load(Relaxed)
    }

    /// Returns its port; `own` is this process's arena.
    pub(crate) fn shared_port<'a>(&'a self, own: &'a View) -> &'a SharedPort {
        self.peer.view(own).port(device_of(self.port))
    }

    /// Whether it is still the queue pair that was found, in any state.
    pub(crate) fn exists(&self) -> bool {
        self.shared().generation.load(Acquire) == self.generation && self.peer.is_alive()
    }
}

/// Bytes of a lane that are mapped before they are needed: a process with thousands of long lanes
/// rarely uses all of them.
const POPULATED_MAX: u64 = 256 << 10;

/// Keys of regions that were accessed lately: their pages are mapped.
#[derive(Default)]
struct Warm([Cell<u32>; 16]);

impl Warm {
    /// Whether a key has been seen lately.
    #[inline]
    fn has(&self, key: u32) -> bool {
        self.0[mr_index(key) as usize % self.0.len()].get() == key
    }

    /// Whether a key has not been seen lately; from now on it has.
    #[inline]
    fn is_new(&self, key: u32) -> bool {
        self.0[mr_index(key) as usize % self.0.len()].replace(key) != key
    }
}

/// Decides when to check that a peer is alive. A peer never has to answer, and its memory outlives
/// it, so an access alone tells nothing. The check is a system call; it is made about once per
/// millisecond, counted in operations.
pub(crate) struct Watch {
    left: Cell<u32>,
    every: Cell<u32>,
    last: Cell<Option<Instant>>,
}

impl Watch {
    /// Operations between checks: so many that even a slow program does not notice the cost, and no
    /// more than a fast one does in a few milliseconds.
    const EVERY: std::ops::RangeInclusive<u32> = 64..=1 << 16;
    const PERIOD: Duration = Duration::from_millis(1);

    /// Whether to check after this operation.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        left == 0 && self.begin_again()
    }

    /// Whether a check is due after the next operation.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.left.get() == 0
    }

    #[cold]
    fn begin_again(&self) -> bool {
        let now = Instant::now();
        let fast = self.last.get().is_some_and(|last| now - last < Self::PERIOD);
        let every = if fast { self.every.get() * 2 } else { self.every.get() / 2 };
        let every = every.clamp(*Self::EVERY.start(), *Self::EVERY.end());
        self.every.set(every);
        self.left.set(every);
        self.last.set(Some(now));
        true
    }
}

impl Default for Watch {
    fn default() -> Self {
        let first = *Self::EVERY.start();
        Self { left: Cell::new(first), every: Cell::new(first), last: Cell::new(None) }
    }
}

/// The table entry of a queue-pair number.
pub(crate) fn index(qp_num: u32) -> u32 {
    qp_num & ((1 << QP_INDEX_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_looks_soon_and_then_seldom() {
        let watch = Watch::default();
        let looks = |operations: u32| (0..operations).filter(|_| watch.is_due()).count();
        assert_eq!(looks(*Watch::EVERY.start()), 0);
        assert_eq!(looks(1), 1, "even a short program detects a dead peer");
        // The distance between checks doubles while they come faster than one per millisecond.
        let start = Instant::now();
        let found = looks(10 << 16);
        let most = 40 + start.elapsed().as_millis() as usize * 2;
        assert!((10..=most).contains(&found), "{found} looks, at most {most}");
    }

    #[test]
    fn a_key_is_new_once() {
        let warm = Warm::default();
        assert!(warm.is_new(5 << 8 | 1) && !warm.is_new(5 << 8 | 1));
        assert!(warm.is_new(5 << 8 | 2), "another region in the same entry of the table");
        assert!(warm.is_new(6 << 8 | 1) && !warm.is_new(5 << 8 | 2));
    }
}
