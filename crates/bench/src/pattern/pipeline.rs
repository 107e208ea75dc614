//! Samples at a fixed rate (V50 to V76 of the evaluations): a generator hands one to its node when it is due, and whoever takes
//! them at the other end stamps each. A step that nobody was there for is missed; a sample for which the node has no room is not
//! transmitted: neither is waited for, for the next is due.

use std::time::Duration;

use measure::clock::Ticks;

use super::Watch;
use crate::Error;
use crate::endpoint::{Endpoint, Mark, Posted};

/// A step that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tick {
    /// When it was due, in ticks.
    pub(crate) due: u64,
    /// When that was noticed: read after the wait, before anything else is done.
    pub(crate) now: Ticks,
    /// Steps that have become due, this one included; those after it are missed.
    pub(crate) passed: u64,
    /// Whether it was due before anybody waited for it: what was done before took longer than a period.
    pub(crate) is_behind: bool,
}

/// Tells when steps are due. Step n is due n + 1 periods after the start.
pub(crate) trait Timer {
    /// The period begins now.
    ///
    /// # Errors
    /// When the kernel has no such timer.
    fn start(&mut self) -> Result<(), Error>;

    /// Waits until a step is due, the first that has not passed; calls `turn` again and again while it is not, if it can.
    ///
    /// # Errors
    /// What `turn` says, and what the kernel does.
    fn wait(&mut self, step: u64, turn: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error>;

    /// From one step to the next, in ns.
    fn period_ns(&self) -> f64;
}

/// What the source keeps of its samples.
pub(crate) trait SourceLog {
    /// A sample was generated when its step was due, and either its node took it or there was no room.
    fn generated(&mut self, step: u64, tick: &Tick, values: &[f64], is_transmitted: bool);
}

/// What the target keeps of the samples that come.
pub(crate) trait TargetLog {
    /// The source has said something of itself, before the first sample.
    fn hailed(&mut self, words: [u64; 3]);

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

/// The words of a sample before its values: four bytes that are the endpoint's and the number of its step in four, when it was
/// due, when it was generated.
pub(crate) const META_WORDS: usize = 3;
const STEP_SHIFT: u32 = 32;
/// In place of a step: what follows is no sample, but three words that the source says of itself.
const HAIL: u64 = u32::MAX as u64;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// What the source says of itself.
    pub(crate) hail: [u64; 3],
    /// Steps in all, those of the warm-up too: below 2^32.
    pub(crate) steps: u64,
    /// From one to the next.
    pub(crate) period: Duration,
    /// Whether what the node takes arrives.
    pub(crate) is_reliable: bool,
}

/// Turns of a wait between looks at what else there is: the point's time limit, and other ranks of the same CPU.
const LOOKS_EVERY: u32 = 32;
/// How long an answer is waited for before something is said again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How often the end is said again where it can be lost.
const CLOSINGS: u32 = 20;
/// How long nothing comes where the end must have been lost, beside two periods.
const QUIET: Duration = Duration::from_secs(3);
/// How long after the end something may come that it has overtaken.
const LATE: Duration = Duration::from_millis(20);

/// Numbers of greetings: the target is there, the source knows, the target knows that; the last sample is sent, and taken.
const READY: u32 = 1 << 27;
const GO: u32 = READY + 1;
const START: u32 = READY + 2;
const CLOSING: u32 = READY + 3;
const CLOSED: u32 = READY + 4;

/// Generates samples (rank 0), from when the other end is there until it says that it has taken the last.
///
/// # Errors
/// What the endpoint and the timer say; [`Error::Deadline`] when the other end says nothing.
pub(crate) fn generate<E: Endpoint, T: Timer, V: Values, L: SourceLog>(
    endpoint: &mut E,
    (timer, values): (&mut T, &mut V),
    log: &mut L,
    watch: &mut Watch,
    course: &Course,
) -> Result<(), Error> {
    await_target(endpoint)?;
    hail(endpoint, course.hail)?;
    timer.start()?;
    let mut step = 0;
    while step < course.steps {
        let mut turns = 0;
        let tick = timer.wait(step, |now| {
            watch.see(now);
            endpoint.try_sent()?;
            turns += 1;
            if turns % LOOKS_EVERY == 1 { endpoint.give_way() } else { Ok(()) }
        })?;
        watch.see(tick.now);
        watch.pass();
        // Those after the last are nobody's.
        let tick = Tick { passed: tick.passed.min(course.steps - step), ..tick };
        let values = values.at(step);
        let is_transmitted = transmit(endpoint, step, &tick, values)?;
        log.generated(step, &tick, values, is_transmitted);
        step += tick.passed;
    }
    close(endpoint, course)
}

/// Says something of the source before the first sample.
fn hail<E: Endpoint>(endpoint: &mut E, words: [u64; 3]) -> Result<(), Error> {
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

/// Waits until the target is there, and lets it know. Each end says its part until it hears the other's: what one node says may
/// get lost while the other is not yet subscribed.
fn await_target<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    let mut is_ready = false;
    loop {
        match greeting(endpoint, AGAIN_AFTER)? {
            Some(START) => return Ok(()),
            Some(READY) => is_ready = true,
            Some(_) => continue,
            None => {}
        }
        if is_ready {
            endpoint.greet_as(GO)?;
        }
    }
}

/// Says that there are no more samples, and waits until all are taken.
fn close<E: Endpoint>(endpoint: &mut E, course: &Course) -> Result<(), Error> {
    // Where nothing is lost, once is enough, and it is waited for.
    let closings = if course.is_reliable { 1 } else { CLOSINGS };
    let patience = if course.is_reliable { Duration::MAX } else { AGAIN_AFTER };
    for _ in 0..closings {
        endpoint.greet_as(CLOSING)?;
        loop {
            match greeting(endpoint, patience)? {
                Some(CLOSED) => return endpoint.flush(),
                Some(_) => {}
                None => break,
            }
        }
    }
    endpoint.flush()
}

/// The next greeting; none where none comes within a time. Whatever else comes is nobody's.
fn greeting<E: Endpoint>(endpoint: &mut E, patience: Duration) -> Result<Option<u32>, Error> {
    let clock = endpoint.clock();
    let until = clock.now().0.saturating_add(clock.ticks(patience));
    loop {
        if let Some(arrival) = endpoint.try_receive()? {
            endpoint.replenish()?;
            if arrival.is_greeting {
                return Ok(Some(arrival.number as u32));
            }
            continue;
        }
        if clock.now().0 > until {
            return Ok(None);
        }
        endpoint.idle_until(Ticks(until))?;
    }
}

/// Takes samples (rank 1) until the source says that there are no more, or where that can be lost, nothing comes.
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when nothing comes.
pub(crate) fn take<E: Endpoint, L: TargetLog>(
    endpoint: &mut E,
    log: &mut L,
    watch: &mut Watch,
    course: &Course,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    await_source(endpoint)?;
    let patience = match course.is_reliable {
        true => u64::MAX,
        false => clock.ticks(QUIET.saturating_add(2 * course.period)),
    };
    // From the first sample on, when it is over though nobody has said so; and whether that was looked at before.
    let (mut until, mut is_over) = (u64::MAX, false);
    let mut is_closing = false;
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
            match arrival.number as u32 {
                GO => endpoint.greet_as(START)?,
                CLOSING if course.is_reliable => break,
                CLOSING => is_closing = true,
                _ => continue,
            }
        } else {
            watch.see(at);
            let sample = sample(endpoint, at)?;
            if sample.step == HAIL {
                log.hailed([sample.due, sample.submitted, endpoint.get(META_WORDS)?]);
            } else {
                log.received(&sample, endpoint)?;
            }
            endpoint.replenish()?;
        }
        watch.pass();
        until = at.0.saturating_add(if is_closing { clock.ticks(LATE) } else { patience });
    }
    endpoint.greet_as(CLOSED)?;
    endpoint.flush()
}

/// What a sample says that has just come.
#[inline]
fn sample<E: Endpoint>(endpoint: &E, at: Ticks) -> Result<Received, Error> {
    let (first, due, submitted) = (endpoint.get(0)?, endpoint.get(1)?, endpoint.get(2)?);
    Ok(Received { step: first >> STEP_SHIFT, due, submitted, at })
}

/// Says that this end is there until the source says that it knows.
fn await_source<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    loop {
        endpoint.greet_as(READY)?;
        if greeting(endpoint, AGAIN_AFTER)? == Some(GO) {
            return endpoint.greet_as(START);
        }
    }
}

#[cfg(test)]
mod tests;
