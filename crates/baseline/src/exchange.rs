//! Half the round trip of a message of one word, for several ways in which two CPUs can pass it:
//! the limit for a device that does little or no work.
//!
//! On a single cache line, the next instruction answers on the line that was just read. A device
//! with queues writes the answer to another line, after some work.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::link::{Link, Side};

/// How messages are passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Way {
    /// Each direction has its own cache lines, and each message uses the next one.
    pub(crate) has_lanes: bool,
    /// Each process works for [`WORK`] before it answers.
    pub(crate) works: bool,
}

/// The time of a successful poll and a post together.
const WORK: Duration = Duration::from_nanos(40);
/// The cache lines of a lane, each in a page of its own: see `line`.
const LANE: usize = 64;
/// The batches that the median is of, after one warm-up batch, and the round trips in a batch.
const BATCHES: usize = 200;
const ROUND_TRIPS: u64 = 64;

/// Measures, and returns the median and the mean of the batches.
pub(crate) fn run(link: &Link, way: Way) -> Result<String> {
    let work = if way.works { link.clock.ticks(WORK) } else { 0 };
    let mut times = Vec::with_capacity(BATCHES + 1);
    let mut n = 0;
    for _ in 0..=BATCHES {
        let before = link.clock.now();
        for _ in 0..ROUND_TRIPS {
            n += 1;
            let [ours, theirs] = lines(link, way, n);
            if link.side == Side::First {
                ours.store(2 * n - 1, Release);
                link.wait(|| theirs.load(Acquire) == 2 * n)?;
                busy(link, work);
            } else {
                link.wait(|| theirs.load(Acquire) == 2 * n - 1)?;
                busy(link, work);
                ours.store(2 * n, Release);
            }
        }
        times.push(link.clock.now().since(before));
    }
    let times = &mut times[1..];
    times.sort_unstable();
    let ns =
        |ticks: u64, batches: usize| link.clock.ns_f64(ticks) / (2 * ROUND_TRIPS * batches as u64) as f64;
    let median = ns(times[BATCHES / 2], 1);
    let mean = ns(times.iter().sum(), BATCHES);
    ensure!(median > 0.0, "the clock stands still");
    Ok(format!("{{\"median_ns\":{median:.2},\"mean_ns\":{mean:.2}}}"))
}

/// Returns the line that this process writes message `n` to, and the line that it waits on.
fn lines(link: &Link, way: Way, n: u64) -> [&AtomicU64; 2] {
    if !way.has_lanes {
        return [link.line(0); 2];
    }
    let place = n as usize % LANE;
    let first = link.line(place);
    let second = link.line(LANE + place);
    if link.side == Side::First { [first, second] } else { [second, first] }
}

fn busy(link: &Link, ticks: u64) {
    let since = link.clock.now();
    while ticks > 0 && link.clock.now().since(since) < ticks {}
}
