//! The header of a message, outside of its payload or in the first bytes of it: at most four bytes,
//! fewer in a shorter message.

use crate::endpoint::{Arrival, Mark};

/// The message is the last of its kind.
const LAST: u32 = 1;
/// The message is not measured.
const GREETING: u32 = 2;
/// The message was sent before, and seemed to be lost.
const REPEATED: u32 = 4;
/// The other bits are the number of the message.
const NUMBER_SHIFT: u32 = 3;

/// Bytes of a header in a message that is long enough.
pub(crate) const HEADER_BYTES: usize = 4;

/// The header of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    pub(crate) mark: Mark,
    pub(crate) is_greeting: bool,
    pub(crate) is_repeated: bool,
    /// The number of the message, as far as its bytes hold it: 5 bits of one byte, 29 of four.
    pub(crate) number: u32,
}

impl Header {
    /// Returns the header of a message with a number.
    pub(crate) fn of(mark: Mark, number: u32) -> Self {
        Self { mark, is_greeting: false, is_repeated: false, number }
    }

    /// Returns the header of a greeting with a number.
    pub(crate) fn greeting(number: u32) -> Self {
        Self { is_greeting: true, ..Self::of(Mark::Last, number) }
    }

    /// Returns the arrival of a message with this header, by a lane.
    #[inline]
    pub(crate) fn arrival(self, lane: u32) -> Arrival {
        let Self { mark, is_greeting, number, .. } = self;
        Arrival { mark, number: u64::from(number), lane, is_greeting }
    }

    /// Returns the header as a word.
    #[inline]
    pub(crate) fn word(self) -> u32 {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.mark == Mark::Last, LAST)
            | flag(self.is_greeting, GREETING)
            | flag(self.is_repeated, REPEATED);
        self.number << NUMBER_SHIFT | flags
    }

    /// Reads a header from a word.
    #[inline]
    pub(crate) fn of_word(word: u32) -> Self {
        Self {
            mark: if word & LAST == 0 { Mark::More } else { Mark::Last },
            is_greeting: word & GREETING != 0,
            is_repeated: word & REPEATED != 0,
            number: word >> NUMBER_SHIFT,
        }
    }

    /// Writes the header to the start of a message.
    #[inline]
    pub(crate) fn write(self, message: &mut [u8]) {
        let bytes = self.word().to_le_bytes();
        match message.first_chunk_mut() {
            Some(first) => *first = bytes,
            None => message.copy_from_slice(&bytes[..message.len()]),
        }
    }

    /// Reads a header from the start of a message.
    #[inline]
    pub(crate) fn read(message: &[u8]) -> Self {
        let bytes = message.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; HEADER_BYTES];
            bytes[..message.len()].copy_from_slice(message);
            bytes
        });
        Self::of_word(u32::from_le_bytes(bytes))
    }
}

/// Returns a mask of the numbers that a message of `size` bytes can carry.
pub(crate) fn numbers(size: usize) -> u32 {
    u32::MAX >> (u32::BITS - 8 * size.clamp(1, HEADER_BYTES) as u32 + NUMBER_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_far_as_there_is_room() {
        for size in 1..=6 {
            let mask = numbers(size);
            for (mark, is_greeting, is_repeated) in
                [(Mark::More, false, false), (Mark::Last, true, false), (Mark::More, false, true)]
            {
                for number in [0, 1, 31, 0x1234_5678, u32::MAX >> NUMBER_SHIFT] {
                    let header = Header { mark, is_greeting, is_repeated, number };
                    let mut message = vec![0xff; size];
                    header.write(&mut message);
                    assert_eq!(Header::read(&message), Header { number: number & mask, ..header });
                    assert!(message.iter().skip(HEADER_BYTES).all(|byte| *byte == 0xff));
                }
            }
        }
        assert_eq!(
            [numbers(1), numbers(2), numbers(4), numbers(9)],
            [31, 8191, (1 << 29) - 1, (1 << 29) - 1]
        );
    }
}
