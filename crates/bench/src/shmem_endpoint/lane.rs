//! Messages between two ranks, both ways, as cells of two rings.

use super::bell::{Bell, MESSAGE, ROOM};
use super::ring::{Emptier, Filler, Shape};
use crate::endpoint::Mark;
use crate::endpoint::header::Header;

/// A rank that this one exchanges messages with.
pub(super) struct Lane {
    /// Its number.
    pub(super) rank: u32,
    out: Filler,
    into: Emptier,
    /// The other rank's, where that may sleep.
    bell: Option<Bell>,
    shape: Shape,
    size: usize,
    /// Bytes of the message that was posted last which are not in the ring.
    rest: usize,
    /// Bytes of the message that comes which have come, and what it says.
    come: usize,
    header: Option<Header>,
    /// Messages that were posted, which is the number of the next.
    posted: u64,
    /// Cells of greetings, which count as none.
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

    /// Posts a message; not if the one before is not in the ring yet, or nothing of it would be.
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

    /// Puts more of the message that was posted last into the ring; whether it is all there.
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

    /// Empties a cell, and wakes who sleeps for room: with every second half of the ring, or all
    /// that there was. For each cell, two ranks that flood would sleep more than they copy.
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

    /// Takes more of the message that comes; gives what it says once it is there, in `message`.
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

    /// Whether something has come.
    pub(super) fn has_some(&self) -> bool {
        self.into.word().is_some()
    }

    /// Whether something more can be put into the ring.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.out.has_room()
    }

    /// Whether a message is in the ring in part only.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.rest > 0
    }

    /// Messages that are in the ring, or were.
    pub(super) fn sent(&self) -> u64 {
        self.posted - u64::from(self.has_rest())
    }

    /// Messages that the other rank has taken whole. What it took of greetings is not known apart:
    /// none are under way while that is asked for.
    pub(super) fn taken(&self) -> u64 {
        let each = self.size.div_ceil(self.shape.payload).max(1) as u64;
        self.out.emptied().saturating_sub(self.greetings) / each
    }

    /// Cells that were filled or emptied by this rank, or emptied by the other: it grows with
    /// whatever happens.
    pub(super) fn progress(&self) -> u64 {
        self.out.filled + self.out.emptied() + self.into.emptied
    }
}
