//! Open loop: messages go forth when they are due, whether or not those before are answered, and each is timed from when it was
//! due. Who waits for a slow answer before the next message asks less when it would have to wait longest, and never knows
//! (coordinated omission).
//!
//! Other ranks may load the device meanwhile. Rank 0 tells them when to begin, waits until all are at it, and tells them when it
//! has its answers.

use std::collections::VecDeque;
use std::time::Duration;

use measure::clock::Ticks;
use measure::samples::Recorder;

use super::Progress;
use super::pairs::{Burst, post_batch};
use crate::Error;
use crate::endpoint::{Endpoint, Mark, Posted};

/// When messages are due.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// From one message to the next, in ticks.
    pub period: f64,
    /// Messages before the first that counts, at the same rate.
    pub warmup: u64,
    /// Messages that count.
    pub messages: u64,
    /// Messages without an answer, at most: what the queues hold. One that finds as many is late.
    pub window: usize,
    /// Whether the operation brings the answer itself.
    pub fetches: bool,
    /// How long all may take, until the last is posted.
    pub limit: Duration,
    /// Whether messages cannot be lost.
    pub is_reliable: bool,
}

/// Where the times of messages go.
#[derive(Debug)]
pub struct Times<'a, R, S> {
    /// From when a message was due to its answer.
    pub response: &'a mut R,
    /// From when it was posted to its answer.
    pub rtt: &'a mut S,
    /// From when it was due to when it was posted.
    pub lateness: &'a mut S,
}

/// How the schedule was kept, by the messages that count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kept {
    /// How many there were: as many as there were to be, unless the limit was over.
    pub messages: u64,
    /// Those that were posted when the next was due already.
    pub late: u64,
    /// Those that were due when there was no room for them.
    pub waited: u64,
    /// When the first and the last were posted, in ticks.
    pub posts: [u64; 2],
    /// When the last answer came, in ticks.
    pub end: u64,
}

/// Posts messages when they are due and takes the answers as they come, in their order. When half of its limit is over, those
/// that count begin in any case; when all of it is, the one that is posted next is the last: a device that cannot keep up would
/// only be waited for ever longer.
///
/// # Errors
/// What the endpoint says; [`Error::NotAnswered`] when a message is lost that may be.
pub fn ask<E: Endpoint, R: Recorder, S: Recorder>(
    endpoint: &mut E,
    times: &mut Times<'_, R, S>,
    schedule: &Schedule,
) -> Result<Kept, Error> {
    let clock = endpoint.clock();
    let mut warmup = schedule.warmup;
    let mut all = warmup + schedule.messages;
    // When each was due and posted. Never more than there is room for.
    let mut under_way: VecDeque<[u64; 2]> = VecDeque::with_capacity(schedule.window);
    let before = if schedule.fetches { endpoint.try_sent()? } else { 0 };
    let mut answers = Answers { fetches: schedule.fetches, before, taken: 0 };
    let begin = clock.now().0 + schedule.period as u64;
    let due = |message: u64| begin + (message as f64 * schedule.period) as u64;
    let limit = clock.ticks(schedule.limit);
    let (warm, over) = (begin.saturating_add(limit / 2), begin.saturating_add(limit));
    let (mut sent, mut next) = (0, begin);
    let (mut kept, mut has_waited) = (Kept::default(), false);
    // What is answered out of its order would be another message's time: one that is lost ends it.
    let patience = if schedule.is_reliable { u64::MAX } else { clock.ticks(QUIET) + schedule.period as u64 };
    let mut lost_at = begin.saturating_add(patience);
    while answers.taken < all {
        let now = clock.now();
        let has_room = sent < all && under_way.len() < schedule.window;
        has_waited |= !has_room && sent < all && now.0 >= next;
        if has_room && now.0 >= next {
            if sent < warmup && now.0 > warm {
                (warmup, all) = (sent, sent + schedule.messages);
            }
            if sent >= warmup && now.0 > over {
                all = sent + 1;
            }
            let mark = if sent + 1 == all { Mark::Last } else { Mark::More };
            if endpoint.try_send(mark)? == Posted::Queued {
                under_way.push_back([next, now.0]);
                if sent >= warmup {
                    times.lateness.record(now.0 - next);
                    kept.late += u64::from((now.0 - next) as f64 > schedule.period);
                    kept.waited += u64::from(has_waited);
                    kept.posts[0] = if sent == warmup { now.0 } else { kept.posts[0] };
                    kept.posts[1] = now.0;
                }
                has_waited = false;
                sent += 1;
                next = due(sent);
            }
        }
        if answers.comes(endpoint)? {
            let now = clock.now();
            if let Some([due, posted]) = under_way.pop_front().filter(|_| answers.taken > warmup) {
                times.response.record(now.0 - due);
                times.rtt.record(now.0 - posted);
            }
            kept.end = now.0;
            lost_at = now.0.saturating_add(patience);
            endpoint.replenish()?;
            continue;
        }
        if !under_way.is_empty() && now.0 > lost_at {
            return Err(Error::NotAnswered { answered: answers.taken, sent });
        }
        endpoint.idle_until(Ticks(if has_room { next } else { lost_at }))?;
    }
    endpoint.flush()?;
    Ok(Kept { messages: all - warmup, ..kept })
}

/// How long nothing comes where a message must have been lost.
const QUIET: Duration = Duration::from_secs(2);

/// The answers of messages.
struct Answers {
    fetches: bool,
    /// Requests that were complete before the first message.
    before: u64,
    taken: u64,
}

impl Answers {
    /// Takes the next if it has come.
    #[inline]
    fn comes<E: Endpoint>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        let has_come = match self.fetches {
            true => endpoint.try_sent()? - self.before > self.taken,
            false => endpoint.try_receive()?.is_some(),
        };
        self.taken += u64::from(has_come);
        Ok(has_come)
    }
}

/// Tells all that load the device to begin, and waits until each is at it.
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when one of them does not answer.
pub fn begin<C: Endpoint>(control: &mut C) -> Result<(), Error> {
    let loaders = control.lanes();
    for _ in 0..loaders {
        control.send(Mark::More)?;
    }
    for _ in 0..loaders {
        control.receive()?;
    }
    control.replenish()
}

/// Tells them to stop.
///
/// # Errors
/// What the endpoint says.
pub fn end<C: Endpoint>(control: &mut C) -> Result<(), Error> {
    for _ in 0..control.lanes() {
        control.send(Mark::Last)?;
    }
    control.flush()
}

/// Loads the device from when rank 0 says so, for as long as it wants, and counts what is acknowledged. Says that it is at it
/// when the first messages are done.
///
/// # Errors
/// What the endpoints say; [`Error::Deadline`] when nobody says when it is over.
pub(crate) fn load<E: Endpoint, C: Endpoint>(
    endpoint: &mut E,
    control: &mut C,
    progress: &mut Progress,
) -> Result<Burst, Error> {
    let clock = endpoint.clock();
    let before = endpoint.try_sent()?;
    control.receive()?;
    control.replenish()?;
    let begin = clock.now();
    progress.see(begin, 0);
    let (mut total, mut done, mut end) = (0, 0, begin);
    loop {
        total += post_batch(endpoint)?;
        let sent = endpoint.try_sent()? - before;
        if control.try_receive()?.is_some() {
            break;
        }
        if sent == done {
            endpoint.idle()?;
            continue;
        }
        end = clock.now();
        progress.see(end, sent);
        if done == 0 {
            control.send(Mark::Last)?;
        }
        done = sent;
        endpoint.give_way()?;
    }
    endpoint.send(Mark::Last)?;
    endpoint.flush()?;
    control.flush()?;
    Ok(Burst { begin, end, messages: done, total: total + 1 })
}

#[cfg(test)]
mod tests;
