//! The memory of joint operations, and the messages between the ranks' places.
//!
//! # Invariants
//!
//! * A message is one RDMA Write: its bytes, followed by a word with the number of the call. The
//!   receiver polls the word: on every device that writes in ascending order, the bytes before it
//!   have then arrived as well ([`verbs::MemoryRegion::peek`]).
//! * Calls alternate between two sets of places, so that no message is overwritten before it was
//!   taken. A rank that begins call g + 2 has finished call g + 1, for which it has waited for
//!   messages of g + 1 from every rank that it writes to, directly or through others. Those ranks
//!   had begun g + 1, and so had finished g: they had taken all messages of g, and the places of g
//!   are free. The messages that this rank wrote in g have arrived for the same reason, so their
//!   bytes may change although no completion was requested.

use verbs::abi::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, SendRequest};

use super::schedule::{Message, Place, Schedule, Step};
use crate::Error;
use crate::endpoint::collectives::{Element, Reduction};
use crate::verbs_endpoint::address::Target;

/// The size of the word that ends a message.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();
/// The alignment of places, which share no cache line.
const LINE: usize = 64;
/// The number of sets of places.
const SETS: usize = 2;
/// The most bytes of a rank's places: all of them are touched and registered, by every rank of a
/// host.
const MEMORY_MOST: usize = 1 << 30;

/// An action of a call, with memory offsets for the places.
pub(crate) enum Act {
    /// Copies the data of this rank to the vector, at this byte.
    Give { at: usize },
    /// Copies bytes of the vector to a message.
    Pack { to: usize, from: usize, bytes: usize },
    /// Writes a message to another rank.
    Write(Box<Write>),
    /// Copies a message of this rank to one of its own places.
    Keep { from: usize, to: usize, bytes: usize },
    /// Waits until the word becomes the number of the call.
    Await { word: usize },
    /// Copies bytes of a message to the vector.
    Unpack { from: usize, to: usize, bytes: usize },
    /// Reduces a message into the vector.
    Reduce { from: usize, to: usize, bytes: usize },
}

/// A message to another rank.
pub(crate) struct Write {
    /// The queue pair to that rank.
    pub(crate) lane: usize,
    pub(crate) request: SendRequest,
    /// The offset of the message, if it is inline.
    inline_from: Option<usize>,
    /// The word of the message; `None` if the message arrived with it.
    word: Option<usize>,
}

impl Write {
    /// Ends the message with the number of a call.
    #[inline]
    pub(crate) fn number(&mut self, region: &MemoryRegion, number: u64) -> Result<(), Error> {
        if let Some(word) = self.word {
            region.store(word, number)?;
        }
        if let Some(from) = self.inline_from {
            region.read(from, self.request.payload_mut())?;
        }
        Ok(())
    }
}

/// The calls of a rank that is connected to the others.
pub(crate) struct Exchange {
    pub(crate) region: MemoryRegion,
    /// The actions for each set of places.
    pub(crate) acts: [Vec<Act>; SETS],
    /// The data that this rank sends.
    pub(crate) given: Vec<u8>,
    /// The result that the call computes.
    pub(crate) vector: Vec<u8>,
    /// The message being reduced.
    pub(crate) scratch: Vec<u8>,
    pub(crate) reduced_by: (Element, Reduction),
    /// The number of the last call.
    pub(crate) number: u64,
    /// The messages that were written to other ranks.
    pub(crate) written: u64,
    layout: Layout,
}

/// The memory of a rank that is not connected to the others yet.
pub(crate) struct Unlinked {
    region: MemoryRegion,
    schedule: Schedule,
    layout: Layout,
}

/// The offsets of the words of messages in the first set of places.
struct Layout {
    sources: Vec<usize>,
    arrivals: Vec<usize>,
    /// The longest message that may arrive in each of `arrivals`.
    longest: Vec<usize>,
    /// The size of a set in bytes.
    set: usize,
}

impl Layout {
    fn new(schedule: &Schedule) -> Self {
        let mut set = 0;
        let mut place = |bytes: &usize| {
            set += (bytes + WORD_BYTES).next_multiple_of(LINE);
            set - WORD_BYTES
        };
        let sources = schedule.sources.iter().map(&mut place).collect();
        let arrivals = schedule.arrivals.iter().map(place).collect();
        Self { sources, arrivals, longest: schedule.arrivals.clone(), set }
    }

    /// Returns the offset of the word of a message: messages end where their places end.
    fn word(&self, set: usize, place: Place) -> usize {
        let first = match place {
            Place::Arrival(arrival) => self.arrivals[arrival],
            Place::Source(source) => self.sources[source],
        };
        set * self.set + first
    }

    fn begin(&self, set: usize, message: Message) -> usize {
        self.word(set, message.place) - message.bytes
    }
}

/// Refuses messages that are too long for the device: they may contain the blocks of several ranks.
fn fits(longest: usize, message_most: u64) -> Result<(), Error> {
    let bytes = longest.saturating_add(WORD_BYTES);
    if bytes as u64 > message_most {
        let reason = format!(
            "the longest message of a call has {bytes} bytes with its last word, and the device sends at most \
             {message_most}: use a smaller size"
        );
        return Err(Error::Impossible { reason });
    }
    Ok(())
}

/// Returns the size of all places of a rank in bytes.
///
/// # Errors
/// [`Error::Impossible`] if it is too large.
fn memory(set: usize) -> Result<usize, Error> {
    let bytes = set.saturating_mul(SETS).max(WORD_BYTES);
    if bytes > MEMORY_MOST {
        let reason = format!(
            "the messages of a call need {} MiB at each rank, and the limit is {}: use a smaller size, or fewer ranks",
            bytes.div_ceil(1 << 20),
            MEMORY_MOST >> 20
        );
        return Err(Error::Impossible { reason });
    }
    Ok(bytes)
}

impl Unlinked {
    /// Creates the memory of a rank's calls, for a device whose messages have at most
    /// `message_most` bytes.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        kind: MemoryKind,
        schedule: Schedule,
        message_most: u64,
    ) -> Result<Self, Error> {
        let layout = Layout::new(&schedule);
        fits(layout.longest.iter().copied().max().unwrap_or(0), message_most)?;
        let bytes = memory(layout.set)?;
        let mut buffer = domain.buffer(kind, bytes)?;
        buffer.touch();
        let region = domain.register(buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)?;
        Ok(Self { region, schedule, layout })
    }

    /// Returns the memory that other ranks write to.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        Ok(Target::from(self.region.remote(0)?))
    }

    /// Connects the calls to the other ranks: `other` returns the queue pair and the memory of
    /// each. Messages of up to `inline_bytes` are inline.
    pub(crate) fn link(
        self,
        rank: u32,
        inline_bytes: usize,
        other: impl Fn(u32) -> Result<(usize, Target), Error>,
    ) -> Result<Exchange, Error> {
        let Self { region, schedule, layout } = self;
        let linking = Linking { region: &region, layout: &layout, rank, inline_bytes, other };
        let acts = |set: usize| -> Result<Vec<Act>, Error> {
            schedule.steps.iter().map(|step| linking.act(set, step)).collect()
        };
        let acts = [acts(0)?, acts(1)?];
        let longest = layout.longest.iter().copied().max().unwrap_or(0);
        Ok(Exchange {
            acts,
            region,
            given: Vec::new(),
            vector: vec![0; schedule.vector],
            scratch: vec![0; longest],
            reduced_by: (Element::Uint64, Reduction::Max),
            number: 0,
            written: 0,
            layout,
        })
    }
}

/// Turns steps into actions.
struct Linking<'a, F> {
    region: &'a MemoryRegion,
    layout: &'a Layout,
    rank: u32,
    inline_bytes: usize,
    other: F,
}

impl<F: Fn(u32) -> Result<(usize, Target), Error>> Linking<'_, F> {
    fn act(&self, set: usize, step: &Step) -> Result<Act, Error> {
        let layout = self.layout;
        Ok(match step {
            Step::Give { at } => Act::Give { at: *at },
            Step::Pack { message, at, from } => {
                Act::Pack { to: layout.begin(set, *message) + at, from: from.start, bytes: from.len() }
            }
            Step::Write { message, to, arrival } if *to == self.rank => Act::Keep {
                from: layout.begin(set, *message),
                to: layout.begin(set, Message::arrived(*arrival, message.bytes)),
                bytes: message.bytes,
            },
            Step::Write { message, to, arrival } => {
                Act::Write(Box::new(self.write(set, *message, *to, *arrival)?))
            }
            Step::Await { arrival } => Act::Await { word: layout.word(set, Place::Arrival(*arrival)) },
            Step::Unpack { message, at, to } => {
                Act::Unpack { from: layout.begin(set, *message) + at, to: to.start, bytes: to.len() }
            }
            Step::Reduce { message, to } => {
                Act::Reduce { from: layout.begin(set, *message), to: to.start, bytes: to.len() }
            }
        })
    }

    fn write(&self, set: usize, message: Message, to: u32, arrival: usize) -> Result<Write, Error> {
        let (lane, target) = (self.other)(to)?;
        let from = self.layout.begin(set, message);
        let bytes = message.bytes + WORD_BYTES;
        let begin = self.layout.begin(set, Message::arrived(arrival, message.bytes));
        let request = SendRequest::write(0, vec![self.region.sge(from, bytes)?], target.at(begin)?);
        let is_inline = bytes <= self.inline_bytes;
        Ok(Write {
            lane,
            request: if is_inline { request.inline(&vec![0; bytes]) } else { request },
            inline_from: is_inline.then_some(from),
            word: matches!(message.place, Place::Source(_)).then(|| self.layout.word(set, message.place)),
        })
    }
}

impl Exchange {
    /// Returns the set of places of the last call.
    #[inline]
    pub(crate) fn set(&self) -> usize {
        (self.number % SETS as u64) as usize
    }

    /// Fills a message that calls do not change.
    pub(crate) fn fill(&mut self, source: usize, bytes: &[u8]) -> Result<(), Error> {
        for set in 0..SETS {
            let at = self.layout.begin(set, Message::made(source, bytes.len()));
            self.region.write(at, bytes)?;
        }
        Ok(())
    }

    /// Clears the results of calls, except for the words.
    pub(crate) fn clear(&mut self, with: u8) -> Result<(), Error> {
        self.vector.fill(with);
        for set in 0..SETS {
            for (arrival, longest) in self.layout.longest.iter().enumerate() {
                let at = self.layout.begin(set, Message::arrived(arrival, *longest));
                self.region.write(at, &vec![with; *longest])?;
            }
        }
        Ok(())
    }

    /// Returns the data that the last call has brought to a place.
    pub(crate) fn arrived(&self, arrival: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.layout.longest[arrival]];
        let at = self.layout.begin(self.set(), Message::arrived(arrival, bytes.len()));
        self.region.read(at, &mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_the_device_does_not_carry_are_refused() {
        assert!(fits(92, 100).is_ok());
        for longest in [93, usize::MAX] {
            assert!(matches!(fits(longest, 100), Err(Error::Impossible { .. })), "{longest}");
        }
    }

    #[test]
    fn messages_that_take_too_much_memory_are_refused() {
        assert_eq!((memory(0).unwrap(), memory(64).unwrap()), (WORD_BYTES, 128));
        assert!(memory(MEMORY_MOST / SETS).is_ok());
        for set in [MEMORY_MOST / SETS + 1, usize::MAX] {
            let error = memory(set).unwrap_err();
            assert!(
                matches!(error, Error::Impossible { .. }) && error.to_string().contains("1024"),
                "{error}"
            );
        }
    }
}
