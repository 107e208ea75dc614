//! One to n, n to one (H1 to H6): the root posts a message to each of n leaves without waiting in
//! between, and waits until all have answered.
//!
//! Every round is timed and begins when the one before is over, so the start-up of the pipeline is
//! charged to each (H9). Operations that fetch, of which the other end knows nothing, have two
//! stages (H5): the root fetches from all leaves; then it signals to them, each fetches from the
//! root and times that itself, and signals back.

use measure::samples::Recorder;

use crate::Error;
use crate::endpoint::{Endpoint, Mark};
use crate::point::{Length, Notify};

/// Which rounds there are, as the root counts them.
struct Rounds {
    warmup: u64,
    length: Length,
    /// Rounds that have begun, and when those that count are over.
    begun: u64,
    end: u64,
}

impl Rounds {
    fn new(warmup: u64, length: Length) -> Self {
        Self { warmup, length, begun: 0, end: u64::MAX }
    }

    /// Begins a round: whether it counts, and whether it is the last.
    #[inline]
    fn begin(&mut self, endpoint: &impl Endpoint) -> (bool, Mark) {
        if self.begun == self.warmup {
            (_, self.end) = self.length.end(endpoint.clock(), endpoint.clock().now());
        }
        self.begun += 1;
        let is_over = match self.length {
            Length::Iterations(rounds) => self.begun == self.warmup.saturating_add(rounds),
            Length::Duration(_) => self.begun > self.warmup && endpoint.clock().now().0 >= self.end,
        };
        (self.begun > self.warmup, if is_over { Mark::Last } else { Mark::More })
    }
}

/// Sends to all leaves and waits for their answers: records the whole time of a round, from before
/// the first post to after the last arrival (H3).
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when a message is lost, which ends the rounds.
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

/// Fetches from all leaves and waits for what comes, which it records; then lets them fetch from
/// here.
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

/// Fetches once from every rank that this one talks to; gives the time from before the first post
/// until all has come, in ticks.
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
    // The completions of what has landed are no part of it.
    endpoint.flush()?;
    Ok(ticks)
}

#[cfg(test)]
mod tests;
