//! One to n, n to one (Hoefler et al. 2006): the root posts a message to each of n leaves without
//! waiting in between, and waits until all have answered.
//!
//! Every round is timed and starts when the one before is over, so each includes the start-up of
//! the pipeline. Operations that fetch, which the other rank does not notice, have two stages: the
//! root fetches from all leaves; then it signals to the leaves, each leaf fetches from the root,
//! times that itself, and signals back.

use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark};
use crate::point::{Length, Notify};

/// The number and the end of the rounds, as the root counts them.
struct Rounds {
    warmup: u64,
    length: Length,
    /// Rounds that have started, and when those that count are over.
    begun: u64,
    end: u64,
}

impl Rounds {
    fn new(warmup: u64, length: Length) -> Self {
        Self { warmup, length, begun: 0, end: u64::MAX }
    }

    /// Starts a round; returns whether it counts, and the mark that says whether it is the last.
    #[inline]
    fn begin(&mut self, endpoint: &impl Endpoint) -> (bool, Mark) {
        if self.begun == self.warmup {
            (_, self.end) = self.length.end(endpoint.clock(), endpoint.clock().now());
        }
        self.begun += 1;
        let is_over = match self.length {
            Length::Iterations(rounds) => {
                self.begun == self.warmup.saturating_add(rounds) || cut::is_requested()
            }
            Length::Duration(_) => self.begun > self.warmup && cut::is_over_at(endpoint.clock(), self.end),
        };
        (self.begun > self.warmup, if is_over { Mark::Last } else { Mark::More })
    }
}

/// Sends to all leaves and waits for their answers: records the whole time of a round, from before
/// the first post to after the last arrival.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a message is lost, which ends the rounds.
pub(crate) fn root<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    leaves: u64,
    warmup: u64,
    length: Length,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    let messages = endpoint.lanes();
    let mut rounds = Rounds::new(warmup, length);
    loop {
        let (counts, mark) = rounds.begin(endpoint);
        let begin = clock.now();
        for _ in 0..messages {
            endpoint.send(mark)?;
        }
        for _ in 0..leaves {
            endpoint.receive()?;
        }
        let end = clock.now();
        if counts && !endpoint.was_repeated() {
            recorder.record(end.since(begin));
        }
        endpoint.replenish()?;
        if mark == Mark::Last {
            return endpoint.flush();
        }
    }
}

/// Fetches from all leaves, waits for the bytes and records the time; then lets the leaves fetch
/// from this rank.
///
/// # Errors
/// As [`root`].
pub(crate) fn fetching_root<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    notify: Notify,
    warmup: u64,
    length: Length,
) -> Result<(), Error> {
    let leaves = endpoint.lanes();
    let mut rounds = Rounds::new(warmup, length);
    loop {
        let (counts, mark) = rounds.begin(endpoint);
        let ticks = fetch(endpoint, notify)?;
        if counts {
            recorder.record(ticks);
        }
        for _ in 0..leaves {
            endpoint.signal(mark)?;
        }
        for _ in 0..leaves {
            endpoint.receive()?;
        }
        endpoint.flush()?;
        if mark == Mark::Last {
            return Ok(());
        }
    }
}

/// Fetches from the root after each of its signals, and records the time of each fetch after the
/// warm-up.
///
/// # Errors
/// As [`root`].
pub(crate) fn fetching_leaf<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    notify: Notify,
    warmup: u64,
) -> Result<(), Error> {
    let mut round = 0;
    loop {
        let mark = endpoint.receive()?;
        let ticks = fetch(endpoint, notify)?;
        round += 1;
        if round > warmup {
            recorder.record(ticks);
        }
        endpoint.signal(mark)?;
        endpoint.flush()?;
        if mark == Mark::Last {
            return Ok(());
        }
    }
}

/// Fetches once from every peer; returns the time from before the first post until all bytes have
/// arrived, in ticks.
#[inline]
fn fetch<E: Endpoint>(endpoint: &mut E, notify: Notify) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let lanes = endpoint.lanes();
    if notify == Notify::Memory {
        endpoint.clear_places()?;
    }
    let begin = clock.now();
    for _ in 0..lanes {
        endpoint.send(Mark::Last)?;
    }
    match notify {
        Notify::Completion => endpoint.flush()?,
        Notify::Memory => {
            for lane in 0..lanes {
                while !endpoint.is_placed(lane)? {
                    endpoint.idle()?;
                }
            }
        }
    }
    let ticks = clock.now().since(begin);
    // Completions that follow the arrival of the bytes are not timed.
    endpoint.flush()?;
    Ok(ticks)
}

#[cfg(test)]
mod tests;
