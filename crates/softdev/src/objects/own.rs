//! Completions of a process's own work that wait to be polled: a ring, so that a push and a pop are
//! a few moves.

use std::mem::MaybeUninit;

use verbs::abi::{ibv_wc_opcode, ibv_wc_status};

use crate::objects::queue_pair::Qp;

/// A completion of a send of this process, with only what a poll needs to fill in the rest.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) wr_id: u64,
    pub(crate) qp: *const Qp,
    pub(crate) status: ibv_wc_status,
    pub(crate) opcode: ibv_wc_opcode,
    pub(crate) bytes: u32,
    /// The send-queue position up to which work requests are retired when this is polled.
    pub(crate) retires: u32,
    /// When it was made; 0 in a queue without stamps.
    pub(crate) stamp: u64,
}

/// The completions in their order.
pub(crate) struct Own {
    /// A power of two of entries; those from `head` to `tail` are in use. An entry that was never
    /// used costs no memory.
    items: Box<[MaybeUninit<Entry>]>,
    capacity: usize,
    head: usize,
    tail: usize,
}

impl Own {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { items: Box::new_uninit_slice(capacity.next_power_of_two()), capacity, head: 0, tail: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Adds a completion; false if there is no room. Always inline, as
    /// [`Cq::push`](crate::objects::completion::Cq::push) is.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        if self.is_full() {
            return false;
        }
        let mask = self.items.len() - 1;
        self.items[self.tail & mask].write(entry);
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Takes the first completion. Read it member by member, as it was written: see `push`.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&Entry> {
        if self.head == self.tail {
            return None;
        }
        let index = self.head & (self.items.len() - 1);
        self.head = self.head.wrapping_add(1);
        // SAFETY: those from `head` to `tail` were written by `push`.
        Some(unsafe { self.items[index].assume_init_ref() })
    }

    /// Changes the capacity, which must not be below the number of completions.
    pub(crate) fn resize(&mut self, capacity: usize) {
        let mut resized = Self::new(capacity);
        while let Some(entry) = self.pop() {
            resized.push(*entry);
        }
        *self = resized;
    }

    /// Keeps only completions for which `keeps` is true.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Entry) -> bool) {
        for _ in 0..self.len() {
            let Some(entry) = self.pop().copied() else { return };
            if keeps(&entry) {
                self.push(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(wr_id: u64) -> Entry {
        Entry { wr_id, qp: std::ptr::null(), status: 0, opcode: 0, bytes: 0, retires: 0, stamp: 0 }
    }

    #[test]
    fn completions_keep_their_order_and_their_number_its_limit() {
        let mut own = Own::new(5);
        for round in 0..7 {
            for i in 0..5 {
                assert!(own.push(entry(round * 10 + i)));
            }
            assert!(!own.push(entry(99)));
            own.retain(|entry| entry.wr_id % 2 == 0);
            let left: Vec<u64> =
                std::iter::from_fn(|| own.pop().copied()).map(|entry| entry.wr_id % 10).collect();
            assert_eq!((left, own.len()), (vec![0, 2, 4], 0));
        }
        for i in 0..5 {
            own.push(entry(i));
        }
        own.resize(6);
        assert!(own.push(entry(5)) && !own.push(entry(6)));
        for i in 0..6 {
            assert_eq!(own.pop().map(|entry| entry.wr_id), Some(i));
        }
    }
}
