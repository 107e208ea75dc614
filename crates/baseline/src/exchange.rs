//! Half the round trip of a message of a word, by the ways in which two CPUs can pass one: what a
//! device that does nothing at all, or next to nothing, could be as fast as.
//!
//! A raw cache line is answered by the very next instruction, on the line that was just read.
//! Whoever has a queue between the two writes to another line, and does something first.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::link::{Link, Side};

/// How messages go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Way {
    /// Each direction has lines of its own, and each message the next of them.
    pub(crate) has_lanes: bool,
    /// Each end does something for [`WORK`] before it answers.
    pub(crate) works: bool,
}

/// What a poll that finds something and a post take together.
const WORK: Duration = Duration::from_nanos(40);
/// Lines of a lane, each in a page of its own: see `line`.
const LANE: usize = 64;
/// Batches whose median is taken, after one that warms up, and round trips in one.
const BATCHES: usize = 200;
const ROUND_TRIPS: u64 = 64;

/// Measures, and gives the median and the mean of the batches.
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

/// Where this end writes message `n`, and where it waits for the other's.
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
