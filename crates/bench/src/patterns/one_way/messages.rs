//! One-way messages (Potter 2018): messages go from rank 0 to rank 1, and each rank stamps every
//! one.
//!
//! The sender posts in bursts. A burst ends when the sender knows that all of it was sent, and the
//! receiver has answered with a message that is not measured. A pause is the shortest time from one
//! post to the next. The coordinator merges the stamps of both ranks.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::pattern::Watch;

/// How messages follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The number of all messages, warm-up included.
    pub messages: u64,
    /// Messages that are posted without waiting for the receiver.
    pub burst: u64,
    /// The shortest time from one post to the next.
    pub pause: Duration,
    /// Whether the sender stamps a posted message repeatedly until it knows that it was sent.
    pub until_sent: bool,
    /// Whether messages cannot be lost.
    pub is_reliable: bool,
}

impl Pace {
    /// After this time without a message, the awaited message is lost.
    fn patience(&self) -> Duration {
        QUIET + 2 * self.pause
    }

    /// The number of bursts.
    pub(crate) fn bursts(&self) -> u64 {
        self.messages.div_ceil(self.burst.max(1))
    }
}

/// Keeps stamps by the number of a message.
pub(crate) trait Stamper {
    /// Records when a message was about to be posted.
    fn submitted(&mut self, message: u64, at: Ticks);
    /// Records when the sender learnt that a message was sent.
    fn completed(&mut self, message: u64, at: Ticks);
    /// Records when a message was received, and the stamp that it carried.
    fn received(&mut self, message: u64, at: Ticks, carried: Option<Ticks>);
    /// Records when the last message of a burst was answered (rank 1), or its answer arrived (rank
    /// 0).
    fn answered(&mut self, burst: u64, at: Ticks);
}

/// Posts the messages (rank 0); returns how many: all, unless the point is cut. Then the next
/// message is the last of its burst, and no other burst follows.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when the receiver does not answer.
pub(crate) fn submit<E: Endpoint, S: Stamper>(
    endpoint: &mut E,
    stamper: &mut S,
    watch: &mut Watch,
    pace: &Pace,
) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let pause = clock.ticks(pace.pause);
    let mut sender = Sender { clock, before: endpoint.try_sent()?, sent: 0, watch };
    let mut posted = 0;
    let mut due = 0;
    for burst in 0..pace.bursts() {
        let mut end = (posted + pace.burst).min(pace.messages);
        while posted < end {
            while !cut::is_over(sender.clock.now(), due) {
                sender.collect_or(endpoint, stamper, |endpoint| endpoint.idle_until(Ticks(due)))?;
            }
            if cut::is_requested() {
                end = posted + 1;
            }
            let mark = if posted + 1 == end { Mark::Last } else { Mark::More };
            let at = sender.post(endpoint, stamper, posted, mark, pace.until_sent)?;
            due = at.0.saturating_add(pause);
            posted += 1;
            if pace.until_sent {
                sender.restamp(endpoint, stamper, posted)?;
            }
        }
        while sender.sent < posted {
            sender.collect_or(endpoint, stamper, E::idle)?;
        }
        let is_answered = answer(endpoint, pace, burst, &mut sender)?;
        if is_answered {
            stamper.answered(burst, clock.now());
        }
        let is_last = burst + 1 == pace.bursts();
        let is_over = is_last || cut::is_requested();
        if is_over && !(is_last && is_answered) {
            // The receiver may not know that no more messages follow.
            endpoint.send_sync_as(CLOSING)?;
        }
        endpoint.replenish()?;
        if is_over {
            break;
        }
    }
    endpoint.flush()?;
    Ok(posted)
}

/// Waits for the answer to a burst, and where messages can be lost, for a limited time. Returns
/// whether the answer arrived.
fn answer<E: Endpoint>(
    endpoint: &mut E,
    pace: &Pace,
    burst: u64,
    sender: &mut Sender<'_>,
) -> Result<bool, Error> {
    let until = match pace.is_reliable {
        true => u64::MAX,
        false => sender.clock.now().0.saturating_add(sender.clock.ticks(2 * pace.patience())),
    };
    loop {
        match endpoint.try_receive()? {
            Some(arrival) if arrival.is_greeting && arrival.number == burst => break,
            // A late answer to a burst that was given up.
            Some(_) => endpoint.replenish()?,
            None => {
                let now = sender.clock.now();
                if now.0 > until {
                    return Ok(false);
                }
                sender.watch.see(now);
                endpoint.idle_until(Ticks(until))?;
            }
        }
    }
    sender.watch.pass();
    Ok(true)
}

/// The state of the sender.
struct Sender<'w> {
    clock: Clock,
    /// Requests that were sent before the first message.
    before: u64,
    /// Messages that the sender knows to be sent.
    sent: u64,
    watch: &'w mut Watch,
}

impl Sender<'_> {
    /// Posts a message as soon as there is room; returns its stamp.
    #[inline]
    fn post<E: Endpoint, S: Stamper>(
        &mut self,
        endpoint: &mut E,
        stamper: &mut S,
        message: u64,
        mark: Mark,
        until_sent: bool,
    ) -> Result<Ticks, Error> {
        loop {
            let at = self.clock.now();
            if until_sent {
                endpoint.carry(message, at)?;
            }
            if endpoint.try_send(mark)? == Posted::Queued {
                stamper.submitted(message, at);
                self.watch.pass();
                self.collect(endpoint, stamper)?;
                return Ok(at);
            }
            self.collect_or(endpoint, stamper, E::idle)?;
        }
    }

    /// Stamps the last posted message repeatedly until the sender knows that it was sent.
    #[inline]
    fn restamp<E: Endpoint, S: Stamper>(
        &mut self,
        endpoint: &mut E,
        stamper: &mut S,
        posted: u64,
    ) -> Result<(), Error> {
        while self.sent < posted {
            endpoint.carry(posted - 1, self.clock.now())?;
            if !self.collect(endpoint, stamper)? {
                endpoint.idle()?;
            }
        }
        Ok(())
    }

    /// Takes a completion, if there is one.
    #[inline]
    fn collect<E: Endpoint, S: Stamper>(&mut self, endpoint: &mut E, stamper: &mut S) -> Result<bool, Error> {
        let sent = endpoint.try_sent()? - self.before;
        if sent == self.sent {
            return Ok(false);
        }
        // Of several messages that complete together, only the signalled one has a time.
        stamper.completed(sent - 1, self.clock.now());
        self.sent = sent;
        Ok(true)
    }

    /// Takes a completion, or is idle.
    #[inline]
    fn collect_or<E: Endpoint, S: Stamper>(
        &mut self,
        endpoint: &mut E,
        stamper: &mut S,
        idle: impl FnOnce(&mut E) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.collect(endpoint, stamper)? {
            self.watch.pass();
            return Ok(());
        }
        self.watch.see(self.clock.now());
        idle(endpoint)
    }
}

/// Receives the messages (rank 1), and answers each burst. Returns the number of the greeting that
/// ended this, if one did.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when no message arrives, or some are missing
/// over a reliable service.
pub(crate) fn take<E: Endpoint, S: Stamper>(
    endpoint: &mut E,
    stamper: &mut S,
    watch: &mut Watch,
    pace: &Pace,
) -> Result<Option<u64>, Error> {
    let clock = endpoint.clock();
    let mut heard = None;
    let mut missing = pace.messages;
    let mut progress = BurstProgress::new(pace, clock);
    while progress.bursts < progress.all {
        let Some(arrival) = endpoint.try_receive()? else {
            let now = clock.now();
            watch.see(now);
            if now.0 <= progress.until || progress.has_time(endpoint.quiet(), now) {
                endpoint.idle_until(Ticks(progress.until))?;
                continue;
            }
            if !progress.is_open {
                break;
            }
            // The end of the burst was lost. The answer has no stamp, as it follows no message.
            endpoint.send_sync_as(burst_number(progress.bursts))?;
            progress.ends(progress.bursts, clock.now());
            continue;
        };
        if arrival.is_greeting {
            // The sender has closed, or has gone on to the exchanges.
            endpoint.replenish()?;
            heard = Some(arrival.number);
            break;
        }
        let now = clock.now();
        stamper.received(arrival.number, now, endpoint.carried(&arrival)?);
        watch.see(now);
        endpoint.replenish()?;
        missing = missing.saturating_sub(1);
        let burst = arrival.number / pace.burst;
        if !progress.continues(burst, now) {
            continue;
        }
        if arrival.mark == Mark::Last {
            if burst + 1 == progress.all && !pace.is_reliable {
                heard = await_late(endpoint, stamper, watch, pace, missing)?;
                if heard.is_some() {
                    break;
                }
            }
            let at = clock.now();
            stamper.answered(burst, at);
            endpoint.send_sync_as(burst_number(burst))?;
            progress.ends(burst, at);
            watch.pass();
        }
    }
    endpoint.flush()?;
    Ok(heard)
}

/// Receives messages that the very last message has overtaken, until all missing ones have arrived,
/// or none arrives for some time. Returns the number of the greeting that ended this, if one did.
fn await_late<E: Endpoint, S: Stamper>(
    endpoint: &mut E,
    stamper: &mut S,
    watch: &mut Watch,
    pace: &Pace,
    mut missing: u64,
) -> Result<Option<u64>, Error> {
    let clock = endpoint.clock();
    let patience = clock.ticks(pace.patience());
    let mut until = clock.now().0.saturating_add(patience);
    while missing > 0 {
        let arrival = endpoint.try_receive()?;
        let now = clock.now();
        watch.see(now);
        let Some(arrival) = arrival else {
            if now.0 > until {
                break;
            }
            endpoint.idle_until(Ticks(until))?;
            continue;
        };
        if !arrival.is_greeting {
            stamper.received(arrival.number, now, endpoint.carried(&arrival)?);
            (missing, until) = (missing - 1, now.0.saturating_add(patience));
        }
        endpoint.replenish()?;
        if arrival.is_greeting {
            return Ok(Some(arrival.number));
        }
    }
    Ok(None)
}

/// The number of the answer to a burst.
fn burst_number(burst: u64) -> u32 {
    // A point has far fewer bursts than 2^32.
    burst as u32
}

/// The progress of the receiver, and how long it waits for the next message.
struct BurstProgress {
    clock: Clock,
    is_reliable: bool,
    /// In ticks.
    patience: u64,
    /// The number of all bursts.
    all: u64,
    /// The number of bursts that are over.
    bursts: u64,
    /// Whether a message of the next burst has arrived.
    is_open: bool,
    /// If no message arrives before this instant, in ticks, one was lost.
    until: u64,
}

impl BurstProgress {
    fn new(pace: &Pace, clock: Clock) -> Self {
        let is_reliable = pace.is_reliable;
        let patience = clock.ticks(pace.patience());
        let all = pace.bursts();
        Self { clock, is_reliable, patience, all, bursts: 0, is_open: false, until: u64::MAX }
    }

    /// After this time without a message, in ticks, one was lost. Infinite where no message can be
    /// lost, or the receiver cannot tell.
    #[inline]
    fn limit(&self) -> u64 {
        match (self.is_reliable, self.is_open) {
            (true, _) => u64::MAX,
            (false, true) => self.patience,
            // The sender must have ended, although its last burst and its closing never arrived.
            (false, false) if self.bursts > 0 && self.bursts + 1 == self.all => 4 * self.patience,
            (false, false) => u64::MAX,
        }
    }

    /// Whether it is too early to give up, although no message seems to have arrived in time: this
    /// rank may not have polled.
    #[cold]
    fn has_time(&mut self, quiet: Duration, now: Ticks) -> bool {
        let left = self.limit().checked_sub(self.clock.ticks(quiet));
        self.until = now.0.saturating_add(left.unwrap_or_default());
        left.is_some()
    }

    /// Records the arrival of a message of a burst; returns whether the burst is not over yet.
    #[inline]
    fn continues(&mut self, burst: u64, now: Ticks) -> bool {
        let is_new = burst >= self.bursts;
        if is_new {
            (self.bursts, self.is_open) = (burst, true);
        }
        self.heard(now);
        is_new
    }

    /// Records when a burst was over.
    #[inline]
    fn ends(&mut self, burst: u64, now: Ticks) {
        (self.bursts, self.is_open) = (burst + 1, false);
        self.heard(now);
    }

    #[inline]
    fn heard(&mut self, now: Ticks) {
        self.until = now.0.saturating_add(self.limit());
    }
}

/// Exchanges messages that are not measured, and stamps them: `sent` and `returned` of each at rank
/// 0, `arrived` and `answered` at rank 1 ([`measure::clock::Exchange`]). `heard` is a greeting that
/// rank 1 has already received.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a message is lost.
pub(crate) fn exchange<E: Endpoint>(
    endpoint: &mut E,
    is_first: bool,
    numbers: std::ops::Range<u32>,
    heard: Option<u64>,
    into: &mut Vec<u64>,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    for number in numbers {
        if is_first {
            into.push(clock.now().0);
            endpoint.send_sync_as(number)?;
            endpoint.await_sync_of(number)?;
            into.push(clock.now_after_loads().0);
        } else {
            if heard != Some(number.into()) {
                endpoint.await_sync_of(number)?;
            }
            into.push(clock.now_after_loads().0);
            into.push(clock.now().0);
            endpoint.send_sync_as(number)?;
        }
        endpoint.replenish()?;
    }
    endpoint.flush()
}

/// The first number of greetings that answer no burst: the sender has no more messages.
const CLOSING: u32 = 1 << 28;
/// The receiver has allocated its arrays.
pub(crate) const READY: u32 = CLOSING + 1;
/// The first number of the exchanges before the messages.
pub(crate) const BEFORE: u32 = CLOSING + (1 << 16);
/// The first number of the exchanges after the messages.
pub(crate) const AFTER: u32 = CLOSING + (2 << 16);
/// The number of exchanges before the messages, and after them, where the ranks have different
/// clocks.
pub(crate) const EXCHANGES: u32 = 64;

/// After this time without a message of a burst, it is lost: far above any pause of a healthy
/// sender, far below a point's time limit.
const QUIET: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests;
