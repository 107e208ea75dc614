//! Pairs of ranks that do the same at the same time (Sur et al. 2007, sections 3.1 to 3.3). The
//! senders of one host start every timed message, or their streams, together: after a barrier in
//! shared memory.

use measure::samples::Recorder;

use crate::Error;
use crate::barrier::Barrier;
use crate::cut;
use crate::endpoint::{Endpoint, Mark};
use crate::pattern::Progress;
use crate::pattern::flood::{AT_ONCE, Burst};
use crate::point::Length;

/// Repeatedly sends a message when all other senders do, waits for its answer and records the time;
/// a fetch is its own answer. The rank that leads the barrier also records the skew. If the point
/// is cut, all senders of a host stop after the same message.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a message is lost, or another rank does not
/// reach the barrier.
pub(crate) fn bounce<E: Endpoint, R: Recorder, S: Recorder>(
    endpoint: &mut E,
    barrier: &mut Barrier,
    recorder: &mut R,
    skews: &mut S,
    fetches: bool,
    warmup: u64,
    messages: u64,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    let all = warmup + messages;
    let mut sent = 0;
    for message in 0..all {
        if cut::is_requested() {
            barrier.close();
        }
        meet(endpoint, barrier)?;
        let is_last = message + 1 == all || barrier.is_closed();
        let mark = if is_last { Mark::Last } else { Mark::More };
        if message > warmup && barrier.leads() {
            skews.record(barrier.skew());
        }
        let begin = clock.now();
        if fetches {
            endpoint.send(Mark::Last)?;
            barrier.began(begin);
            endpoint.flush()?;
        } else {
            endpoint.send(mark)?;
            barrier.began(begin);
            endpoint.receive()?;
        }
        let end = clock.now();
        endpoint.replenish()?;
        if message >= warmup && !endpoint.was_repeated() {
            recorder.record(end.since(begin));
        }
        sent = message + 1;
        if is_last {
            break;
        }
    }
    meet(endpoint, barrier)?;
    if sent > warmup && barrier.leads() {
        skews.record(barrier.skew());
    }
    endpoint.flush()
}

/// Waits at the barrier for all senders. The wait polls, because no endpoint can sleep for it.
#[inline]
fn meet<E: Endpoint>(endpoint: &mut E, barrier: &mut Barrier) -> Result<(), Error> {
    barrier.pass(|| {
        let now = endpoint.clock().now();
        endpoint.idle_until(now)
    })
}

/// Streams messages to the peer, from when all other senders start until all are done, so that no
/// stream runs alone for a while. Counts acknowledged messages.
///
/// # Errors
/// As [`bounce`].
pub(crate) fn flood<E: Endpoint>(
    endpoint: &mut E,
    barrier: &mut Barrier,
    progress: &mut Progress,
    warmup: u64,
    length: Length,
) -> Result<Burst, Error> {
    let clock = endpoint.clock();
    for message in 0..warmup {
        endpoint.send(if message + 1 == warmup { Mark::Last } else { Mark::More })?;
    }
    endpoint.flush()?;
    let before = endpoint.try_sent()?;
    meet(endpoint, barrier)?;
    let begin = clock.now();
    let (target, over) = length.end(clock, begin);
    progress.see(begin, 0);
    let mut total = 0;
    let mut done = 0;
    let mut own = None;
    while own.is_none() || !barrier.have_all_finished() {
        total += endpoint.try_send_some(AT_ONCE)?;
        let sent = endpoint.try_sent()? - before;
        if sent == done {
            endpoint.idle()?;
            continue;
        }
        done = sent;
        let now = clock.now();
        progress.see(now, done);
        if own.is_none() && (done >= target || cut::is_over(now, over)) {
            own = Some((now, done));
            barrier.finish();
        }
        endpoint.yield_cpu()?;
    }
    endpoint.send(Mark::Last)?;
    endpoint.flush()?;
    let (end, messages) = own.unwrap_or((begin, 0));
    Ok(Burst { begin, end, messages, total: total + 1 })
}

/// Receives a stream until the message that is marked as its last.
///
/// # Errors
/// The errors of the endpoint.
pub(crate) fn drain<E: Endpoint>(endpoint: &mut E, warmup: u64) -> Result<u64, Error> {
    let mut received = 0;
    let mut ends = if warmup > 0 { 2 } else { 1 };
    while ends > 0 {
        let batch = endpoint.receive_some()?;
        endpoint.replenish()?;
        received += batch.messages;
        ends -= u32::from(batch.mark == Mark::Last);
    }
    Ok(received)
}

#[cfg(test)]
mod tests;
