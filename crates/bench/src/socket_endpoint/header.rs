//! What a message says in its first bytes: of as many as it has, up to four.

use crate::endpoint::Mark;

/// It is the last of its kind.
const LAST: u32 = 1;
/// It is not measured.
const GREETING: u32 = 2;
/// It was sent before, and seemed to be lost.
const REPEATED: u32 = 4;
/// What is left is its number.
const NUMBER_SHIFT: u32 = 3;

/// Bytes of a header where there is room.
pub(super) const HEADER_BYTES: usize = 4;

/// What a message says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) mark: Mark,
    pub(super) is_greeting: bool,
    pub(super) is_repeated: bool,
    /// Its number, as far as its bytes hold it: 5 bits of one byte, 29 of four.
    pub(super) number: u32,
}

impl Header {
    /// A message with a number.
    pub(super) fn of(mark: Mark, number: u32) -> Self {
        Self { mark, is_greeting: false, is_repeated: false, number }
    }

    /// A greeting with a number.
    pub(super) fn greeting(number: u32) -> Self {
        Self { is_greeting: true, ..Self::of(Mark::Last, number) }
    }

    /// Writes it to the begin of a message.
    #[inline]
    pub(super) fn write(self, message: &mut [u8]) {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.mark == Mark::Last, LAST)
            | flag(self.is_greeting, GREETING)
            | flag(self.is_repeated, REPEATED);
        let bytes = (self.number << NUMBER_SHIFT | flags).to_le_bytes();
        let length = message.len().min(HEADER_BYTES);
        message[..length].copy_from_slice(&bytes[..length]);
    }

    /// Reads it from the begin of a message.
    #[inline]
    pub(super) fn read(message: &[u8]) -> Self {
        let mut bytes = [0; HEADER_BYTES];
        let length = message.len().min(HEADER_BYTES);
        bytes[..length].copy_from_slice(&message[..length]);
        let word = u32::from_le_bytes(bytes);
        Self {
            mark: if word & LAST == 0 { Mark::More } else { Mark::Last },
            is_greeting: word & GREETING != 0,
            is_repeated: word & REPEATED != 0,
            number: word >> NUMBER_SHIFT,
        }
    }
}

/// A mask of the numbers that a message of so many bytes can say.
pub(super) fn numbers(size: usize) -> u32 {
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
