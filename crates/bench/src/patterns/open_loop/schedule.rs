//! Open loop: messages go out when they are due, whether or not earlier ones are answered, and each
//! is timed from when it was due. A sender that waited for a slow answer would send less just when
//! messages have to wait longest, and would not notice (coordinated omission).
//!
//! Other ranks may load the device. Rank 0 tells the loaders when to start, waits until all of them
//! send, and tells them to stop when it has its answers.

use std::collections::VecDeque;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::pattern::Progress;
use crate::pattern::flood::{AT_ONCE, Burst};

/// When messages are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// The time from one message to the next, in ticks.
    pub period: f64,
    /// Messages before the first that counts, at the same rate.
    pub warmup: u64,
    /// Messages that count.
    pub messages: u64,
    /// The most outstanding messages: what the queues hold. Further messages wait and may be late.
    pub window: usize,
    /// Whether the operation itself brings the answer.
    pub fetches: bool,
    /// The time limit until the last message is posted.
    pub limit: Duration,
    /// Whether messages cannot be lost.
    pub is_reliable: bool,
}

impl Schedule {
    /// After this time without an answer, in ticks, a message counts as lost. The next answer may
    /// not identify its message, and its time would then be that of another message.
    fn patience(&self, clock: Clock) -> u64 {
        if self.is_reliable { u64::MAX } else { clock.ticks(QUIET) + self.period as u64 }
    }
}

/// The recorders of the times of messages.
#[derive(Debug)]
pub(super) struct Times<'a, R, S> {
    /// From when a message was due to its answer.
    pub response: &'a mut R,
    /// From when it was posted to its answer.
    pub rtt: &'a mut S,
    /// From when it was due to when it was posted.
    pub lateness: &'a mut S,
}

/// How the schedule was kept, of the messages that count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct RateKept {
    /// Their number: all of the schedule, unless the limit was over before, or the point was cut.
    pub messages: u64,
    /// Whether a signal has ended the point early.
    pub is_cut: bool,
    /// Messages that were posted after the next was due.
    pub late: u64,
    /// Messages that were due when there was no room for them.
    pub waited: u64,
    /// When the first and the last were posted, in ticks.
    pub posts: [u64; 2],
    /// When the last answer arrived, in ticks.
    pub end: u64,
    /// Messages that were never answered, and have no time.
    pub lost: u64,
}

impl RateKept {
    /// Records the post of a message that counts.
    #[inline]
    fn posted(&mut self, now: u64, is_first: bool, is_late: bool, has_waited: bool) {
        self.late += u64::from(is_late);
        self.waited += u64::from(has_waited);
        self.posts = [if is_first { now } else { self.posts[0] }, now];
    }
}

/// Posts messages when they are due and takes the answers as they arrive: in order, or in any order
/// where messages can be lost and answers carry numbers. When half of the limit is over, the
/// warm-up ends in any case; when all of it is over, the next message is the last: a point with a
/// device that cannot keep up would take longer and longer. It is also the last when the point is
/// cut, and a warm-up ends then.
///
/// # Errors
/// The errors of the endpoint; [`Error::NotAnswered`] when a message is lost and answers carry no
/// numbers, or when no message is answered any more.
pub(super) fn ask<E: Endpoint, R: Recorder, S: Recorder>(
    endpoint: &mut E,
    times: &mut Times<'_, R, S>,
    schedule: &Schedule,
) -> Result<RateKept, Error> {
    let clock = endpoint.clock();
    let mut warmup = schedule.warmup;
    let mut all = warmup + schedule.messages;
    let mut under_way = UnderWay::new(schedule.window, endpoint.numbers());
    let mut answers = Answers::to_come(endpoint, schedule.fetches)?;
    let begin = clock.now().0 + schedule.period as u64;
    let due = |message: u64| begin + (message as f64 * schedule.period) as u64;
    let limit = clock.ticks(schedule.limit);
    let [warm, over] = [limit / 2, limit].map(|time| begin.saturating_add(time));
    let mut sent = 0;
    let mut next = begin;
    let mut kept = RateKept::default();
    let mut has_waited = false;
    let patience = schedule.patience(clock);
    let mut lost_at = begin.saturating_add(patience);
    while under_way.settled < all {
        let now = clock.now();
        if sent < all && now.0 >= next && !under_way.has_room() {
            kept.lost += u64::from(under_way.lose_overtaken().is_some_and(|message| message >= warmup));
        }
        let has_room = sent < all && under_way.has_room();
        has_waited |= !has_room && sent < all && now.0 >= next;
        if has_room && now.0 >= next {
            kept.is_cut |= cut::is_requested();
            if sent < warmup && (now.0 > warm || kept.is_cut) {
                (warmup, all) = (sent, sent + schedule.messages);
            }
            if sent >= warmup && (now.0 > over || kept.is_cut) {
                all = sent + 1;
            }
            let mark = if sent + 1 == all { Mark::Last } else { Mark::More };
            if endpoint.try_send(mark)? == Posted::Queued {
                under_way.sent.push_back(Some([next, now.0]));
                if sent >= warmup {
                    times.lateness.record(now.0 - next);
                    kept.posted(now.0, sent == warmup, (now.0 - next) as f64 > schedule.period, has_waited);
                }
                has_waited = false;
                sent += 1;
                next = due(sent);
            }
        }
        if answers.comes(endpoint)? {
            let now = clock.now();
            let answered = under_way.settle(answers.latest);
            if let Some((_, [due, posted])) = answered.filter(|(message, _)| *message >= warmup) {
                times.response.record(now.0 - due);
                times.rtt.record(now.0 - posted);
            }
            kept.end = now.0;
            lost_at = now.0.saturating_add(patience);
            endpoint.replenish()?;
            continue;
        }
        if !under_way.sent.is_empty() && now.0 > lost_at {
            let lost = under_way.lose_all(warmup).filter(|_| sent == all && answers.taken > 0);
            kept.lost += lost.ok_or(Error::NotAnswered { answered: answers.taken, sent })?;
        } else {
            // A lost message that is overtaken is given up as soon as its room is needed.
            let is_next = has_room || (sent < all && under_way.is_overtaken());
            endpoint.idle_until(Ticks(if is_next { next } else { lost_at }))?;
        }
    }
    part(endpoint)?;
    Ok(RateKept { messages: all - warmup, ..kept })
}

/// Lets the answering rank stop, where the last message may be lost.
fn part<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    if endpoint.numbers() > 0 {
        endpoint.send_sync()?;
    }
    endpoint.flush()
}

/// After this time without an answer, a message is lost.
const QUIET: Duration = Duration::from_secs(2);

/// Posted messages, from the first that is neither answered nor given up.
struct UnderWay {
    /// When each was due and posted; `None` for an answered message after an unanswered one. At
    /// most `room` entries.
    sent: VecDeque<Option<[u64; 2]>>,
    room: usize,
    /// The number of messages before them.
    settled: u64,
    /// How many different numbers answers carry; 0 where answers arrive in order and carry none.
    numbers: u64,
}

impl UnderWay {
    fn new(room: usize, numbers: u64) -> Self {
        // A late answer must not have the number of an outstanding message.
        let is_told = numbers >= 4 * room as u64;
        let numbers = if is_told { numbers } else { 0 };
        Self { sent: VecDeque::with_capacity(room), room, settled: 0, numbers }
    }

    fn has_room(&self) -> bool {
        self.sent.len() < self.room
    }

    /// Records an answer: returns its message, and when that was due and posted; `None` for an
    /// answer that arrived twice or too late.
    #[inline]
    fn settle(&mut self, number: Option<u64>) -> Option<(u64, [u64; 2])> {
        let (number, numbers) = match (number, self.numbers) {
            (Some(number), 1..) => (number, self.numbers),
            _ => (0, 1),
        };
        let ahead = (number + numbers - self.settled % numbers) % numbers;
        let times = self.sent.get_mut(usize::try_from(ahead).ok()?)?.take()?;
        let message = self.settled + ahead;
        self.pass();
        Some((message, times))
    }

    /// Whether the first message is not answered, but a later one is: the first message or its
    /// answer was lost.
    fn is_overtaken(&self) -> bool {
        self.sent.iter().any(Option::is_none)
    }

    /// Gives up the first message if it is overtaken; returns its number.
    fn lose_overtaken(&mut self) -> Option<u64> {
        if !self.is_overtaken() {
            return None;
        }
        let lost = self.settled;
        self.sent.pop_front();
        self.settled += 1;
        self.pass();
        Some(lost)
    }

    /// Gives up all messages; returns how many of those from `from` on were lost, where answers
    /// carry numbers.
    fn lose_all(&mut self, from: u64) -> Option<u64> {
        let is_lost = |(message, times): &(u64, Option<[u64; 2]>)| times.is_some() && *message >= from;
        let first = self.settled;
        self.settled += self.sent.len() as u64;
        let lost = (first..).zip(self.sent.drain(..)).filter(is_lost).count() as u64;
        (self.numbers > 0).then_some(lost)
    }

    /// Removes answered messages from the front.
    fn pass(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.settled += 1;
        }
    }
}

/// Answers each message until the last has arrived or, where messages can be lost, until rank 0
/// sends the word that there are no more.
///
/// # Errors
/// The errors of the endpoint.
pub(super) fn answer<E: Endpoint>(endpoint: &mut E, period: Duration) -> Result<(), Error> {
    let clock = endpoint.clock();
    let is_lossy = endpoint.numbers() > 0;
    let mut has_begun = false;
    let patience = 2 * QUIET + 2 * period;
    loop {
        let Some(arrival) = endpoint.try_receive()? else {
            // The word of rank 0 may have been lost.
            if is_lossy && has_begun && endpoint.quiet() > patience {
                break;
            }
            let until = if is_lossy { clock.now().0 + clock.ticks(patience) } else { u64::MAX };
            endpoint.idle_until(Ticks(until))?;
            continue;
        };
        has_begun = true;
        if !arrival.is_greeting {
            endpoint.answer(&arrival)?;
        }
        endpoint.replenish()?;
        if arrival.is_greeting || (!is_lossy && arrival.mark == Mark::Last) {
            break;
        }
    }
    endpoint.flush()
}

/// The answers of messages.
struct Answers {
    fetches: bool,
    /// Requests that were complete before the first message.
    before: u64,
    taken: u64,
    /// The number of the last answer.
    latest: Option<u64>,
}

impl Answers {
    /// The answers to messages that are sent from now on.
    fn to_come<E: Endpoint>(endpoint: &mut E, fetches: bool) -> Result<Self, Error> {
        let before = if fetches { endpoint.try_sent()? } else { 0 };
        Ok(Self { fetches, before, taken: 0, latest: None })
    }

    /// Takes the next answer, if it has arrived.
    #[inline]
    fn comes<E: Endpoint>(&mut self, endpoint: &mut E) -> Result<bool, Error> {
        let has_come = match self.fetches {
            true => endpoint.try_sent()? - self.before > self.taken,
            false => {
                self.latest = endpoint.try_receive()?.map(|arrival| arrival.number);
                self.latest.is_some()
            }
        };
        self.taken += u64::from(has_come);
        Ok(has_come)
    }
}

/// Tells all loaders to start, and waits until each of them sends.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a loader does not answer.
pub(super) fn begin<C: Endpoint>(control: &mut C) -> Result<(), Error> {
    let loaders = control.lanes();
    for _ in 0..loaders {
        control.send(Mark::More)?;
    }
    for _ in 0..loaders {
        control.receive()?;
    }
    control.replenish()
}

/// Tells all loaders to stop.
///
/// # Errors
/// The errors of the endpoint.
pub(super) fn end<C: Endpoint>(control: &mut C) -> Result<(), Error> {
    for _ in 0..control.lanes() {
        control.send(Mark::Last)?;
    }
    control.flush()
}

/// Loads the device from when rank 0 tells it to start until rank 0 tells it to stop, and counts
/// acknowledged messages. Answers rank 0 when the first messages are complete.
///
/// # Errors
/// The errors of the endpoints; [`Error::Deadline`] when rank 0 does not tell it to stop.
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
    let mut total = 0;
    let mut done = 0;
    let mut end = begin;
    loop {
        total += endpoint.try_send_some(AT_ONCE)?;
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
        endpoint.yield_cpu()?;
    }
    endpoint.send(Mark::Last)?;
    endpoint.flush()?;
    control.flush()?;
    Ok(Burst { begin, end, messages: done, total: total + 1 })
}

#[cfg(test)]
mod tests;
