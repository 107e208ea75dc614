//! Posted receives as their owner keeps them, where no peer can write. A message is therefore
//! always scattered to the memory that the program named, whatever a peer has done to the arena.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use verbs::abi::ibv_sge;

use crate::memory::arena::View;
use crate::memory::slots::{Post, SlotSge, UNCHECKED};
use crate::transport::local::region::{Access, locate};

/// Posted receives by number; their count is a power of two. Different threads write and read them,
/// but never one receive at a time: the queue's own counts say whose turn it is.
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

/// The content of a posted receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    /// The bytes that fit.
    pub(crate) room: u32,
    pub(crate) num_sge: u32,
    /// Whether all elements were valid when it was posted.
    pub(crate) valid: bool,
}

impl Receive {
    /// Writes a receive with these elements for the requesters, and returns its content.
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
    /// Makes room for `size` receives, a power of two, of `max_sge` elements.
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

    /// Stores receive `n`, which has at most `max_sge` elements.
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

    /// Returns the elements of receive `n`, which has `num_sge`.
    #[inline]
    pub(crate) fn elements(&self, n: u32, num_sge: u32) -> impl Iterator<Item = ibv_sge> {
        self.elements[self.index(n) * self.max_sge..].iter().take(num_sge as usize).map(SlotSge::load)
    }
}
