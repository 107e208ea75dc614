//! What every endpoint has, whatever carries its messages: post one, learn that it was sent, learn
//! that one arrived.
//!
//! A pattern is written once against [`Endpoint`] and compiled for each kind of endpoint, so that
//! the hot loop calls nothing through a pointer of ours. It waits only here: [`Endpoint::idle`] is
//! the one place that spins, sleeps, yields and keeps the deadline.
//!
//! # Invariants
//!
//! * Time has one owner. A pattern asks its endpoint's clock and waits only in `Endpoint::idle`:
//!   the one place that spins, yields, sleeps and keeps the deadline.

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

/// What messages consist of: anything but zeroes, which a kernel may keep as no memory at all.
pub(crate) const FILL: u8 = 0x5a;

/// What a message says about those after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// The last one of its kind.
    Last,
    /// More will follow.
    More,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// What it says.
    pub mark: Mark,
    /// Its number, from 0, where messages have some ([`Endpoint::try_send`]), and 0 elsewhere; of a
    /// greeting its own.
    pub number: u64,
    /// The lane that it came by, from 0 in the order in which messages take them.
    pub lane: u32,
    /// Whether it is a greeting, where messages have numbers.
    pub is_greeting: bool,
}

/// What became of an attempt to post a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Posted {
    /// The window is full: a completion must come first.
    Busy,
    /// It is on its way.
    Queued,
}

/// Messages that were taken together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Batch {
    /// How many.
    pub messages: u64,
    /// The mark of the last.
    pub mark: Mark,
}

/// One end of a point, set up and connected, with its message and its buffers.
pub trait Endpoint {
    /// The clock that times its messages.
    fn clock(&self) -> Clock;

    /// Queue pairs (or ranks that one of them reaches) that messages take in turn. The last message
    /// of each must be [`Mark::Last`], so that a flood ends with as many of them.
    fn lanes(&self) -> u64 {
        1
    }

    /// Posts the next message. Where messages are timed one way, it says its number.
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error>;

    /// Posts messages that are [`Mark::More`] as long as there is room, up to so many. Gives how
    /// many.
    #[inline]
    fn try_send_some(&mut self, most: u64) -> Result<u64, Error> {
        let mut posted = 0;
        while posted < most && self.try_send(Mark::More)? == Posted::Queued {
            posted += 1;
        }
        Ok(posted)
    }

    /// Posts a message to the rank that a lane leads to, out of turn; turns go on from there. With
    /// one queue pair or stream for each rank, lane n leads to the n-th partner of this one.
    ///
    /// # Errors
    /// [`Error::Impossible`] where the endpoint lacks the capability `ADDRESSED`, or its messages
    /// do not name their sender.
    fn try_send_to(&mut self, _lane: u32, _mark: Mark) -> Result<Posted, Error> {
        let reason = "this endpoint sends to its peers in turn only".to_owned();
        Err(Error::Impossible { reason })
    }

    /// Posts a message that is not measured, arrives whatever the operation is, and is
    /// [`Mark::Last`].
    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.try_send(Mark::Last)
    }

    /// The same with a number, where messages have some: below 2^29.
    fn try_send_sync_as(&mut self, _number: u32) -> Result<Posted, Error> {
        self.try_send_sync()
    }

    /// Signals the next rank outside of the measurement, where the measured operation tells it
    /// nothing. Elsewhere this posts the next message.
    fn try_signal(&mut self, mark: Mark) -> Result<Posted, Error> {
        self.try_send(mark)
    }

    /// Returns how many messages their numbers tell apart, where the transport can lose messages
    /// and an answer carries the number of its question; elsewhere 0.
    fn numbers(&self) -> u64 {
        0
    }

    /// Posts the answer to a message that was taken, with its number where there are
    /// [`numbers`](Self::numbers).
    fn try_answer(&mut self, arrival: &Arrival) -> Result<Posted, Error> {
        self.try_send(arrival.mark)
    }

    /// Announces so many messages, or messages until a stamp in ticks; [`u64::MAX`] is no limit.
    /// Until shortly before the end, the endpoint may wait for several together. 0 and 0 announce
    /// that no more will come.
    ///
    /// # Errors
    /// What the system says.
    fn expect(&mut self, _messages: u64, _end: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Announces that so many messages will be sent, until one is [`Mark::Last`]; [`u64::MAX`] is
    /// no limit, which holds as long as nothing is announced.
    fn announce(&mut self, _messages: u64) {}

    /// Takes the next message that has arrived, if one has.
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error>;

    /// Gives room for as many messages as were taken. Not part of
    /// [`try_receive`](Self::try_receive), so that a pattern can answer first. Where nothing is
    /// posted to receive, there is always room.
    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Posts one of the receives that must be posted before a message is taken; `false` if none is
    /// left.
    #[inline]
    fn fill(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Messages that were posted and are not known to be sent.
    fn outstanding(&mut self) -> Result<u32, Error>;

    /// Takes the next completion of a send, if there is one; gives how many requests are known to
    /// be sent in all.
    fn try_sent(&mut self) -> Result<u64, Error>;

    /// Clears the memory that fetched bytes come to, before [`is_placed`](Self::is_placed) looks at
    /// it.
    fn clear_places(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the bytes fetched from a lane's rank have come, by the last of them; `true` where
    /// memory tells nothing.
    fn is_placed(&mut self, _lane: u64) -> Result<bool, Error> {
        Ok(true)
    }

    /// Writes a stamp into a message that is about to be posted or not known to be sent, where
    /// messages carry stamps.
    fn carry(&mut self, _message: u64, _stamp: Ticks) -> Result<(), Error> {
        Ok(())
    }

    /// The stamp of the message that was taken last; `None` where messages carry none.
    fn carried(&self, _arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        Ok(None)
    }

    /// Whether nothing of the messages before stands where the next is [written](Self::put).
    fn has_room(&mut self) -> Result<bool, Error>;

    /// Writes the so many-th eight bytes of the next message where it is sent from, low byte first;
    /// that is this end's while it [has room](Self::has_room). The first four bytes of a message
    /// may become the endpoint's own when it is posted.
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error>;

    /// The so many-th eight bytes of the message that was taken last, where it arrived. They stay
    /// as long as nobody gives room ([`replenish`](Self::replenish)) or takes another.
    fn get(&self, word: usize) -> Result<u64, Error>;

    /// Whether a message that seemed to be lost was sent again since the last call: a time taken
    /// meanwhile is that of our patience, and no latency.
    fn was_repeated(&mut self) -> bool {
        false
    }

    /// Called whenever there is nothing to do; returns when it is worth another look.
    ///
    /// # Errors
    /// [`Error::Deadline`] when the point's time is over.
    #[inline]
    fn idle(&mut self) -> Result<(), Error> {
        self.idle_until(Ticks(u64::MAX))
    }

    /// Called whenever there is nothing to do before an instant; returns then, or earlier. An
    /// endpoint that sleeps for messages sleeps until then, and not in slices.
    ///
    /// # Errors
    /// As [`idle`](Self::idle).
    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error>;

    /// Called now and then by a pattern that is never idle: lets another rank go on where ranks
    /// share a CPU.
    ///
    /// # Errors
    /// As [`idle`](Self::idle).
    fn yield_cpu(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// How long nothing has happened: since the last message was taken or posted.
    fn quiet(&self) -> Duration;

    /// Posts the next message, waiting for room.
    #[inline]
    fn send(&mut self, mark: Mark) -> Result<(), Error> {
        while self.try_send(mark)? == Posted::Busy {
            self.idle()?;
        }
        Ok(())
    }

    /// Posts a message to the rank that a lane leads to, waiting for room.
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

    /// Waits for a greeting that has no number.
    fn await_sync(&mut self) -> Result<(), Error> {
        self.receive()?;
        self.replenish()
    }

    /// Waits for the greeting with a number; whatever else comes is late, and dropped.
    fn await_sync_of(&mut self, number: u32) -> Result<(), Error> {
        loop {
            match self.try_receive()? {
                Some(arrival) if arrival.is_greeting && arrival.number == u64::from(number) => return Ok(()),
                Some(_) => self.replenish()?,
                None => self.idle()?,
            }
        }
    }

    /// Takes part in what the peer does with this end's memory, where that takes calls of this end,
    /// until the peer [releases](Self::release) it.
    ///
    /// # Errors
    /// What the endpoint says; wrong contents of the memory.
    fn attend(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends what this end does with the peer's memory, after the last operation is complete.
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

    /// Waits for the next message of a flood that goes one way, and takes the messages that came
    /// with it.
    /// Room must be [given](Self::replenish) before the next call.
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
            // Completions are taken some at a time: a sleep with one left in the queue may never
            // end.
            if left == before {
                self.idle()?;
            }
            before = left;
        }
    }
}
