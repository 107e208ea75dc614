//! The windows of a flood: the receiver answers each, as in the OSU benchmarks.
//!
//! Where a flood goes one way, its receiver waits for a whole window with one call of MPI, which
//! it makes before the window begins. So it has to know that all of it will come: the first message
//! of each window says so of this window and of the next. A flood that ends earlier keeps these
//! promises with empty messages, the fillers.

use mpi::{Communicator, Slots};

use super::tag::{GREETING_BYTES, Tag};
use crate::Error;
use crate::endpoint::{FILL, Mark};

/// The tag of the message that says that a window has arrived.
const WINDOW: i32 = 1;

/// The windows of a flood to and from one rank.
pub(super) struct Windows {
    peer: u32,
    /// Whether messages go one way only, so that the receiver has nothing to do but to wait for all
    /// of a window.
    pub(super) is_one_way: bool,
    pub(super) out: Outgoing,
    pub(super) into: Incoming,
    /// The receive of the peer's answer, and the send of ours.
    heard: Slots,
    said: Slots,
}

impl Windows {
    /// Windows of so many messages.
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

    /// Whether a message may go: not while a full window has not arrived. Where messages go one
    /// way, only [`wait`](Self::wait) finds that out.
    #[inline]
    pub(super) fn may_send(&mut self) -> Result<bool, Error> {
        if self.out.is_full && !self.is_one_way && self.heard.test(0)?.is_some() {
            self.begin()?;
        }
        Ok(!self.out.is_full)
    }

    /// Whether all that is left to do is to [`wait`](Self::wait) for an answer.
    #[inline]
    pub(super) fn awaits_answer(&self) -> bool {
        self.is_one_way && self.out.is_full
    }

    /// Waits until the window that is full has arrived.
    #[inline]
    pub(super) fn wait(&mut self) -> Result<(), Error> {
        self.heard.wait(0)?;
        self.begin()
    }

    /// The window that was full has arrived: begins another.
    #[inline]
    fn begin(&mut self) -> Result<(), Error> {
        self.out.begin();
        Ok(self.heard.irecv(0, GREETING_BYTES, Some(self.peer), Some(WINDOW))?)
    }

    /// Messages that are known to have arrived.
    #[inline]
    pub(super) fn arrived(&mut self) -> Result<u64, Error> {
        self.may_send()?;
        Ok(self.out.arrived)
    }

    /// Messages that were sent and are not known to have arrived.
    pub(super) fn unanswered(&mut self) -> Result<u64, Error> {
        self.may_send()?;
        Ok(self.out.sent)
    }

    /// Tells the sender that its window has arrived.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<(), Error> {
        // The answer before has arrived: its window was followed by this one.
        if self.said.is_pending(0) {
            self.said.wait(0)?;
        }
        Ok(self.said.isend(0, GREETING_BYTES, self.peer, WINDOW)?)
    }
}

/// The windows that this end sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Messages of a whole window.
    length: u64,
    /// Whether the receiver may be promised whole windows.
    promises: bool,
    /// Messages of the present window that were sent.
    sent: u64,
    /// Whether the receiver was promised all messages of the present window, and of the next.
    is_whole: bool,
    is_next_whole: bool,
    /// Whether the last message of the present window was sent, so that no more goes before the
    /// receiver has answered.
    is_full: bool,
    /// Messages of all windows that the receiver has answered.
    arrived: u64,
    /// How many messages this end will have sent when its flood is over, as far as is known.
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

    /// This end will send so many messages, and no more.
    pub(super) fn announce(&mut self, messages: u64) {
        self.announced = (self.arrived + self.sent).saturating_add(messages);
    }

    /// Messages that may be sent before the receiver must have answered.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        if self.is_full { 0 } else { self.length - self.sent }
    }

    /// What the next message says. Of the present window and the next, as much is promised as is
    /// announced.
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

    /// Messages were sent, of which the last has a mark. Returns how many fillers must follow.
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

    /// The window that was full has arrived: begins another.
    #[inline]
    fn begin(&mut self) {
        self.arrived += self.sent;
        (self.sent, self.is_full) = (0, false);
        (self.is_whole, self.is_next_whole) = (self.is_next_whole, false);
    }
}

/// The windows that this end receives.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Messages of a whole window.
    length: u64,
    /// Messages of the present window that have come.
    come: u64,
    /// Whether all messages of the present window will come, and of the next.
    is_whole: bool,
    is_next_whole: bool,
}

impl Incoming {
    fn new(length: u64) -> Self {
        Self { length, come: 0, is_whole: false, is_next_whole: false }
    }

    /// Messages have come, of which the first says something; the last of them is marked. Returns
    /// whether the window has arrived: all of it, or the last message of a flood. Then another
    /// begins.
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

    /// The flood is over. Returns how many fillers still come.
    pub(super) fn end(&mut self) -> usize {
        let left = self.left();
        self.is_whole = false;
        left
    }

    /// Whether a whole window has come in part.
    #[inline]
    pub(super) fn is_within(&self) -> bool {
        self.is_whole && self.come > 0
    }

    /// Messages of a whole window that are sure to come.
    #[inline]
    pub(super) fn left(&self) -> usize {
        if self.is_whole { self.expected() } else { 0 }
    }

    /// Messages that can come before the sender waits for an answer.
    #[inline]
    pub(super) fn expected(&self) -> usize {
        (self.length - self.come) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A sender and a receiver, and what goes between them.
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

        /// Takes what has come as the lane does. Returns the messages, and whether the last of a
        /// flood was among them; nothing while less has come than is waited for.
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

        /// Floods with so many messages; returns how many came, and how many fillers were sent.
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

    /// One flood after the other over the same windows, as warm-up and measurement are.
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
