//! What a rank does in one call that all ranks make together, as data: which messages it writes to
//! whom, which it waits for, and what becomes of their bytes.
//!
//! All ranks of a point have the same messages at the same places of their memory: a rank knows
//! where its message goes at another rank from its own schedule.

use std::ops::Range;

/// A call of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Schedule {
    /// Bytes of the vector that the call computes.
    pub(super) vector: usize,
    /// The longest message of each place from which this rank writes.
    pub(super) sources: Vec<usize>,
    /// The longest message of each place that other ranks write to.
    pub(super) arrivals: Vec<usize>,
    /// What is done, in order.
    pub(super) steps: Vec<Step>,
}

/// A step of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// What this rank gives stands in the vector from this byte on.
    Give { at: usize },
    /// Bytes of the vector stand in a message, from one of its bytes on.
    Pack { message: Message, at: usize, from: Range<usize> },
    /// A message is written to a place of another rank, or of this one.
    Write { message: Message, to: u32, arrival: usize },
    /// Nothing more is done before a message has come.
    Await { arrival: usize },
    /// Bytes of a message that has come stand in the vector, from one of the message's bytes on.
    Unpack { message: Message, at: usize, to: Range<usize> },
    /// A message that has come is reduced into the vector.
    Reduce { message: Message, to: Range<usize> },
}

/// A message at its place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Message {
    pub(super) place: Place,
    /// Without the word that ends it.
    pub(super) bytes: usize,
}

/// Where messages stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Where another rank writes: a message that has come may be written on from there.
    Arrival(usize),
    /// Where this rank makes a message.
    Source(usize),
}

impl Message {
    /// A message that came to a place.
    pub(super) fn arrived(arrival: usize, bytes: usize) -> Self {
        Self { place: Place::Arrival(arrival), bytes }
    }

    /// A message that this rank makes.
    pub(super) fn made(source: usize, bytes: usize) -> Self {
        Self { place: Place::Source(source), bytes }
    }
}

impl Schedule {
    /// A call that computes a vector, of which this rank gives what begins at a byte.
    pub(super) fn of_vector(vector: usize, gives_at: usize) -> Self {
        let steps = if vector > 0 { vec![Step::Give { at: gives_at }] } else { Vec::new() };
        Self { vector, steps, ..Self::default() }
    }

    /// Makes a place for messages of so many bytes, at both ends; gives its number.
    pub(super) fn place(&mut self, bytes: usize) -> usize {
        self.sources.push(bytes);
        self.arrivals.push(bytes);
        self.arrivals.len() - 1
    }

    /// A part of the vector becomes a message of its own, and goes to a place at another rank.
    pub(super) fn send(&mut self, place: usize, to: u32, from: Range<usize>) {
        let message = Message::made(place, from.len());
        if !from.is_empty() {
            self.steps.push(Step::Pack { message, at: 0, from });
        }
        self.steps.push(Step::Write { message, to, arrival: place });
    }

    /// A message comes to a place, and is a part of the vector.
    pub(super) fn receive(&mut self, place: usize, to: Range<usize>) {
        self.steps.push(Step::Await { arrival: place });
        self.unpack(place, to);
    }

    /// A message that came is a part of the vector.
    pub(super) fn unpack(&mut self, place: usize, to: Range<usize>) {
        if !to.is_empty() {
            self.steps.push(Step::Unpack { message: Message::arrived(place, to.len()), at: 0, to });
        }
    }

    /// A message comes to a place, and is reduced into a part of the vector.
    pub(super) fn reduce(&mut self, place: usize, to: Range<usize>) {
        self.steps.push(Step::Await { arrival: place });
        if !to.is_empty() {
            self.steps.push(Step::Reduce { message: Message::arrived(place, to.len()), to });
        }
    }
}
