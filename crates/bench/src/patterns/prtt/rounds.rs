//! The parametrised round trip PRTT(n, d, s) of Hoefler, Lichei and Rehm, "Low-Overhead LogGP
//! Parameter Assessment for Modern Interconnection Networks", 2007: n messages of s bytes go out, d
//! apart, and one comes back.
//!
//! In LogGP it takes PRTT(1, 0, s) + (n - 1) max(o + d, g + (s - 1) G). Therefore o follows from a
//! large d, and g and G from d = 0 over s. All times are round trips on one clock.

use std::time::Duration;

use measure::clock::Ticks;
use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark};
use crate::point::Length;

/// The messages that go out in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// n: the number of messages, at least 1, for which the queues have room.
    pub messages: u32,
    /// d: the time from the end of one post to the start of the next.
    pub pause: Duration,
}

/// Rank 0: posts a burst, waits for the answer and records the time from before the first post to
/// the answer, a sample for each round. All sends complete between rounds, which is not timed.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a message is lost.
pub(super) fn prtt<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    burst: Burst,
    warmup: u64,
    length: Length,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    let pause = clock.ticks(burst.pause);
    for _ in 0..warmup {
        round(endpoint, burst.messages, pause, Mark::More)?;
    }
    let (rounds, end) = length.end(clock, clock.now());
    for n in 1.. {
        let before = clock.now();
        let mark = if n == rounds || cut::is_over(before, end) { Mark::Last } else { Mark::More };
        let answered = round(endpoint, burst.messages, pause, mark)?;
        recorder.record(answered.since(before));
        if mark == Mark::Last {
            break;
        }
    }
    Ok(())
}

/// Sends a burst whose last message has the mark, and waits for its answer; returns when the answer
/// arrived. All sends are complete then.
fn round<E: Endpoint>(endpoint: &mut E, messages: u32, pause: u64, mark: Mark) -> Result<Ticks, Error> {
    let clock = endpoint.clock();
    for _ in 1..messages {
        endpoint.send(Mark::More)?;
        if pause > 0 {
            let until = Ticks(clock.now().0.saturating_add(pause));
            while clock.now() < until {
                endpoint.idle_until(until)?;
            }
        }
    }
    endpoint.send(mark)?;
    endpoint.receive()?;
    let answered = clock.now();
    endpoint.replenish()?;
    endpoint.flush()?;
    Ok(answered)
}

/// Rank 1: answers the last message of each burst of `messages` messages.
///
/// # Errors
/// As [`prtt`].
pub(super) fn answer<E: Endpoint>(endpoint: &mut E, messages: u32) -> Result<(), Error> {
    loop {
        for _ in 1..messages {
            endpoint.receive()?;
            endpoint.replenish()?;
        }
        let mark = endpoint.receive()?;
        endpoint.send(mark)?;
        endpoint.replenish()?;
        if mark == Mark::Last {
            return endpoint.flush();
        }
    }
}

#[cfg(test)]
mod tests;
