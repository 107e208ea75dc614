//! Samples at a fixed rate (Potter 2018, VILLASnode): a generator gives a sample to its endpoint
//! when the sample is due, and the receiver stamps each sample that arrives. A step that the
//! generator was late for is missed, and a sample for which the endpoint has no room is unsent. The
//! generator waits for neither, because the next step is due.

use std::time::Duration;

use measure::clock::Ticks;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::pattern::Watch;

/// A step that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tick {
    /// When it was due, in ticks.
    pub(crate) due: u64,
    /// When that was noticed: read after the wait, before any other work.
    pub(crate) now: Ticks,
    /// Steps that have become due, this one included; those after it are missed.
    pub(crate) passed: u64,
    /// Whether it was due before the wait began: the work before took longer than a period.
    pub(crate) is_behind: bool,
}

/// Tells when steps are due. Step n is due n + 1 periods after the start.
pub(crate) trait Timer {
    /// Starts the first period now.
    ///
    /// # Errors
    /// When the kernel has no such timer.
    fn start(&mut self) -> Result<(), Error>;

    /// Waits until a step is due, the first that has not passed; a timer that polls calls `turn` on
    /// each turn of its wait.
    ///
    /// # Errors
    /// The errors of `turn` and of the kernel.
    fn wait(&mut self, step: u64, turn: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error>;

    /// The time from one step to the next, in ns.
    fn period_ns(&self) -> f64;
}

/// What the generator keeps of its samples.
pub(crate) trait SourceLog {
    /// Records that the sample of a step was generated, and whether the endpoint took it or had no
    /// room.
    fn generated(&mut self, step: u64, tick: &Tick, values: &[f64], is_transmitted: bool);
}

/// What the receiver keeps of the samples that arrive.
pub(crate) trait TargetLog {
    /// Records the message that the generator sends before the first sample.
    fn started(&mut self, words: [u64; 3]);

    /// Records a sample that has arrived; the endpoint holds its words.
    ///
    /// # Errors
    /// The errors of the endpoint.
    fn received<E: Endpoint>(&mut self, sample: &Received, endpoint: &E) -> Result<(), Error>;
}

/// The values of samples.
pub(crate) trait Values {
    /// The values of a step.
    fn at(&mut self, step: u64) -> &[f64];
}

/// The contents of a sample, and when it arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Received {
    pub(crate) step: u64,
    /// When it was due and when it was generated, in ticks of the generator's clock.
    pub(crate) due: u64,
    pub(crate) submitted: u64,
    pub(crate) at: Ticks,
}

/// The words of a sample before its values. The first has four bytes of the endpoint and four with
/// the number of the step, the second when the step was due, the third when it was generated.
pub(crate) const META_WORDS: usize = 3;
const STEP_SHIFT: u32 = 32;
/// Replaces the step in a message that is no sample: the generator's three words follow.
const HAIL: u64 = u32::MAX as u64;

/// What the ranks have to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// What the generator sends before the first sample.
    pub(crate) start_message: [u64; 3],
    /// The number of all steps, warm-up included: below 2^32.
    pub(crate) steps: u64,
    /// The time from one step to the next.
    pub(crate) period: Duration,
    /// Whether every sample that the endpoint takes arrives.
    pub(crate) is_reliable: bool,
}

/// Turns of a wait between two checks of the point's time limit, which also let other ranks of the
/// same CPU run.
const LOOKS_EVERY: u32 = 32;
/// How long a rank waits for an answer before it repeats a word.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often the generator repeats that it has finished, where a word may be lost.
const CLOSINGS: u32 = 20;
/// How long nothing arrives, after the last step was due, until the word of the end must be lost.
const QUIET: Duration = Duration::from_secs(3);
/// How long after the end samples may arrive that the word of the end has overtaken.
const LATE: Duration = Duration::from_millis(20);

/// How often the generator repeats that it parts, where a word may be lost: the receiver does not
/// wait long for it.
const PARTINGS: u32 = 3;

/// The word of a greeting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    /// The receiver is ready.
    Ready,
    /// The generator has heard that.
    Go,
    /// The receiver has heard that.
    Start,
    /// The generator has sent the last sample.
    Closing,
    /// The receiver has taken the last sample.
    Closed,
    /// The generator has finished all work that must not be disturbed.
    Parting,
}

impl Word {
    const ALL: [Self; 6] = [Self::Ready, Self::Go, Self::Start, Self::Closing, Self::Closed, Self::Parting];
    /// The first number of greetings that stands for a word.
    const FIRST: u32 = 1 << 27;

    /// The number of a word that is sent for the nth time. Successive numbers differ, because an
    /// endpoint takes two messages with the same number for a duplicate.
    fn number(self, time: u32) -> u32 {
        Self::FIRST + (time % 2) * Self::ALL.len() as u32 + self as u32
    }

    /// The word of a number.
    fn of(number: u64) -> Option<Self> {
        let place = number.checked_sub(Self::FIRST.into())?;
        let all = Self::ALL.len() as u64;
        if place < 2 * all { Self::ALL.get((place % all) as usize).copied() } else { None }
    }
}

/// The words that a rank sends.
#[derive(Default)]
struct Words {
    said: u32,
}

impl Words {
    fn say<E: Endpoint>(&mut self, endpoint: &mut E, word: Word) -> Result<(), Error> {
        self.said += 1;
        endpoint.send_sync_as(word.number(self.said))
    }
}

/// Generates samples (rank 0), from when the receiver is ready until it has taken the last sample.
/// Returns the number of steps that have passed: all, unless the point is cut.
///
/// # Errors
/// The errors of the endpoint and the timer; [`Error::Deadline`] when the receiver does not answer.
pub(crate) fn generate<E: Endpoint, T: Timer, V: Values, L: SourceLog>(
    endpoint: &mut E,
    timer: &mut T,
    values: &mut V,
    log: &mut L,
    watch: &mut Watch,
    schedule: &Schedule,
) -> Result<u64, Error> {
    await_target(endpoint)?;
    start_message(endpoint, schedule.start_message)?;
    timer.start()?;
    let mut step = 0;
    while step < schedule.steps && !cut::is_requested() {
        let mut turns = 0;
        let tick = timer.wait(step, |now| {
            watch.see(now);
            endpoint.try_sent()?;
            turns += 1;
            if turns % LOOKS_EVERY == 1 { endpoint.yield_cpu() } else { Ok(()) }
        })?;
        watch.see(tick.now);
        watch.pass();
        // Steps after the last do not exist.
        let tick = Tick { passed: tick.passed.min(schedule.steps - step), ..tick };
        let values = values.at(step);
        let is_transmitted = transmit(endpoint, step, &tick, values)?;
        log.generated(step, &tick, values, is_transmitted);
        step += tick.passed;
    }
    close(endpoint, schedule)?;
    Ok(step)
}

/// Sends the generator's message before the first sample.
fn start_message<E: Endpoint>(endpoint: &mut E, words: [u64; 3]) -> Result<(), Error> {
    while !endpoint.has_room()? {
        endpoint.idle()?;
    }
    endpoint.put(0, HAIL << STEP_SHIFT)?;
    for (word, value) in (1..).zip(words) {
        endpoint.put(word, value)?;
    }
    endpoint.send(Mark::More)
}

/// Gives a sample to the endpoint; returns whether there was room.
#[inline]
fn transmit<E: Endpoint>(endpoint: &mut E, step: u64, tick: &Tick, values: &[f64]) -> Result<bool, Error> {
    if !endpoint.has_room()? {
        return Ok(false);
    }
    endpoint.put(0, step << STEP_SHIFT)?;
    endpoint.put(1, tick.due)?;
    endpoint.put(2, tick.now.0)?;
    for (word, value) in (META_WORDS..).zip(values) {
        endpoint.put(word, value.to_bits())?;
    }
    Ok(endpoint.try_send(Mark::More)? == Posted::Queued)
}

/// Waits until the receiver is ready, and tells it so. Each rank repeats its word until it hears
/// the other rank's, because a message may be lost while the peer has not subscribed yet.
fn await_target<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    let mut is_ready = false;
    let mut words = Words::default();
    loop {
        match heard(endpoint, AGAIN_AFTER)? {
            Some(Word::Start) => return Ok(()),
            Some(Word::Ready) => is_ready = true,
            Some(_) => continue,
            None => {}
        }
        if is_ready {
            words.say(endpoint, Word::Go)?;
        }
    }
}

/// Sends the word that there are no more samples, and waits until all are taken.
fn close<E: Endpoint>(endpoint: &mut E, schedule: &Schedule) -> Result<(), Error> {
    // Where nothing is lost, the word is sent once, and the answer awaited without limit.
    let closings = if schedule.is_reliable { 1 } else { CLOSINGS };
    let patience = if schedule.is_reliable { Duration::MAX } else { AGAIN_AFTER };
    let mut words = Words::default();
    for _ in 0..closings {
        words.say(endpoint, Word::Closing)?;
        loop {
            match heard(endpoint, patience)? {
                Some(Word::Closed) => return endpoint.flush(),
                Some(_) => {}
                None => break,
            }
        }
    }
    endpoint.flush()
}

/// Sends the word that the generator (rank 0) has finished all work that must not be disturbed.
///
/// # Errors
/// The errors of the endpoint.
pub(crate) fn part<E: Endpoint>(endpoint: &mut E, schedule: &Schedule) -> Result<(), Error> {
    let mut words = Words::default();
    for _ in 0..if schedule.is_reliable { 1 } else { PARTINGS } {
        words.say(endpoint, Word::Parting)?;
    }
    endpoint.flush()
}

/// Waits until the generator parts (rank 1). Where a word may be lost, waits at most `patience`
/// after the last word.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when the word does not arrive although nothing
/// is lost.
pub(crate) fn await_parting<E: Endpoint>(
    endpoint: &mut E,
    schedule: &Schedule,
    patience: Duration,
) -> Result<(), Error> {
    let patience = if schedule.is_reliable { Duration::MAX } else { patience };
    let mut words = Words::default();
    loop {
        match heard(endpoint, patience)? {
            Some(Word::Parting) | None => return Ok(()),
            // The generator has not heard it: repeat it.
            Some(Word::Closing) => words.say(endpoint, Word::Closed)?,
            Some(_) => {}
        }
    }
}

/// The next word that arrives; `None` where none arrives within `patience`. Other messages are
/// ignored.
fn heard<E: Endpoint>(endpoint: &mut E, patience: Duration) -> Result<Option<Word>, Error> {
    let clock = endpoint.clock();
    let until = clock.now().0.saturating_add(clock.ticks(patience));
    loop {
        if let Some(arrival) = endpoint.try_receive()? {
            endpoint.replenish()?;
            if let Some(word) = Word::of(arrival.number).filter(|_| arrival.is_greeting) {
                return Ok(Some(word));
            }
            continue;
        }
        if clock.now().0 > until {
            return Ok(None);
        }
        endpoint.idle_until(Ticks(until))?;
    }
}

/// Takes samples (rank 1) until the generator sends the word that there are no more, or, where that
/// may be lost, nothing arrives for some time.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when nothing arrives.
pub(crate) fn take<E: Endpoint, L: TargetLog>(
    endpoint: &mut E,
    log: &mut L,
    watch: &mut Watch,
    schedule: &Schedule,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    await_source(endpoint)?;
    // After the first sample: the time at which the point is over even without a word of the end,
    // and whether that time had passed at the last check.
    let mut until = u64::MAX;
    let mut is_over = false;
    let mut is_closing = false;
    let mut words = Words::default();
    // Steps that are still to come: however late the generator is, it continues before they end.
    let mut left = schedule.steps;
    let [period, quiet, late] = [schedule.period, QUIET, LATE].map(|time| clock.ticks(time));
    loop {
        if endpoint.fill()? {
            watch.see(clock.now());
            continue;
        }
        let Some(arrival) = endpoint.try_receive()? else {
            let now = clock.now();
            watch.see(now);
            if now.0 <= until {
                endpoint.idle_until(Ticks(until))?;
            } else if is_over {
                break;
            }
            // A sample may have arrived while this rank was preempted: check once more.
            is_over = now.0 > until;
            continue;
        };
        let at = clock.now();
        is_over = false;
        if arrival.is_greeting {
            endpoint.replenish()?;
            match Word::of(arrival.number) {
                Some(Word::Go) => words.say(endpoint, Word::Start)?,
                Some(Word::Closing) if schedule.is_reliable => break,
                Some(Word::Closing) => is_closing = true,
                _ => continue,
            }
        } else {
            watch.see(at);
            let sample = sample(endpoint, at)?;
            if sample.step == HAIL {
                log.started([sample.due, sample.submitted, endpoint.get(META_WORDS)?]);
            } else {
                log.received(&sample, endpoint)?;
                left = schedule.steps.saturating_sub(sample.step);
            }
            endpoint.replenish()?;
        }
        watch.pass();
        until = match (is_closing, schedule.is_reliable) {
            (true, _) => at.0.saturating_add(late),
            (false, true) => u64::MAX,
            (false, false) => at.0.saturating_add(left.saturating_mul(period)).saturating_add(quiet),
        };
    }
    words.say(endpoint, Word::Closed)?;
    endpoint.flush()
}

/// Reads the sample that has just arrived.
#[inline]
fn sample<E: Endpoint>(endpoint: &E, at: Ticks) -> Result<Received, Error> {
    let first = endpoint.get(0)?;
    let due = endpoint.get(1)?;
    let submitted = endpoint.get(2)?;
    Ok(Received { step: first >> STEP_SHIFT, due, submitted, at })
}

/// Repeats that this rank is ready until the generator has heard it.
fn await_source<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    let mut words = Words::default();
    loop {
        words.say(endpoint, Word::Ready)?;
        if heard(endpoint, AGAIN_AFTER)? == Some(Word::Go) {
            return words.say(endpoint, Word::Start);
        }
    }
}

#[cfg(test)]
mod tests;
