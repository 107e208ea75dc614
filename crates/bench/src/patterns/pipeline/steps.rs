//! Samples at a fixed rate (V50 to V76 of the evaluations): a generator hands one to its node when
//! it is due, and whoever takes them at the other end stamps each. A step that nobody was there for
//! is missed; a sample for which the node has no room is not transmitted: neither is waited for,
//! for the next is due.

use std::time::Duration;

use measure::clock::Ticks;

use crate::Error;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::pattern::Watch;

/// A step that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tick {
    /// When it was due, in ticks.
    pub(crate) due: u64,
    /// When that was noticed: read after the wait, before anything else is done.
    pub(crate) now: Ticks,
    /// Steps that have become due, this one included; those after it are missed.
    pub(crate) passed: u64,
    /// Whether it was due before anybody waited for it: what was done before took longer than a
    /// period.
    pub(crate) is_behind: bool,
}

/// Tells when steps are due. Step n is due n + 1 periods after the start.
pub(crate) trait Timer {
    /// The period begins now.
    ///
    /// # Errors
    /// When the kernel has no such timer.
    fn start(&mut self) -> Result<(), Error>;

    /// Waits until a step is due, the first that has not passed; calls `turn` again and again while
    /// it is not, if it can.
    ///
    /// # Errors
    /// What `turn` says, and what the kernel does.
    fn wait(&mut self, step: u64, turn: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error>;

    /// From one step to the next, in ns.
    fn period_ns(&self) -> f64;
}

/// What the source keeps of its samples.
pub(crate) trait SourceLog {
    /// A sample was generated when its step was due, and either its node took it or there was no
    /// room.
    fn generated(&mut self, step: u64, tick: &Tick, values: &[f64], is_transmitted: bool);
}

/// What the target keeps of the samples that come.
pub(crate) trait TargetLog {
    /// The source has said something of itself, before the first sample.
    fn started(&mut self, words: [u64; 3]);

    /// A sample has come; its words are where the endpoint has them.
    ///
    /// # Errors
    /// What the endpoint says.
    fn received<E: Endpoint>(&mut self, sample: &Received, endpoint: &E) -> Result<(), Error>;
}

/// The values of samples.
pub(crate) trait Values {
    /// Those of a step.
    fn at(&mut self, step: u64) -> &[f64];
}

/// What a sample says of itself, and when it came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Received {
    pub(crate) step: u64,
    /// When it was due and when it was generated, in ticks of who generated it.
    pub(crate) due: u64,
    pub(crate) submitted: u64,
    pub(crate) at: Ticks,
}

/// The words of a sample before its values: four bytes that are the endpoint's and the number of
/// its step in four, when it was due, when it was generated.
pub(crate) const META_WORDS: usize = 3;
const STEP_SHIFT: u32 = 32;
/// In place of a step: what follows is no sample, but three words that the source says of itself.
const HAIL: u64 = u32::MAX as u64;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// What the source says of itself.
    pub(crate) start_message: [u64; 3],
    /// Steps in all, those of the warm-up too: below 2^32.
    pub(crate) steps: u64,
    /// From one to the next.
    pub(crate) period: Duration,
    /// Whether what the node takes arrives.
    pub(crate) is_reliable: bool,
}

/// Turns of a wait between looks at what else there is: the point's time limit, and other ranks of
/// the same CPU.
const LOOKS_EVERY: u32 = 32;
/// How long an answer is waited for before something is said again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often the end is said again where it can be lost.
const CLOSINGS: u32 = 20;
/// How long after the last step is due nothing comes where the end must have been lost.
const QUIET: Duration = Duration::from_secs(3);
/// How long after the end something may come that it has overtaken.
const LATE: Duration = Duration::from_millis(20);

/// How often the source says that it parts where that can be lost: nobody waits long for it.
const PARTINGS: u32 = 3;

/// What a greeting says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    /// The target is there.
    Ready,
    /// The source knows that.
    Go,
    /// The target knows that.
    Start,
    /// The last sample is sent.
    Closing,
    /// And taken.
    Closed,
    /// The source has nothing more to do that must not be disturbed.
    Parting,
}

impl Word {
    const ALL: [Self; 6] = [Self::Ready, Self::Go, Self::Start, Self::Closing, Self::Closed, Self::Parting];
    /// Numbers of greetings from here on are words.
    const FIRST: u32 = 1 << 27;

    /// The number of one that is said the so many-th time. It differs from that of the time before:
    /// an endpoint takes two with the same number for one that came twice.
    fn number(self, time: u32) -> u32 {
        Self::FIRST + (time % 2) * Self::ALL.len() as u32 + self as u32
    }

    /// What a number says.
    fn of(number: u64) -> Option<Self> {
        let place = number.checked_sub(Self::FIRST.into())?;
        let all = Self::ALL.len() as u64;
        if place < 2 * all { Self::ALL.get((place % all) as usize).copied() } else { None }
    }
}

/// The words of one end.
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

/// Generates samples (rank 0), from when the other end is there until it says that it has taken the
/// last.
///
/// # Errors
/// What the endpoint and the timer say; [`Error::Deadline`] when the other end says nothing.
pub(crate) fn generate<E: Endpoint, T: Timer, V: Values, L: SourceLog>(
    endpoint: &mut E,
    timer: &mut T,
    values: &mut V,
    log: &mut L,
    watch: &mut Watch,
    schedule: &Schedule,
) -> Result<(), Error> {
    await_target(endpoint)?;
    start_message(endpoint, schedule.start_message)?;
    timer.start()?;
    let mut step = 0;
    while step < schedule.steps {
        let mut turns = 0;
        let tick = timer.wait(step, |now| {
            watch.see(now);
            endpoint.try_sent()?;
            turns += 1;
            if turns % LOOKS_EVERY == 1 { endpoint.yield_cpu() } else { Ok(()) }
        })?;
        watch.see(tick.now);
        watch.pass();
        // Those after the last are nobody's.
        let tick = Tick { passed: tick.passed.min(schedule.steps - step), ..tick };
        let values = values.at(step);
        let is_transmitted = transmit(endpoint, step, &tick, values)?;
        log.generated(step, &tick, values, is_transmitted);
        step += tick.passed;
    }
    close(endpoint, schedule)
}

/// Says something of the source before the first sample.
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

/// Hands a sample to the node; whether there is room.
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

/// Waits until the target is there, and lets it know. Each end says its part until it hears the
/// other's: what one node says may get lost while the other is not yet subscribed.
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

/// Says that there are no more samples, and waits until all are taken.
fn close<E: Endpoint>(endpoint: &mut E, schedule: &Schedule) -> Result<(), Error> {
    // Where nothing is lost, once is enough, and it is waited for.
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

/// Says that the source (rank 0) has nothing more to do that must not be disturbed.
///
/// # Errors
/// What the endpoint says.
pub(crate) fn part<E: Endpoint>(endpoint: &mut E, schedule: &Schedule) -> Result<(), Error> {
    let mut words = Words::default();
    for _ in 0..if schedule.is_reliable { 1 } else { PARTINGS } {
        words.say(endpoint, Word::Parting)?;
    }
    endpoint.flush()
}

/// Waits until the source says so (rank 1); where that can be lost, for a time after whatever it
/// said last.
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when nothing comes where nothing is lost.
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
            // It has not heard that it is.
            Some(Word::Closing) => words.say(endpoint, Word::Closed)?,
            Some(_) => {}
        }
    }
}

/// The next word that is heard; none where none comes within a time. Whatever else comes is
/// nobody's.
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

/// Takes samples (rank 1) until the source says that there are no more, or where that can be lost,
/// nothing comes.
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when nothing comes.
pub(crate) fn take<E: Endpoint, L: TargetLog>(
    endpoint: &mut E,
    log: &mut L,
    watch: &mut Watch,
    schedule: &Schedule,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    await_source(endpoint)?;
    // From the first sample on, when it is over though nobody has said so; and whether that was
    // looked at before.
    let mut until = u64::MAX;
    let mut is_over = false;
    let mut is_closing = false;
    let mut words = Words::default();
    // Steps that are yet to come: however long the source is away, it goes on before they are over.
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
            // It may have come while this end did not run.
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

/// What a sample says that has just come.
#[inline]
fn sample<E: Endpoint>(endpoint: &E, at: Ticks) -> Result<Received, Error> {
    let first = endpoint.get(0)?;
    let due = endpoint.get(1)?;
    let submitted = endpoint.get(2)?;
    Ok(Received { step: first >> STEP_SHIFT, due, submitted, at })
}

/// Says that this end is there until the source says that it knows.
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
