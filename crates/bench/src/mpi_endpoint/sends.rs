//! Outstanding sends.

use mpi::{Communicator, Slots};

use super::tag::{GREETING_BYTES, Tag};
use crate::Error;
use crate::endpoint::{FILL, Mark};

/// Sends that take turns, each from separate memory.
pub(super) struct Sends {
    pub(super) slots: Slots,
    /// The slot of messages other than [`Mark::More`], if sends are persistent requests.
    marked: Slots,
    /// The slot of the next send.
    pub(super) next: usize,
    /// The slot of the oldest send that is not known to be complete, and the number of outstanding
    /// sends.
    oldest: usize,
    pub(super) under_way: usize,
    /// Sends that are complete.
    pub(super) done: u64,
    is_persistent: bool,
}

impl Sends {
    pub(super) fn new(
        messages: &Communicator,
        count: usize,
        size: usize,
        persistent: Option<u32>,
    ) -> Result<Self, Error> {
        let mut slots = Slots::new(messages, count, size.max(GREETING_BYTES))?;
        let mut marked = Slots::new(messages, 1, size.max(GREETING_BYTES))?;
        (0..count).for_each(|slot| slots.bytes_mut(slot).fill(FILL));
        marked.bytes_mut(0).fill(FILL);
        if let Some(peer) = persistent {
            for slot in 0..count {
                slots.send_init(slot, size, peer, Tag::Message(Mark::More).number())?;
            }
        }
        let is_persistent = persistent.is_some();
        Ok(Self { slots, marked, next: 0, oldest: 0, under_way: 0, done: 0, is_persistent })
    }

    /// Notes the oldest send if it is complete; returns whether it was.
    #[inline]
    pub(super) fn take_done(&mut self) -> Result<bool, Error> {
        if self.under_way == 0 || self.slots.test(self.oldest)?.is_none() {
            return Ok(false);
        }
        self.oldest = self.after(self.oldest);
        self.under_way -= 1;
        self.done += 1;
        Ok(true)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.under_way == self.slots.count()
    }

    /// Completes all sends, which are complete or about to be.
    #[inline]
    pub(super) fn take_all(&mut self) -> Result<(), Error> {
        self.slots.wait_all(0..self.slots.count())?;
        self.done += self.under_way as u64;
        (self.under_way, self.oldest) = (0, self.next);
        Ok(())
    }

    /// Returns whether the next slot is free.
    #[inline]
    pub(super) fn has_room(&mut self) -> Result<bool, Error> {
        Ok(self.under_way < self.slots.count() || self.take_done()?)
    }

    /// Posts the next send, for which there is room.
    #[inline]
    pub(super) fn post(&mut self, bytes: usize, peer: u32, tag: Tag) -> Result<(), Error> {
        let slot = self.next;
        if !self.is_persistent {
            self.slots.isend(slot, bytes, peer, tag.number())?;
        } else if tag == Tag::Message(Mark::More) {
            self.slots.start(slot)?;
        } else {
            return self.post_marked(bytes, peer, tag);
        }
        self.next = self.after(slot);
        self.under_way += 1;
        Ok(())
    }

    /// Posts up to `most` sends of [`Mark::More`] as long as there are free slots. Returns how
    /// many.
    #[inline]
    pub(super) fn post_some(&mut self, most: u64, bytes: usize, peer: u32) -> Result<u64, Error> {
        let count = self.slots.count();
        let most = (count - self.under_way).min(usize::try_from(most).unwrap_or(usize::MAX));
        let mut posted = 0;
        while posted < most {
            let begin = self.next;
            let end = count.min(begin + most - posted);
            match self.is_persistent {
                true => self.slots.start_all(begin..end)?,
                false => self.slots.isend_each(begin..end, bytes, peer, Tag::Message(Mark::More).number())?,
            }
            posted += end - begin;
            self.next = if end == count { 0 } else { end };
        }
        self.under_way += posted;
        Ok(posted as u64)
    }

    /// Sends the message that ends a series of persistent sends, after all of these.
    #[cold]
    pub(super) fn post_marked(&mut self, bytes: usize, peer: u32, tag: Tag) -> Result<(), Error> {
        if self.marked.is_pending(0) {
            self.marked.wait(0)?;
        }
        let message = self.slots.bytes(self.next)[..bytes].to_vec();
        self.marked.bytes_mut(0)[..bytes].copy_from_slice(&message);
        self.marked.isend(0, bytes, peer, tag.number())?;
        self.marked.wait(0)?;
        self.done += 1;
        Ok(())
    }

    #[inline]
    pub(super) fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.count() { 0 } else { slot + 1 }
    }
}
