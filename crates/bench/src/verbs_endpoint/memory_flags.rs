//! Messages without a completion at the receiver, found by the byte of memory that they change.

use crate::endpoint::Mark;

/// The byte that ends the last message; other messages end with a byte that counts from 1 up to the
/// value below it.
const LAST: u8 = u8::MAX;

/// The bytes that other ranks change, one after another: each round begins with the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlagRange {
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) count: usize,
}

/// The state of the bytes that a rank sends and polls. In a round, one message goes to each rank
/// and one comes from each; with two ranks, a round is one message.
#[derive(Debug)]
pub(super) struct PolledFlags {
    watched: FlagRange,
    /// The messages that this rank sends in a round.
    round: usize,
    /// The byte of the round being sent, and how many messages of it were sent.
    byte: u8,
    sent: usize,
    /// The byte of the last complete round, and how many messages of the next one have arrived.
    seen: u8,
    came: usize,
}

impl PolledFlags {
    pub(super) fn new(watched: FlagRange, round: usize) -> Self {
        Self { watched, round, byte: 0, sent: 0, seen: 0, came: 0 }
    }

    /// Returns the mark of the next message, if it has arrived, and the index of its rank. The
    /// messages of a round are polled one after another, because all must arrive.
    #[inline]
    pub(super) fn changed<E>(
        &mut self,
        peek: impl FnOnce(usize) -> Result<u8, E>,
    ) -> Result<Option<(u32, Mark)>, E> {
        let from = self.came;
        let byte = peek(self.watched.first + from * self.watched.stride)?;
        if byte == self.seen {
            return Ok(None);
        }
        self.came += 1;
        if self.came == self.watched.count {
            self.came = 0;
            self.seen = byte;
        }
        let mark = if byte == LAST { Mark::Last } else { Mark::More };
        Ok(Some((from as u32, mark)))
    }

    /// Returns the byte that the next message ends with: the same for the whole round, so that no
    /// byte changes that was not fetched yet.
    #[inline]
    pub(super) fn next(&mut self, mark: Mark) -> u8 {
        if self.sent == 0 {
            self.byte = match mark {
                Mark::Last => LAST,
                Mark::More => self.byte % (LAST - 1) + 1,
            };
        }
        self.sent += 1;
        if self.sent == self.round {
            self.sent = 0;
        }
        self.byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_one_byte_and_comes_in_order() {
        let mut out = PolledFlags::new(FlagRange::default(), 3);
        let round = |out: &mut PolledFlags, mark| [0; 3].map(|_: u8| out.next(mark));
        assert_eq!((round(&mut out, Mark::More), round(&mut out, Mark::More)), ([1; 3], [2; 3]));
        for _ in 0..252 {
            round(&mut out, Mark::More);
        }
        assert_eq!(
            (out.byte, round(&mut out, Mark::More), round(&mut out, Mark::Last)),
            (254, [1; 3], [LAST; 3])
        );

        let mut into = PolledFlags::new(FlagRange { first: 7, stride: 10, count: 2 }, 1);
        let mut memory = [0; 20];
        let look =
            |into: &mut PolledFlags, memory: &[u8]| into.changed(|at| Ok::<_, ()>(memory[at])).unwrap();
        // The second byte is not polled before the first has changed.
        memory[17] = 1;
        assert_eq!(look(&mut into, &memory), None);
        memory[7] = 1;
        assert_eq!(
            [look(&mut into, &memory), look(&mut into, &memory)],
            [Some((0, Mark::More)), Some((1, Mark::More))]
        );
        assert_eq!(look(&mut into, &memory), None, "a round that came is over");
        (memory[7], memory[17]) = (LAST, LAST);
        assert_eq!(
            [look(&mut into, &memory), look(&mut into, &memory)],
            [Some((0, Mark::Last)), Some((1, Mark::Last))]
        );
    }
}
