//! The steps of a rank in one joint call, as data: the messages that it writes and their
//! destinations, the messages that it waits for, and what happens to their bytes.
//!
//! All ranks of a point have the same messages in the same places of their memory: a rank finds the
//! place of its message at another rank in its own schedule.

use std::ops::Range;

/// A call of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Schedule {
    /// The size of the vector that the call computes, in bytes.
    pub(super) vector: usize,
    /// The longest message of each place that this rank writes from.
    pub(super) sources: Vec<usize>,
    /// The longest message of each place that other ranks write to.
    pub(super) arrivals: Vec<usize>,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
}

/// A step of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Copies the data of this rank to the vector, at this byte.
    Give { at: usize },
    /// Copies bytes of the vector to a message, at one of its bytes.
    Pack { message: Message, at: usize, from: Range<usize> },
    /// Writes a message to a place of another rank, or of this one.
    Write { message: Message, to: u32, arrival: usize },
    /// Waits until a message has arrived.
    Await { arrival: usize },
    /// Copies bytes of an arrived message, from one of its bytes on, to the vector.
    Unpack { message: Message, at: usize, to: Range<usize> },
    /// Reduces an arrived message into the vector.
    Reduce { message: Message, to: Range<usize> },
}

/// A message in its place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Message {
    pub(super) place: Place,
    /// The size of the message without its last word.
    pub(super) bytes: usize,
}

/// The places of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// A place that another rank writes to; an arrived message may be forwarded from there.
    Arrival(usize),
    /// A place in which this rank makes a message.
    Source(usize),
}

impl Message {
    /// Returns a message that arrived in a place.
    pub(super) fn arrived(arrival: usize, bytes: usize) -> Self {
        Self { place: Place::Arrival(arrival), bytes }
    }

    /// Returns a message that this rank makes.
    pub(super) fn made(source: usize, bytes: usize) -> Self {
        Self { place: Place::Source(source), bytes }
    }
}

impl Schedule {
    /// Creates a call that computes a vector; the data of this rank begins at a byte of it.
    pub(super) fn of_vector(vector: usize, gives_at: usize) -> Self {
        let steps = if vector > 0 { vec![Step::Give { at: gives_at }] } else { Vec::new() };
        Self { vector, steps, ..Self::default() }
    }

    /// Creates a place for messages of `bytes` bytes at both ranks; returns its number.
    pub(super) fn place(&mut self, bytes: usize) -> usize {
        self.sources.push(bytes);
        self.arrivals.push(bytes);
        self.arrivals.len() - 1
    }

    /// Packs a part of the vector into a message, and writes that to a place of another rank.
    pub(super) fn send(&mut self, place: usize, to: u32, from: Range<usize>) {
        let message = Message::made(place, from.len());
        if !from.is_empty() {
            self.steps.push(Step::Pack { message, at: 0, from });
        }
        self.steps.push(Step::Write { message, to, arrival: place });
    }

    /// Waits for a message in a place, and copies it to a part of the vector.
    pub(super) fn receive(&mut self, place: usize, to: Range<usize>) {
        self.steps.push(Step::Await { arrival: place });
        self.unpack(place, to);
    }

    /// Copies an arrived message to a part of the vector.
    pub(super) fn unpack(&mut self, place: usize, to: Range<usize>) {
        if !to.is_empty() {
            self.steps.push(Step::Unpack { message: Message::arrived(place, to.len()), at: 0, to });
        }
    }

    /// Waits for a message in a place, and reduces it into a part of the vector.
    pub(super) fn reduce(&mut self, place: usize, to: Range<usize>) {
        self.steps.push(Step::Await { arrival: place });
        if !to.is_empty() {
            self.steps.push(Step::Reduce { message: Message::arrived(place, to.len()), to });
        }
    }
}
