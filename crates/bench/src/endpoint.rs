//! The operations of every endpoint: post a message, learn that a message was sent, and learn that
//! a message arrived.
//!
//! A pattern is written once for [`Endpoint`] and compiled for each kind of endpoint, so that its
//! hot loop has no indirect calls. It waits only in [`Endpoint::idle`], which spins, sleeps, yields
//! and keeps the deadline.
//!
//! # Invariants
//!
//! * Time has one owner. A pattern reads the clock of its endpoint and waits only in
//!   `Endpoint::idle`: the only function that spins, yields, sleeps and keeps the deadline.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

use crate::Error;

pub(crate) mod calls;
pub(crate) mod capabilities;
pub(crate) mod collectives;
#[cfg(test)]
pub(crate) mod conformance;
pub(crate) mod connecting;
pub(crate) mod contents;
pub(crate) mod header;
pub(crate) mod kind;
pub(crate) mod limits;
#[cfg(test)]
pub(crate) mod wire;
pub(crate) mod words;

/// The contents of messages: no zeroes, for which a kernel may not allocate memory.
pub(crate) const FILL: u8 = 0x5a;

/// What a message announces about the messages after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// It is the last of its kind.
    Last,
    /// More will follow.
    More,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Its mark.
    pub mark: Mark,
    /// Its number, from 0, if messages have numbers ([`Endpoint::try_send`]), and 0 otherwise. A
    /// greeting has a separate number.
    pub number: u64,
    /// The lane on which it came, from 0 in the order in which messages take the lanes.
    pub lane: u32,
    /// Whether it is a greeting, if messages have numbers.
    pub is_greeting: bool,
}

/// The result of an attempt to post a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Posted {
    /// The window is full: a completion must come first.
    Busy,
    /// The message is posted.
    Queued,
}

/// Messages that were taken together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch {
    /// The number of messages.
    pub messages: u64,
    /// The mark of the last message.
    pub mark: Mark,
}

/// The endpoint of a rank, set up and connected, with its message and its buffers.
pub trait Endpoint {
    /// The clock that times its messages.
    fn clock(&self) -> Clock;

    /// The number of queue pairs (or ranks that one queue pair reaches) that messages take in turn.
    /// The last message of each must be [`Mark::Last`], so a stream ends with one such message for
    /// each lane.
    fn lanes(&self) -> u64 {
        1
    }

    /// Posts the next message. In one-way patterns, the message carries its number.
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error>;

    /// Posts up to `most` messages that are [`Mark::More`], as long as there is room. Returns how
    /// many it has posted.
    #[inline]
    fn try_send_some(&mut self, most: u64) -> Result<u64, Error> {
        let mut posted = 0;
        while posted < most && self.try_send(Mark::More)? == Posted::Queued {
            posted += 1;
        }
        Ok(posted)
    }

    /// Posts a message to the rank of a lane, out of turn. The next turn follows that lane. With
    /// one queue pair or stream for each rank, lane n leads to the n-th partner of this rank.
    ///
    /// # Errors
    /// [`Error::Impossible`] if the endpoint lacks the capability `ADDRESSED`, or if its messages
    /// do not name their sender.
    fn try_send_to(&mut self, _lane: u32, _mark: Mark) -> Result<Posted, Error> {
        let reason = "this endpoint sends to its peers in turn only".to_owned();
        Err(Error::Impossible { reason })
    }

    /// Posts a greeting: a message that is not measured, that arrives with any operation, and that
    /// is [`Mark::Last`].
    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.try_send(Mark::Last)
    }

    /// Posts a greeting with a number below 2^29, if messages have numbers.
    fn try_send_sync_as(&mut self, _number: u32) -> Result<Posted, Error> {
        self.try_send_sync()
    }

    /// Signals the next rank outside of the measurement, if the measured operation does not notify
    /// it. Otherwise posts the next message.
    fn try_signal(&mut self, mark: Mark) -> Result<Posted, Error> {
        self.try_send(mark)
    }

    /// Returns how many messages the numbers distinguish, if the transport can lose messages and an
    /// answer carries the number of its request; otherwise 0.
    fn numbers(&self) -> u64 {
        0
    }

    /// Posts the answer to a received message, with the number of that message if there are
    /// [`numbers`](Self::numbers).
    fn try_answer(&mut self, arrival: &Arrival) -> Result<Posted, Error> {
        self.try_send(arrival.mark)
    }

    /// Announces how many messages will arrive, or until which time stamp, in ticks; [`u64::MAX`]
    /// is no limit. Until shortly before the end, the endpoint may wait for several messages
    /// together. 0 and 0 announce that no more will arrive.
    ///
    /// # Errors
    /// The errors of the system.
    fn expect(&mut self, _messages: u64, _end: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Announces how many messages will be sent, until one is [`Mark::Last`]; [`u64::MAX`] is no
    /// limit, which is the default.
    fn announce(&mut self, _messages: u64) {}

    /// Takes the next message that has arrived, if one has.
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error>;

    /// Makes room for as many messages as were taken. Not part of
    /// [`try_receive`](Self::try_receive), so that a pattern can answer first. An endpoint without
    /// posted receives always has room.
    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Posts one of the receives that must be posted before a message is taken. Returns `false` if
    /// none is left.
    #[inline]
    fn fill(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// The number of messages that were posted and are not known to be sent.
    fn outstanding(&mut self) -> Result<u32, Error>;

    /// Takes the next completion of a send, if there is one. Returns how many requests in total are
    /// known to be sent.
    fn try_sent(&mut self) -> Result<u64, Error>;

    /// Clears the memory for fetched bytes, before [`is_placed`](Self::is_placed) reads it.
    fn clear_places(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the bytes fetched from the rank of a lane have arrived, by the last of them; `true`
    /// if the endpoint does not poll memory.
    fn is_placed(&mut self, _lane: u64) -> Result<bool, Error> {
        Ok(true)
    }

    /// Writes a time stamp into a message that is about to be posted or not known to be sent, if
    /// messages carry stamps.
    fn carry(&mut self, _message: u64, _stamp: Ticks) -> Result<(), Error> {
        Ok(())
    }

    /// The time stamp of the message that was taken last; `None` if messages carry none.
    fn carried(&self, _arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        Ok(None)
    }

    /// Whether the buffer in which the next message is [written](Self::put) is free.
    fn has_room(&mut self) -> Result<bool, Error>;

    /// Writes a word of eight bytes into the buffer of the next message, low byte first. The buffer
    /// must be [free](Self::has_room). The endpoint may overwrite the first four bytes of a message
    /// when it is posted.
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error>;

    /// Returns a word of eight bytes of the message that was taken last, from the buffer in which
    /// it arrived. The word is valid until [`replenish`](Self::replenish) or until another message
    /// is taken.
    fn get(&self, word: usize) -> Result<u64, Error>;

    /// Whether a message that seemed to be lost was sent again since the last call. A time measured
    /// meanwhile is that of the timeout, and not a latency.
    fn was_repeated(&mut self) -> bool {
        false
    }

    /// Called whenever there is nothing to do. Returns when there may be something to do.
    ///
    /// # Errors
    /// [`Error::Deadline`] when the point's time is over.
    #[inline]
    fn idle(&mut self) -> Result<(), Error> {
        self.idle_until(Ticks(u64::MAX))
    }

    /// Called whenever there is nothing to do before an instant. Returns at that instant, or
    /// earlier. An endpoint that sleeps for messages sleeps until that instant, and not in slices.
    ///
    /// # Errors
    /// As [`idle`](Self::idle).
    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error>;

    /// Called from time to time by a pattern that is never idle, so that another rank can run if
    /// ranks share a CPU.
    ///
    /// # Errors
    /// As [`idle`](Self::idle).
    fn yield_cpu(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// The time since a message was last taken or posted.
    fn quiet(&self) -> Duration;

    /// Posts the next message, waiting for room.
    #[inline]
    fn send(&mut self, mark: Mark) -> Result<(), Error> {
        while self.try_send(mark)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts a message to the rank of a lane, waiting for room.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to) and [`idle`](Self::idle).
    #[inline]
    fn send_to(&mut self, lane: u32, mark: Mark) -> Result<(), Error> {
        while self.try_send_to(lane, mark)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts an answer, waiting for room.
    fn answer(&mut self, arrival: &Arrival) -> Result<(), Error> {
        while self.try_answer(arrival)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts a signal, waiting for room.
    fn signal(&mut self, mark: Mark) -> Result<(), Error> {
        while self.try_signal(mark)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts a greeting, waiting for room.
    fn send_sync(&mut self) -> Result<(), Error> {
        while self.try_send_sync()? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts a greeting with a number, waiting for room.
    fn send_sync_as(&mut self, number: u32) -> Result<(), Error> {
        while self.try_send_sync_as(number)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Waits for a greeting without a number.
    fn await_sync(&mut self) -> Result<(), Error> {
        self.receive()?;
        self.replenish()
    }

    /// Waits for the greeting with a number. All other messages are late and dropped.
    fn await_sync_of(&mut self, number: u32) -> Result<(), Error> {
        loop {
            match self.try_receive()? {
                Some(arrival) if arrival.is_greeting && arrival.number == u64::from(number) => return Ok(()),
                Some(_) => self.replenish()?,
                None => self.idle()?,
            }
        }
    }

    /// Makes the calls of this rank that one-sided operations of the peer need, until the peer
    /// [releases](Self::release) this rank's memory.
    ///
    /// # Errors
    /// The errors of the endpoint; wrong contents of the memory.
    fn attend(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the one-sided operations of this rank on the peer's memory, after the last operation is
    /// complete.
    ///
    /// # Errors
    /// As [`attend`](Self::attend).
    fn release(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits for the next message.
    #[inline]
    fn receive(&mut self) -> Result<Mark, Error> {
        loop {
            if let Some(arrival) = self.try_receive()? {
                return Ok(arrival.mark);
            }
            self.idle()?;
        }
    }

    /// Waits for the next message of a unidirectional stream, and takes the messages that came with
    /// it. [`replenish`](Self::replenish) must be called before the next call.
    #[inline]
    fn receive_some(&mut self) -> Result<Batch, Error> {
        loop {
            if let Some(arrival) = self.try_receive()? {
                return Ok(Batch { messages: 1, mark: arrival.mark });
            }
            self.idle()?;
        }
    }

    /// Waits until everything that was posted is sent. The last message must have been
    /// [`Mark::Last`].
    fn flush(&mut self) -> Result<(), Error> {
        let mut before = 0;
        loop {
            let left = self.outstanding()?;
            if left == 0 {
                return Ok(());
            }
            // `outstanding` may leave completions in the queue, and a sleep with a completion in
            // the queue may never end.
            if left == before {
                self.idle()?;
            }
            before = left;
        }
    }
}
