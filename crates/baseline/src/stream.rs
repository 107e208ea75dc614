//! A stream of large messages from one process to the other.

use anyhow::{Result, ensure};

use crate::link::{Link, MESSAGE_BYTES, Side, WINDOW};

/// The batches that the median is of, after one warm-up batch.
const BATCHES: u64 = 80;
/// Messages in a batch.
const BATCH: u64 = 8;

const WORD: usize = size_of::<u64>();
const WORDS: usize = MESSAGE_BYTES / WORD;

/// What the receiver does with a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reader {
    /// It reads and checks the whole message.
    Reads,
    /// It only checks that the message has arrived.
    Idle,
}

/// The sending side. Messages are numbered from 1.
pub(crate) trait Sender {
    /// The buffer that the next message is made in.
    fn source(&mut self) -> *mut u8;
    /// Sends the buffer as message `n`. Afterwards the buffer may be reused.
    fn put(&mut self, n: u64) -> Result<()>;
    /// The number of messages that the receiver has finished with.
    fn taken(&self) -> u64;
}

/// The receiving side.
pub(crate) trait Receiver {
    /// Whether message `n` has arrived completely.
    fn has(&self, n: u64) -> bool;
    /// Its address.
    fn place(&self, n: u64) -> *const u8;
    /// Tells the sender that the receiver has finished with message `n`.
    fn take(&mut self, n: u64) -> Result<()>;
}

/// The sum of the words of a message without the first and the last, which are its number.
const fn sum_between() -> u64 {
    let mut i = 1;
    let mut sum = 0_u64;
    while i < WORDS as u64 - 1 {
        sum = sum.wrapping_add(i);
        i += 1;
    }
    sum
}

/// Sends all messages.
pub(crate) fn send(link: &Link, sender: &mut impl Sender) -> Result<()> {
    debug_assert_eq!(link.side, Side::Second);
    let source = sender.source().cast::<u64>();
    for i in 0..WORDS {
        // SAFETY: the buffer has space for a message, and only this process writes to it.
        unsafe { source.add(i).write(i as u64) };
    }
    let total = (BATCHES + 1) * BATCH;
    for n in 1..=total {
        link.wait(|| sender.taken() + WINDOW >= n)?;
        for end in [0, WORDS - 1] {
            // SAFETY: as above.
            unsafe { source.add(end).write(n) };
        }
        sender.put(n)?;
    }
    // The memory must stay while the receiver reads it.
    link.wait(|| sender.taken() == total)
}

/// Receives the messages. Returns the median rate of the batches and the rate of all messages, in
/// bytes/s.
pub(crate) fn receive(link: &Link, receiver: &mut impl Receiver, reader: Reader) -> Result<String> {
    let mut times = Vec::with_capacity(BATCHES as usize + 1);
    for batch in 0..=BATCHES {
        let before = link.clock.now();
        for n in (1..=BATCH).map(|i| batch * BATCH + i) {
            link.wait(|| receiver.has(n))?;
            if reader == Reader::Reads {
                let sum = sum(receiver.place(n));
                let expected = (2 * n).wrapping_add(const { sum_between() });
                ensure!(sum == expected, "message {n} is not what was sent");
            }
            receiver.take(n)?;
        }
        times.push(link.clock.now().since(before));
    }
    let times = &mut times[1..];
    let all: u64 = times.iter().sum();
    times.sort_unstable();
    let rate = |ticks: u64, batches: u64| {
        (batches * BATCH) as f64 * MESSAGE_BYTES as f64 / (link.clock.ns_f64(ticks) / 1e9)
    };
    let median = rate(times[times.len() / 2], 1);
    let mean = rate(all, BATCHES);
    Ok(format!(r#"{{"median_bytes_per_s":{median:.0},"mean_bytes_per_s":{mean:.0}}}"#))
}

/// Reads a message and returns the sum of its words.
fn sum(message: *const u8) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, and the message has arrived and belongs to the receiver
        // until it is taken.
        return unsafe { sum_avx2(message) };
    }
    // SAFETY: as above.
    unsafe { sum_words(message) }
}

/// # Safety
/// A message is readable at the address, page-aligned, and not written to.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn sum_avx2(message: *const u8) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { sum_words(message) }
}

/// # Safety
/// A message is readable at the address, page-aligned, and not written to.
#[inline(always)]
unsafe fn sum_words(message: *const u8) -> u64 {
    // SAFETY: guaranteed by the caller.
    let words = unsafe { std::slice::from_raw_parts(message.cast::<u64>(), WORDS) };
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_sees_every_word() {
        let mut words: Vec<u64> = (0..WORDS as u64).collect();
        (words[0], words[WORDS - 1]) = (7, 7);
        let expected = 14 + sum_between();
        assert_eq!(sum(words.as_ptr().cast()), expected);
        for at in [0, 1, WORDS / 2, WORDS - 2, WORDS - 1] {
            words[at] ^= 1 << 40;
            assert_ne!(sum(words.as_ptr().cast()), expected, "word {at}");
            words[at] ^= 1 << 40;
        }
    }
}
