//! Ping-pong (Gamess and Ortiz-Zuazaga 2016, section V): a rank sends only after it has received,
//! and both ranks time every message.

use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark};
use crate::point::Length;

/// Bounces a message between two ranks and records, at this rank, the time between consecutive
/// receives: a round trip each. Rank 0 sends first and, with a duration, marks the last message.
///
/// The stamp of a receive is taken right after the answer was posted, while the answer is under
/// way, so that the cost of a stamp is no part of the round trip. The first interval ends with
/// message `warmup + 2`. The last message ends none: rank 0 does not answer it, and an interval
/// without a post would be too short. So `warmup + 2 + messages` go each way.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a message is lost, which ends a ping-pong.
pub(crate) fn ping_pong<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    first: bool,
    warmup: u64,
    length: Length,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    let last = length.iterations().map_or(u64::MAX, |messages| warmup + 2 + messages);
    let mut sent = 0;
    let mut received = 0;
    let mut end = u64::MAX;
    let mut before = clock.now();
    if first {
        sent += 1;
        endpoint.send(if sent == last { Mark::Last } else { Mark::More })?;
    }
    loop {
        let theirs = endpoint.receive()?;
        received += 1;
        // Rank 0 ends with the answer to its last message, rank 1 with that answer.
        if !(first && theirs == Mark::Last) {
            sent += 1;
            let over = sent == last || theirs == Mark::Last || (first && cut::is_over(before, end));
            endpoint.send(if over { Mark::Last } else { Mark::More })?;
        }
        let now = clock.now();
        endpoint.replenish()?;
        if received > warmup + 1 && theirs != Mark::Last && !endpoint.was_repeated() {
            recorder.record(now.since(before));
        }
        if first && received == warmup + 1 {
            (_, end) = length.end(clock, now);
        }
        before = now;
        if theirs == Mark::Last {
            return endpoint.flush();
        }
    }
}
