//! Alternating messages on a lossy lane: a message is answered before the next is sent. The asking
//! rank repeats a message that seems to be lost; an answer carries the number of its message, so
//! that each message is taken once.

use crate::endpoint::header::Header;

/// The state of one rank.
#[derive(Debug)]
pub(super) struct StopAndWait {
    /// Whether this rank asks, and the other one answers.
    pub(super) asks: bool,
    /// The numbers of the last message sent and of the last one taken.
    sent: Option<u32>,
    heard: Option<u32>,
    /// The messages that this rank has repeated.
    pub(super) repeated: u64,
    /// The duplicate messages that arrived.
    pub(super) duplicates: u64,
    /// Whether a message was repeated since the last [`take_marred`](Self::take_marred): the
    /// measured time then includes the wait for the lost message.
    is_marred: bool,
}

impl StopAndWait {
    /// Creates the state of the rank that asks, or of the rank that answers.
    pub(super) fn new(asks: bool) -> Self {
        Self { asks, sent: None, heard: None, repeated: 0, duplicates: 0, is_marred: false }
    }

    /// Returns the number of the next message: `count` at the asking rank.
    #[inline(always)]
    pub(super) fn next(&self, count: u32) -> u32 {
        if self.asks { count } else { self.heard.unwrap_or_default() }
    }

    /// Notes that a message was sent.
    #[inline(always)]
    pub(super) fn sent(&mut self, number: u32) {
        self.sent = Some(number);
    }

    /// Notes that a message has arrived. Returns whether it is the awaited one, and whether the
    /// last message must be repeated. Numbers are compared as far as messages can carry them.
    #[inline(always)]
    pub(super) fn hears(&mut self, header: Header, mask: u32) -> (bool, bool) {
        let is = |number: Option<u32>| number.is_some_and(|number| number & mask == header.number);
        let is_new = if self.asks { is(self.sent) && !is(self.heard) } else { !is(self.heard) };
        if is_new {
            self.heard = Some(header.number);
            self.is_marred |= header.is_repeated;
            return (true, false);
        }
        self.duplicates += 1;
        let is_asked_again = !self.asks && is(self.sent);
        if is_asked_again {
            self.again();
        }
        (false, is_asked_again)
    }

    /// Returns whether this rank asked and has no answer yet.
    #[inline]
    pub(super) fn is_waiting(&self, mask: u32) -> bool {
        let seen = |number: Option<u32>| number.map(|number| number & mask);
        self.asks && self.sent.is_some() && seen(self.sent) != seen(self.heard)
    }

    /// Notes that the last message is repeated.
    pub(super) fn again(&mut self) {
        self.repeated += 1;
        self.is_marred = true;
    }

    /// Returns whether a message was repeated since the last call.
    #[inline(always)]
    pub(super) fn take_marred(&mut self) -> bool {
        std::mem::take(&mut self.is_marred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Mark;

    const MASK: u32 = 31;

    fn message(number: u32, is_repeated: bool) -> Header {
        Header { is_repeated, ..Header::of(Mark::More, number) }
    }

    #[test]
    fn each_message_is_taken_once_whatever_is_lost() {
        let mut asks = StopAndWait::new(true);
        let mut answers = StopAndWait::new(false);
        for number in 0..100 {
            assert_eq!(asks.next(number), number);
            asks.sent(number);
            assert!(asks.is_waiting(MASK));
            let first = message(number & MASK, false);
            let second = message(number & MASK, true);
            match number % 3 {
                0 => assert_eq!(answers.hears(first, MASK), (true, false)),
                // The message is lost, and repeated.
                1 => {
                    asks.again();
                    assert_eq!(answers.hears(second, MASK), (true, false));
                    assert!(answers.take_marred());
                }
                // The answer is lost, so the message is repeated.
                _ => {
                    assert_eq!(answers.hears(first, MASK), (true, false));
                    answers.sent(answers.next(7));
                    asks.again();
                    assert_eq!(answers.hears(second, MASK), (false, true));
                    assert!(answers.take_marred());
                }
            }
            let answer = answers.next(7);
            answers.sent(answer);
            assert_eq!(answer, number & MASK);
            assert_eq!(asks.hears(message(answer, number % 3 == 2), MASK), (true, false));
            assert_eq!(asks.take_marred(), number % 3 > 0);
            // The answer arrives twice.
            assert_eq!(asks.hears(message(answer, false), MASK), (false, false));
            assert!(!asks.is_waiting(MASK) && !asks.take_marred() && !answers.take_marred());
        }
        assert_eq!((asks.repeated, asks.duplicates), (66, 100));
        assert_eq!((answers.repeated, answers.duplicates), (33, 33));
    }

    #[test]
    fn a_question_that_comes_again_before_it_is_answered_is_not_answered_twice() {
        let mut answers = StopAndWait::new(false);
        assert_eq!(answers.hears(message(0, false), MASK), (true, false));
        assert_eq!(answers.hears(message(0, true), MASK), (false, false));
        answers.sent(answers.next(0));
        assert_eq!(answers.hears(message(0, true), MASK), (false, true));
    }
}
