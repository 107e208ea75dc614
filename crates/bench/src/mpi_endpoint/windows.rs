//! The windows of a stream: the receiver answers each, as in the OSU benchmarks.
//!
//! The receiver of a one-way stream waits for a whole window with one call of MPI, which it makes
//! before the window begins. It has to know that the whole window will arrive: the first message of
//! each window promises this for its window and for the next. If the stream ends earlier, the
//! sender keeps the promise with empty messages, the fillers.

use mpi::{Communicator, Slots};

use super::tag::{GREETING_BYTES, Tag};
use crate::Error;
use crate::endpoint::{FILL, Mark};

/// The tag of the message that confirms that a window has arrived.
const WINDOW: i32 = 1;

/// The windows of a stream to and from one rank.
pub(super) struct Windows {
    peer: u32,
    /// Whether messages go one way only, so that the receiver only waits for whole windows.
    pub(super) is_one_way: bool,
    pub(super) out: Outgoing,
    pub(super) into: Incoming,
    /// The receive of the peer's answer, and the send of this rank's answer.
    heard: Slots,
    said: Slots,
}

impl Windows {
    /// Creates windows of `length` messages.
    pub(super) fn new(
        answers: &Communicator,
        peer: u32,
        length: u64,
        is_one_way: bool,
    ) -> Result<Self, Error> {
        let mut heard = Slots::new(answers, 1, GREETING_BYTES)?;
        heard.irecv(0, GREETING_BYTES, Some(peer), Some(WINDOW))?;
        let mut said = Slots::new(answers, 1, GREETING_BYTES)?;
        said.bytes_mut(0).fill(FILL);
        let out = Outgoing::new(length, is_one_way);
        Ok(Self { peer, is_one_way, out, into: Incoming::new(length), heard, said })
    }

    /// Returns whether a message may be sent: not before a full window has arrived. In a one-way
    /// stream, only [`wait`](Self::wait) finds that out.
    #[inline]
    pub(super) fn may_send(&mut self) -> Result<bool, Error> {
        if self.out.is_full && !self.is_one_way && self.heard.test(0)?.is_some() {
            self.begin()?;
        }
        Ok(!self.out.is_full)
    }

    /// Returns whether the sender can only [`wait`](Self::wait) for an answer.
    #[inline]
    pub(super) fn awaits_answer(&self) -> bool {
        self.is_one_way && self.out.is_full
    }

    /// Waits until the full window has arrived.
    #[inline]
    pub(super) fn wait(&mut self) -> Result<(), Error> {
        self.heard.wait(0)?;
        self.begin()
    }

    /// Begins another window after the full one has arrived.
    #[inline]
    fn begin(&mut self) -> Result<(), Error> {
        self.out.begin();
        Ok(self.heard.irecv(0, GREETING_BYTES, Some(self.peer), Some(WINDOW))?)
    }

    /// Returns how many messages are known to have arrived.
    #[inline]
    pub(super) fn arrived(&mut self) -> Result<u64, Error> {
        self.may_send()?;
        Ok(self.out.arrived)
    }

    /// Returns how many messages were sent and are not known to have arrived.
    pub(super) fn unanswered(&mut self) -> Result<u64, Error> {
        self.may_send()?;
        Ok(self.out.sent)
    }

    /// Tells the sender that its window has arrived.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<(), Error> {
        // The previous answer has arrived, because the sender has sent this window.
        if self.said.is_pending(0) {
            self.said.wait(0)?;
        }
        Ok(self.said.isend(0, GREETING_BYTES, self.peer, WINDOW)?)
    }
}

/// The windows that this rank sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The messages of a whole window.
    length: u64,
    /// Whether whole windows may be promised to the receiver.
    promises: bool,
    /// The messages of the current window that were sent.
    sent: u64,
    /// Whether all messages of the current window, and of the next, were promised to the receiver.
    is_whole: bool,
    is_next_whole: bool,
    /// Whether the last message of the current window was sent: the receiver must answer before the
    /// next message.
    is_full: bool,
    /// The messages of all windows that the receiver has answered.
    arrived: u64,
    /// How many messages this rank will have sent at the end of its stream, as far as is known.
    announced: u64,
}

impl Outgoing {
    fn new(length: u64, promises: bool) -> Self {
        Self {
            length,
            promises,
            sent: 0,
            is_whole: false,
            is_next_whole: false,
            is_full: false,
            arrived: 0,
            announced: u64::MAX,
        }
    }

    /// Announces that this rank will send `messages` more messages.
    pub(super) fn announce(&mut self, messages: u64) {
        self.announced = (self.arrived + self.sent).saturating_add(messages);
    }

    /// Returns how many messages may be sent before the receiver must answer.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        if self.is_full { 0 } else { self.length - self.sent }
    }

    /// Returns the tag of the next message. It promises as much of the current window and the next
    /// as is announced.
    #[inline]
    pub(super) fn tag(&mut self, mark: Mark) -> Tag {
        if self.sent > 0 {
            return Tag::Message(mark);
        }
        let may_promise = self.promises && mark == Mark::More;
        let left = self.announced.saturating_sub(self.arrived);
        self.is_whole |= may_promise && left >= self.length;
        self.is_next_whole = may_promise && left >= self.length.saturating_mul(2);
        if may_promise && self.is_whole {
            Tag::First { of_many: self.is_next_whole }
        } else {
            Tag::Message(mark)
        }
    }

    /// Notes that messages were sent, the last one with `mark`. Returns how many fillers must
    /// follow.
    #[inline]
    pub(super) fn sent(&mut self, messages: u64, mark: Mark) -> u64 {
        self.sent += messages;
        self.is_full = self.sent == self.length || mark == Mark::Last;
        if mark == Mark::More {
            return 0;
        }
        let of_this = if self.is_whole { self.length - self.sent } else { 0 };
        let of_next = if self.is_next_whole { self.length } else { 0 };
        self.is_next_whole = false;
        of_this + of_next
    }

    /// Begins another window after the full one has arrived.
    #[inline]
    fn begin(&mut self) {
        self.arrived += self.sent;
        (self.sent, self.is_full) = (0, false);
        (self.is_whole, self.is_next_whole) = (self.is_next_whole, false);
    }
}

/// The windows that this rank receives.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The messages of a whole window.
    length: u64,
    /// The messages of the current window that have arrived.
    come: u64,
    /// Whether all messages of the current window, and of the next, will arrive.
    is_whole: bool,
    is_next_whole: bool,
}

impl Incoming {
    fn new(length: u64) -> Self {
        Self { length, come: 0, is_whole: false, is_next_whole: false }
    }

    /// Notes that messages have arrived: the tag of the first and the mark of the last. Returns
    /// whether the window has arrived completely, or up to the last message of a stream; then
    /// another begins.
    #[inline]
    pub(super) fn came(&mut self, messages: usize, first: Tag, mark: Mark) -> bool {
        if let Tag::First { of_many } = first {
            (self.is_whole, self.is_next_whole) = (true, of_many);
        }
        self.come += messages as u64;
        if self.come < self.length && mark == Mark::More {
            return false;
        }
        self.come = 0;
        (self.is_whole, self.is_next_whole) = (self.is_next_whole, false);
        true
    }

    /// Ends the stream. Returns how many fillers are still to arrive.
    pub(super) fn end(&mut self) -> usize {
        let left = self.left();
        self.is_whole = false;
        left
    }

    /// Returns whether a part of a whole window has arrived.
    #[inline]
    pub(super) fn is_within(&self) -> bool {
        self.is_whole && self.come > 0
    }

    /// Returns how many messages of a whole window are certain to arrive.
    #[inline]
    pub(super) fn left(&self) -> usize {
        if self.is_whole { self.expected() } else { 0 }
    }

    /// Returns how many messages can arrive before the sender waits for an answer.
    #[inline]
    pub(super) fn expected(&self) -> usize {
        (self.length - self.come) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A sender, a receiver, and the messages between them.
    struct Flood {
        out: Outgoing,
        into: Incoming,
        sent: VecDeque<Tag>,
    }

    impl Flood {
        /// Sends a message, and its fillers.
        fn send(&mut self, mark: Mark) {
            let tag = self.out.tag(mark);
            let fillers = self.out.sent(1, mark);
            self.sent.push_back(tag);
            self.sent.extend((0..fillers).map(|_| Tag::Filler));
        }

        /// Takes arrived messages as the lane does. Returns their number, and whether the last of a
        /// stream was among them; `None` if fewer have arrived than the receiver waits for.
        fn take(&mut self) -> Option<(u64, Mark)> {
            let left = self.into.left();
            if self.sent.len() < left.max(1) {
                return None;
            }
            let tags: Vec<Tag> = self.sent.drain(..left.max(1)).collect();
            assert!(!matches!(tags[0], Tag::Filler | Tag::Greeting), "{tags:?}");
            assert!(tags[1..].iter().all(|tag| !matches!(tag, Tag::First { .. })), "{tags:?}");
            let mark = if left > 0 { Mark::Last } else { tags[0].mark() };
            if self.into.came(tags.len(), tags[0], mark) {
                self.out.begin();
            }
            let last = tags.iter().position(|tag| *tag == Tag::Message(Mark::Last));
            let Some(last) = last else { return Some((tags.len() as u64, Mark::More)) };
            assert!(tags[last + 1..].iter().all(|tag| *tag == Tag::Filler), "{tags:?}");
            let dropped: Vec<Tag> = self.sent.drain(..self.into.end()).collect();
            assert!(dropped.iter().all(|tag| *tag == Tag::Filler), "{dropped:?}");
            Some((last as u64 + 1, Mark::Last))
        }

        /// Streams `messages` messages; returns how many arrived, and how many fillers were sent.
        fn run(&mut self, messages: u64, announced: u64) -> (u64, u64) {
            self.out.announce(announced);
            let mut taken = 0;
            let mut sent = 0;
            let mut fillers = 0;
            loop {
                while sent < messages && self.out.room() > 0 {
                    sent += 1;
                    let before = self.sent.len() as u64;
                    self.send(if sent == messages { Mark::Last } else { Mark::More });
                    fillers += self.sent.len() as u64 - before - 1;
                }
                let batch = self.take().expect("the receiver waits for no more than what is sent");
                taken += batch.0;
                if batch.1 == Mark::Last {
                    assert!(self.sent.is_empty() && !self.out.is_full, "{:?}", self.sent);
                    return (taken, fillers);
                }
            }
        }
    }

    /// Several streams over the same windows, like warm-up and measurement.
    #[test]
    fn a_receiver_waits_for_no_more_than_what_comes() {
        for length in [1, 2, 3, 7, 64] {
            for promises in [true, false] {
                let out = Outgoing::new(length, promises);
                let mut flood = Flood { out, into: Incoming::new(length), sent: VecDeque::new() };
                for messages in (1..4 * length + 2).chain([200, 199]) {
                    assert_eq!(flood.run(messages, messages), (messages, 0), "windows of {length}");
                    let (taken, fillers) = flood.run(messages, u64::MAX);
                    assert_eq!(taken, messages);
                    // The rest of this window and the next.
                    assert!(fillers < 2 * length && (promises || fillers == 0), "{fillers} of {length}");
                }
            }
        }
    }

    #[test]
    fn a_window_is_waited_for_as_a_whole_from_the_second_on() {
        let mut flood = Flood { out: Outgoing::new(4, true), into: Incoming::new(4), sent: VecDeque::new() };
        flood.out.announce(10);
        let mut batches = Vec::new();
        for sent in 1..=10 {
            flood.send(if sent == 10 { Mark::Last } else { Mark::More });
            while let Some(batch) = flood.take() {
                batches.push(batch.0);
            }
        }
        assert_eq!(batches, [1, 3, 4, 1, 1]);
    }
}
