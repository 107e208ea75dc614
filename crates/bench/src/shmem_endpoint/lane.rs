//! Messages between two ranks in both directions, as cells of two rings.

use super::bell::{Bell, MESSAGE, ROOM};
use super::ring::{Emptier, Filler, Shape};
use crate::endpoint::Mark;
use crate::endpoint::header::Header;

/// A peer of this rank.
pub(super) struct Lane {
    /// The peer's number.
    pub(super) rank: u32,
    out: Filler,
    into: Emptier,
    /// The peer's bell, if the peer may sleep.
    bell: Option<Bell>,
    shape: Shape,
    size: usize,
    /// The bytes of the last posted message that are not in the ring yet.
    rest: usize,
    /// The bytes of the arriving message that have arrived, and its header.
    come: usize,
    header: Option<Header>,
    /// The messages that were posted: also the number of the next one.
    posted: u64,
    /// The cells of greetings, which count as no message.
    greetings: u64,
}

impl Lane {
    pub(super) fn new(
        rank: u32,
        out: Filler,
        into: Emptier,
        bell: Option<Bell>,
        shape: Shape,
        size: usize,
    ) -> Self {
        Self { rank, out, into, bell, shape, size, rest: 0, come: 0, header: None, posted: 0, greetings: 0 }
    }

    /// Posts a message; returns `false` if the previous one is not completely in the ring, or no
    /// cell is empty.
    #[inline]
    pub(super) fn post(&mut self, mark: Mark, message: &[u8]) -> bool {
        if !self.finish(message) || !self.fill(Header::of(mark, self.posted as u32), message) {
            return false;
        }
        self.posted += 1;
        self.rest = self.size.saturating_sub(self.shape.payload);
        self.finish(message);
        true
    }

    /// Puts more of the last posted message into the ring; returns whether it is complete.
    #[inline]
    pub(super) fn finish(&mut self, message: &[u8]) -> bool {
        while self.rest > 0 {
            if !self.fill(Header::of(Mark::More, 0), &message[self.size - self.rest..]) {
                return false;
            }
            self.rest = self.rest.saturating_sub(self.shape.payload);
        }
        true
    }

    /// Fills a cell, if one is empty.
    #[inline]
    fn fill(&mut self, header: Header, part: &[u8]) -> bool {
        let is_filled = self.out.fill(header.word(), part);
        if let Some(bell) = self.bell.as_ref().filter(|_| is_filled) {
            bell.ring(MESSAGE);
        }
        is_filled
    }

    /// Empties a cell. Wakes a sender that sleeps for room only with every half of the ring, or
    /// when the ring is empty: if every cell did, two ranks that stream would sleep more than they
    /// copy.
    #[inline]
    fn empty(&mut self, part: &mut [u8]) {
        self.into.empty(part);
        let Some(bell) = &self.bell else { return };
        if self.into.emptied.is_multiple_of(self.shape.cells as u64 / 2) || self.into.word().is_none() {
            bell.ring(ROOM);
        }
    }

    /// Posts a greeting, which has no payload.
    pub(super) fn greet(&mut self, number: u32, message: &[u8]) -> bool {
        let is_posted = self.finish(message) && self.fill(Header::greeting(number), &[]);
        self.greetings += u64::from(is_posted);
        is_posted
    }

    /// Takes more of the arriving message; returns its header once the message is complete in
    /// `message`.
    #[inline]
    pub(super) fn take(&mut self, message: &mut [u8]) -> Option<Header> {
        loop {
            let word = self.into.word()?;
            let header = *self.header.get_or_insert_with(|| Header::of_word(word));
            if header.is_greeting {
                self.empty(&mut []);
                self.header = None;
                return Some(header);
            }
            self.empty(&mut message[self.come..]);
            self.come += self.shape.payload;
            if self.come >= self.size {
                (self.come, self.header) = (0, None);
                return Some(header);
            }
        }
    }

    /// Returns whether a cell is filled.
    pub(super) fn has_some(&self) -> bool {
        self.into.word().is_some()
    }

    /// Returns whether a cell is empty.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.out.has_room()
    }

    /// Returns whether a message is only partly in the ring.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.rest > 0
    }

    /// Returns how many messages are or were completely in the ring.
    pub(super) fn sent(&self) -> u64 {
        self.posted - u64::from(self.has_rest())
    }

    /// Returns how many messages the other rank has taken completely. The emptied cells of
    /// greetings are not counted separately: no greeting is under way when this is called.
    pub(super) fn taken(&self) -> u64 {
        let each = self.size.div_ceil(self.shape.payload).max(1) as u64;
        self.out.emptied().saturating_sub(self.greetings) / each
    }

    /// Returns the number of cells that this rank filled or emptied, or the other emptied. It grows
    /// with every event.
    pub(super) fn progress(&self) -> u64 {
        self.out.filled + self.out.emptied() + self.into.emptied
    }
}
