//! Messages that are written word by word where they are sent from, and read where they have
//! arrived: only the device copies them.
//!
//! An inline message requests no completion, except for every Nth, which is then not inline. A
//! message that is not inline always requests a completion, because its position is free only when
//! it is known to be sent. The infiniband node of VILLASnode works the same way (Potter 2018).

use verbs::abi::ibv_sge;

use super::buffers::Buffers;
use super::lane::Lane;
use super::numbering;
use crate::Error;
use crate::endpoint::{Arrival, Mark, words};
use crate::topology::PartSpec;

/// The state of the next message of a rank.
pub(super) struct Samples {
    /// Whether messages are inline, except those that request a completion.
    is_inline: bool,
    interval: u64,
    /// The element of the first position.
    element: ibv_sge,
    /// The position of the next message that is not inline, and for each position how many requests
    /// must be complete before it is free.
    place: usize,
    free_after: Box<[u64]>,
    /// How many receives were taken before the last one.
    taken: u64,
}

impl Samples {
    pub(super) fn new(spec: &PartSpec, buffers: &Buffers) -> Result<Self, Error> {
        Ok(Self {
            is_inline: spec.message.inline,
            interval: spec.message.signal_interval.into(),
            element: buffers.elements(spec, 0)?[0],
            place: 0,
            free_after: vec![0; buffers.slots.count].into(),
            taken: u64::MAX,
        })
    }

    /// Returns whether the next message is gathered from memory and requests a completion.
    #[inline]
    fn is_gathered(&self, lane: &Lane) -> bool {
        !self.is_inline || lane.unsignaled + 1 >= self.interval
    }

    /// Returns whether the position of the next message is free.
    #[inline]
    pub(super) fn is_free(&self, lane: &Lane) -> bool {
        !self.is_gathered(lane) || self.free_after[self.place] <= lane.completed
    }

    /// Writes a word of the next message.
    #[inline]
    pub(super) fn put(&self, at: (&mut Lane, &Buffers), word: usize, value: u64) -> Result<(), Error> {
        let (lane, buffers) = at;
        if !self.is_gathered(lane) {
            words::put(lane.payload(), word, value);
            return Ok(());
        }
        // Words are little-endian, as in messages of other endpoints.
        let value = u64::from_ne_bytes(value.to_le_bytes());
        Ok(buffers.send.store(self.place * buffers.slots.stride + 8 * word, value)?)
    }

    /// Posts the next message.
    #[inline]
    pub(super) fn post(&mut self, lane: &mut Lane, buffers: &Buffers) -> Result<(), Error> {
        if !self.is_gathered(lane) {
            return lane.post_inline();
        }
        let offset = (self.place * buffers.slots.stride) as u64;
        self.free_after[self.place] =
            lane.post_gathered_from(ibv_sge { addr: self.element.addr + offset, ..self.element })?;
        self.place += 1;
        if self.place == self.free_after.len() {
            self.place = 0;
        }
        Ok(())
    }

    /// Returns the arrival that the immediate data of the next receive describes: only a greeting
    /// has immediate data.
    #[inline]
    pub(super) fn arrived(&mut self, immediate: Option<u32>) -> Arrival {
        self.taken = self.taken.wrapping_add(1);
        let none = Arrival { mark: Mark::More, number: 0, lane: 0, is_greeting: false };
        immediate.map_or(none, numbering::told)
    }

    /// Returns a word of the message that was taken last.
    #[inline]
    pub(super) fn get(&self, buffers: &Buffers, word: usize) -> Result<u64, Error> {
        Ok(u64::from_ne_bytes(buffers.received_word(self.taken, word)?.to_le_bytes()))
    }
}
