//! What calls cost the CPU (Hoefler et al. 2006, section 4.2): batches of one call between two
//! stamps.
//!
//! A poll costs some nanoseconds and a stamp costs more, so calls are timed in batches. What a
//! batch needs is prepared before the first stamp, and what it leaves behind is removed after the
//! second.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::calls::{Batch, Calls, Step};
use crate::endpoint::{Endpoint, Mark};

/// The numbers of calls and batches of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// Calls in a batch; at least 1.
    pub calls: u32,
    /// Batches before the first that counts.
    pub warmup: u64,
    /// Batches that count.
    pub batches: u64,
}

/// Times batches until enough of them were complete or the point is cut, and records the time of
/// each. Returns the number of incomplete batches: those in which a poll found nothing although it
/// should have.
///
/// # Errors
/// The errors of the calls.
pub(super) fn time<B: Batch, R: Recorder>(
    batch: &mut B,
    recorder: &mut R,
    clock: Clock,
    count: Count,
) -> Result<u64, Error> {
    let mut whole = 0;
    let mut incomplete = 0;
    while whole < count.warmup + count.batches && !cut::is_requested() {
        batch.prepare()?;
        let before = clock.now();
        let done = batch.run()?;
        let ticks = clock.now().since(before);
        batch.finish(done)?;
        if done < count.calls {
            incomplete += 1;
            continue;
        }
        whole += 1;
        if whole > count.warmup {
            recorder.record(ticks);
        }
    }
    Ok(incomplete)
}

/// Times a post or a poll, at the rank of this step. Where messages go to the other rank or come
/// from it, that rank [answers](answer). Returns the number of incomplete batches.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when the peer or a message is lost.
pub(super) fn overhead<E: Calls, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    step: Step,
    is_answered: bool,
    count: Count,
) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let settle = clock.ticks(SETTLE);
    let mut hot = Hot { endpoint, step, calls: count.calls, is_answered, settle };
    let incomplete = time(&mut hot, recorder, clock, count)?;
    if is_answered {
        endpoint.send(Mark::Last)?;
    }
    endpoint.flush()?;
    Ok(incomplete)
}

/// Runs the other rank: sends `gives` messages whenever it has received `takes`, until the last.
///
/// # Errors
/// As [`overhead`].
pub(super) fn answer<E: Endpoint>(endpoint: &mut E, takes: u32, gives: u32) -> Result<(), Error> {
    let mut taken = 0;
    loop {
        let mark = endpoint.receive()?;
        endpoint.replenish()?;
        if mark == Mark::Last {
            return endpoint.flush();
        }
        taken += 1;
        if taken == takes {
            taken = 0;
            for _ in 0..gives {
                endpoint.send(Mark::More)?;
            }
            endpoint.flush()?;
        }
    }
}

/// A post or a poll of an endpoint.
struct Hot<'a, E> {
    endpoint: &'a mut E,
    step: Step,
    calls: u32,
    is_answered: bool,
    /// How long to wait for the completions of a batch before polling for them, in ticks.
    settle: u64,
}

impl<E: Calls> Hot<'_, E> {
    /// Waits, without polling, until all completions of a batch should be there.
    fn settle(&mut self) -> Result<(), Error> {
        let clock = self.endpoint.clock();
        let until = Ticks(clock.now().0.saturating_add(self.settle));
        loop {
            self.endpoint.idle_until(until)?;
            if clock.now() >= until {
                return Ok(());
            }
        }
    }

    /// Lengthens the wait if a completion was not there yet, and shortens it a little if all were.
    fn adapt(&mut self, done: u32) {
        self.settle = match done < self.calls {
            true => self.settle.saturating_mul(2),
            false => self.settle - self.settle / SETTLE_STEPS,
        };
    }

    /// Takes the completions of `left` sends.
    fn take_sends(&mut self, mut left: u32) -> Result<(), Error> {
        while left > 0 {
            match self.endpoint.poll_sends(1)? {
                0 => self.endpoint.idle()?,
                taken => left -= taken,
            }
        }
        Ok(())
    }

    /// Takes `left` messages, without posting receives in their place.
    fn take_receives(&mut self, mut left: u32) -> Result<(), Error> {
        while left > 0 {
            match self.endpoint.poll_receives(1)? {
                0 => self.endpoint.idle()?,
                taken => left -= taken,
            }
        }
        Ok(())
    }

    /// Asks the peer for a batch of messages.
    fn ask(&mut self) -> Result<(), Error> {
        self.endpoint.send(Mark::More)?;
        self.endpoint.flush()
    }

    /// Waits until the peer has received a batch of messages, and has room for the next.
    fn await_answer(&mut self) -> Result<(), Error> {
        if self.is_answered {
            self.endpoint.receive()?;
            self.endpoint.replenish()?;
        }
        Ok(())
    }
}

impl<E: Calls> Batch for Hot<'_, E> {
    fn prepare(&mut self) -> Result<(), Error> {
        match self.step {
            Step::PollSend => {
                self.endpoint.post_sends(self.calls)?;
                self.settle()
            }
            Step::PollReceive => {
                self.ask()?;
                self.settle()
            }
            Step::PostReceive => {
                self.ask()?;
                self.take_receives(self.calls)
            }
            // There is nothing to wait for, but this call checks the deadline.
            _ => self.endpoint.idle_until(self.endpoint.clock().now()),
        }
    }

    #[inline]
    fn run(&mut self) -> Result<u32, Error> {
        match self.step {
            Step::PollSend => self.endpoint.poll_sends(self.calls),
            Step::PollReceive => self.endpoint.poll_receives(self.calls),
            Step::PollEmpty => Ok(self.calls - self.endpoint.poll_receives(self.calls)?),
            Step::PostReceive => self.endpoint.post_receives(self.calls).map(|()| self.calls),
            _ => self.endpoint.post_sends(self.calls).map(|()| self.calls),
        }
    }

    fn finish(&mut self, done: u32) -> Result<(), Error> {
        match self.step {
            Step::PostSend => {
                self.take_sends(self.calls)?;
                self.await_answer()
            }
            Step::PollSend => {
                self.adapt(done);
                self.take_sends(self.calls - done)?;
                self.await_answer()
            }
            Step::PollReceive => {
                self.adapt(done);
                self.take_receives(self.calls - done)?;
                self.endpoint.post_receives(self.calls)
            }
            _ => Ok(()),
        }
    }
}

/// The first time to wait for completions: the time of some messages of a fast adapter.
const SETTLE: Duration = Duration::from_micros(10);
/// A complete batch shortens the wait by this part, so that one late completion does not lengthen
/// the whole point.
const SETTLE_STEPS: u64 = 64;

#[cfg(test)]
mod tests;
