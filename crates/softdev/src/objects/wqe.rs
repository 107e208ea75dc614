//! Posted receives as their owner keeps them: where no peer can write, so that what is polled is
//! scattered to where the program wanted it, whatever a peer has made of the arena.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use verbs::abi::ibv_sge;

use crate::memory::arena::View;
use crate::memory::slots::{Post, SlotSge, UNCHECKED};
use crate::transport::local::region::{Access, locate};

/// Posted receives by number, as many as a power of two. Written and read by different threads, but
/// never the same one at a time: the queue's own counts say whose turn it is.
pub(crate) struct Wqes {
    items: Box<[Wqe]>,
    elements: Box<[SlotSge]>,
    max_sge: usize,
}

/// A posted receive.
#[derive(Default)]
struct Wqe {
    wr_id: AtomicU64,
    room: AtomicU32,
    num_sge: AtomicU32,
}

/// What a posted receive says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    /// Bytes that it has room for.
    pub(crate) room: u32,
    pub(crate) num_sge: u32,
    /// Whether all elements were valid when it was posted.
    pub(crate) valid: bool,
}

impl Receive {
    /// Writes a receive of these elements down for the requesters, and says what it is.
    #[inline]
    pub(crate) fn show(
        wr_id: u64,
        elements: &[ibv_sge],
        post: &Post,
        list: &[SlotSge],
        view: &View,
        pd: u32,
    ) -> Self {
        let mut room = 0_u64;
        let mut valid = true;
        for (shown, sge) in list.iter().zip(elements) {
            shown.store(sge);
            room += u64::from(sge.length);
            valid &= locate(view, None, pd, sge, Access::Scatter).is_some();
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let receive = Self { wr_id, room, num_sge: elements.len() as u32, valid };
        post.room.store(room, Relaxed);
        post.num_sge.store(receive.num_sge | if valid { 0 } else { UNCHECKED }, Relaxed);
        receive
    }
}

impl Wqes {
    /// Room for so many receives, a power of two, of so many elements.
    pub(crate) fn new(size: u32, max_sge: u32) -> Self {
        let element =
            || SlotSge { addr: AtomicU64::new(0), length: AtomicU32::new(0), lkey: AtomicU32::new(0) };
        Self {
            items: (0..size).map(|_| Wqe::default()).collect(),
            elements: (0..size as usize * max_sge as usize).map(|_| element()).collect(),
            max_sge: max_sge as usize,
        }
    }

    #[inline]
    fn index(&self, n: u32) -> usize {
        n as usize & (self.items.len() - 1)
    }

    /// Keeps receive `n`, of at most as many elements as there is room for.
    #[inline]
    pub(crate) fn store(&self, n: u32, receive: Receive, elements: &[ibv_sge]) {
        let index = self.index(n);
        let item = &self.items[index];
        item.wr_id.store(receive.wr_id, Relaxed);
        item.room.store(receive.room, Relaxed);
        item.num_sge.store(receive.num_sge | if receive.valid { 0 } else { UNCHECKED }, Relaxed);
        for (to, from) in self.elements[index * self.max_sge..].iter().zip(elements) {
            to.store(from);
        }
    }

    #[inline]
    pub(crate) fn load(&self, n: u32) -> Receive {
        let item = &self.items[self.index(n)];
        let num_sge = item.num_sge.load(Relaxed);
        Receive {
            wr_id: item.wr_id.load(Relaxed),
            room: item.room.load(Relaxed),
            num_sge: num_sge & !UNCHECKED,
            valid: num_sge & UNCHECKED == 0,
        }
    }

    /// The elements of receive `n`, which has so many.
    #[inline]
    pub(crate) fn elements(&self, n: u32, num_sge: u32) -> impl Iterator<Item = ibv_sge> {
        self.elements[self.index(n) * self.max_sge..].iter().take(num_sge as usize).map(SlotSge::load)
    }
}
