//! Messages that are written word by word where they are sent from, and read where they have
//! arrived: nothing is copied but what the device copies.
//!
//! A message that is inline asks for no completion, but every so many-th, which is not inline then;
//! one that is not inline always asks for one, since its place is the next one's only when it is
//! known to be sent. So the infiniband node of VILLASnode has it (V55 to V57 of the evaluations).

use verbs::abi::ibv_sge;

use super::buffers::Buffers;
use super::lane::Lane;
use super::numbering;
use crate::Error;
use crate::endpoint::{Arrival, Mark, words};
use crate::topology::PartSpec;

/// What the next message of an end is, and where it stands.
pub(super) struct Samples {
    /// Whether messages are inline, but those that ask for a completion.
    is_inline: bool,
    interval: u64,
    /// The element of the first place.
    element: ibv_sge,
    /// The place of the next message that is not inline, and of each how many requests must be
    /// complete for it to be free.
    place: usize,
    free_after: Box<[u64]>,
    /// Receives that were taken before the one that was taken last.
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

    /// Whether the next message is gathered from memory and asks for a completion.
    #[inline]
    fn is_gathered(&self, lane: &Lane) -> bool {
        !self.is_inline || lane.unsignaled + 1 >= self.interval
    }

    /// Whether the place of the next message is free.
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
        // As in a message that is read elsewhere: low byte first.
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

    /// What the immediate data of the next receive says: only a greeting has some.
    #[inline]
    pub(super) fn arrived(&mut self, immediate: Option<u32>) -> Arrival {
        self.taken = self.taken.wrapping_add(1);
        let none = Arrival { mark: Mark::More, number: 0, lane: 0, is_greeting: false };
        immediate.map_or(none, numbering::told)
    }

    /// A word of the message that was taken last.
    #[inline]
    pub(super) fn get(&self, buffers: &Buffers, word: usize) -> Result<u64, Error> {
        Ok(u64::from_ne_bytes(buffers.received_word(self.taken, word)?.to_le_bytes()))
    }
}
