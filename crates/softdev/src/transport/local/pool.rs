//! The shared part of a shared receive queue, and how a requester takes a receive from it.
//!
//! ```text
//! pool:  SharedPool | order: a word for each receive in the order of posting | posts, by index
//! ```
//!
//! Receives are taken as `order` describes, and the message names the one that it took. The owner
//! accepts the index of any posted receive. It does not check the word: requesters write it, and a
//! hostile one could forge it as well.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::memory::arena::{Shared, View};
use crate::memory::layout::Line;
use crate::memory::slots::{Post, SlotSge};
use crate::sys::limits::{MAX_SGE, MAX_WR};
use crate::transport::local::lane::PostedReceive;
use crate::transport::local::order::{Order, Refusal, Ticket};

/// The start of a pool.
#[repr(C, align(64))]
pub(crate) struct SharedPool {
    /// The protection domain of the queue, whose memory its receives name.
    pub(crate) pd: AtomicU32,
    /// Fewer receives than this raise an event, once; 0 for none.
    pub(crate) limit: AtomicU32,
    /// The number of the queue in its process, which no other queue has had.
    pub(crate) number: AtomicU32,
    /// For requesters: the next receive to take.
    pub(crate) next: Line,
    /// By the owner: the next receive to post.
    pub(crate) tail: Line,
}

// SAFETY: it consists of atomics only.
unsafe impl Shared for SharedPool {}

const _: () = assert!(size_of::<SharedPool>() == 192);

/// The place of a pool in an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) offset: u64,
    /// The number of receives, a power of two.
    pub(crate) size: u32,
    /// The size of a post in bytes.
    pub(crate) stride: u32,
}

impl Area {
    fn order_bytes(self) -> u64 {
        (u64::from(self.size) * 8).next_multiple_of(64)
    }

    pub(crate) fn bytes(self) -> u64 {
        size_of::<SharedPool>() as u64 + self.order_bytes() + u64::from(self.size) * u64::from(self.stride)
    }

    /// Returns the pool if it can be one of `view`: a peer's values are checked once.
    pub(crate) fn pool(self, view: &View) -> Option<Pool> {
        let is_sane = self.size.is_power_of_two()
            && self.size <= MAX_WR.next_power_of_two()
            && (64..=64 + (MAX_SGE * size_of::<SlotSge>()) as u32).contains(&self.stride)
            && self.stride.is_multiple_of(64)
            && self.offset.is_multiple_of(64);
        let base = view.at(self.offset, self.bytes()).filter(|_| is_sane)?;
        // SAFETY: the parts follow each other in the bytes that were just found.
        let (order, posts) = unsafe {
            let order = base.add(size_of::<SharedPool>());
            (order, order.add(self.order_bytes() as usize))
        };
        Some(Pool {
            shared: base.cast(),
            order: order.cast(),
            posts,
            mask: self.size - 1,
            stride: self.stride,
        })
    }
}

/// A pool in a mapping that its user holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    shared: NonNull<SharedPool>,
    order: NonNull<AtomicU64>,
    posts: NonNull<u8>,
    mask: u32,
    stride: u32,
}

impl Order for Pool {
    type Word = AtomicU64;
    type Mark = AtomicU32;

    fn size(&self) -> u32 {
        self.mask + 1
    }

    fn word(&self, k: u32) -> &AtomicU64 {
        // SAFETY: `Area::pool` has found it in a mapping that is held; there are as many words as
        // the mask says.
        unsafe { self.order.add((k & self.mask) as usize).as_ref() }
    }

    fn mark(&self) -> &AtomicU32 {
        &self.shared().next.value
    }
}

impl Pool {
    pub(crate) fn shared(&self) -> &SharedPool {
        // SAFETY: `Area::pool` has found it in a mapping that is held.
        unsafe { self.shared.as_ref() }
    }

    /// Returns the post of an index, and its elements: there may be fewer than the post says.
    pub(crate) fn post(&self, index: u32) -> (&Post, &[SlotSge]) {
        let at = (index & self.mask) as usize * self.stride as usize;
        let elements = (self.stride as usize - size_of::<Post>()) / size_of::<SlotSge>();
        // SAFETY: as above; each post has room for these elements.
        unsafe {
            let post = self.posts.add(at).cast::<Post>();
            (post.as_ref(), std::slice::from_raw_parts(post.add(1).cast().as_ptr(), elements))
        }
    }

    /// Returns the receive that is posted under an index.
    pub(crate) fn receive(&self, index: u32) -> PostedReceive<'_> {
        let (post, elements) = self.post(index);
        PostedReceive::read(post, elements, self.shared().pd.load(Relaxed))
    }

    /// Takes and passes the next receive for the process of a block, unless the receive is known to
    /// have no room for `bytes` bytes.
    pub(crate) fn take(&self, block: u32, bytes: u64) -> Result<Ticket, Refusal> {
        let may_hold =
            |ticket: Ticket| bytes <= ticket.room.into() || self.receive(ticket.index).may_hold(bytes);
        self.take_where(block, may_hold).inspect(|ticket| self.pass(*ticket))
    }

    /// Whether taking this receive has left fewer than the limit, which is then disarmed.
    pub(crate) fn falls_below_limit(&self, ticket: Ticket) -> bool {
        let shared = self.shared();
        let limit = shared.limit.load(Relaxed);
        if limit == 0 {
            return false;
        }
        let left = shared.tail.value.load(Acquire).wrapping_sub(ticket.k).wrapping_sub(1);
        left < limit && shared.limit.compare_exchange(limit, 0, SeqCst, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;

    /// Makes a pool of eight receives; one is posted for each of `rooms`.
    fn pool(arena: &Arena, rooms: &[u32]) -> Pool {
        let mut area = Area { offset: 0, size: 8, stride: 64 };
        area.offset = arena.allocate(area.bytes()).unwrap();
        let pool = area.pool(&arena.view).unwrap();
        for (k, room) in (0..).zip(rooms) {
            pool.post(k).0.room.store(*room, Relaxed);
            pool.show(Ticket { k, index: k, room: if k == 0 { *room as u16 } else { 0 } });
        }
        pool.shared().tail.value.store(rooms.len() as u32, Relaxed);
        pool
    }

    #[test]
    fn receives_are_taken_in_turn_and_one_that_is_too_small_stays() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let pool = pool(&arena, &[10, 5, 10]);
        let take = |bytes| pool.take(7, bytes).map(|ticket| ticket.index);
        assert_eq!(
            [take(10), take(10), take(5), take(6), take(6)],
            [Ok(0), Err(Refusal::Short), Ok(1), Ok(2), Err(Refusal::Empty)]
        );
    }

    #[test]
    fn what_is_put_back_is_taken_next() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let pool = pool(&arena, &[1, 1, 1]);
        let take = || pool.take(7, 0);
        let first = take().unwrap();
        assert_eq!(take().unwrap().index, 1);
        pool.put_back(7, first);
        assert_eq!(
            [take(), take(), take()].map(|taken| taken.map(|ticket| ticket.index).ok()),
            [Some(0), Some(2), None]
        );
    }

    /// A requester that was stopped between its load of the mark and its store may set the mark
    /// back by laps: the others find the posted receives all the same, and correct the mark.
    #[test]
    fn a_mark_that_lags_by_laps_hides_nothing() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let pool = pool(&arena, &[1; 8]);
        for k in 8..28 {
            assert_eq!(pool.take(7, 1).unwrap().k, k - 8);
            pool.show(Ticket { k, index: k % 8, room: 1 });
        }
        for lag in [1, 7, 8, 9, 20] {
            let next = pool.mark().load(Relaxed);
            pool.mark().store(next.wrapping_sub(lag), Relaxed);
            assert!(!pool.is_dry());
            assert_eq!(pool.take(7, 1).unwrap().k, next, "behind by {lag}");
            assert_eq!(pool.mark().load(Relaxed), next + 1);
        }
        while pool.take(7, 1).is_ok() {}
        assert_eq!(pool.mark().load(Relaxed), 28);
    }

    #[test]
    fn a_limit_fires_once() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let pool = pool(&arena, &[1, 1, 1, 1]);
        pool.shared().limit.store(2, Relaxed);
        let fired = [(); 4].map(|()| pool.falls_below_limit(pool.take(7, 0).unwrap()));
        assert_eq!(fired, [false, false, true, false]);
    }

    #[test]
    fn several_requesters_take_each_receive_once() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let pool = pool(&arena, &[1; 8]);
        let taken = std::sync::Mutex::new(Vec::new());
        // Like threads of this process: the pool is in memory that they share.
        let at = pool.shared.as_ptr() as usize;
        let offset = arena.view.offset_of(at as u64, 1).unwrap();
        std::thread::scope(|scope| {
            for block in 1..4 {
                let taken = &taken;
                let arena = &arena;
                scope.spawn(move || {
                    let pool = Area { offset, size: 8, stride: 64 }.pool(&arena.view).unwrap();
                    while let Ok(ticket) = pool.take(block, 0) {
                        taken.lock().unwrap().push(ticket.index);
                    }
                });
            }
        });
        let mut taken = taken.into_inner().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (0..8).collect::<Vec<_>>());
    }
}
