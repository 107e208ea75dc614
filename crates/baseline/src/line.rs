//! Half the round trip of a cache line: what nothing between two CPUs can be faster than.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::{Result, ensure};

use crate::link::{Link, Side};

/// Lines that are tried, each in a page of its own: a line's physical address decides where in a
/// shared cache it is looked up, near or far from the two CPUs, which makes up to a half of
/// difference.
const LINES: usize = 96;
/// Batches of each line whose median is taken, after one that warms up: others on these CPUs spoil
/// some of them.
const BATCHES: usize = 9;
/// Round trips in a batch: one alone may take less than a clock resolves.
const ROUND_TRIPS: u64 = 50;

/// Bounces lines, by loops with and without PAUSE (which of them is faster depends on the
/// processor), and gives the faster one's mean over the lines, each line's being the median of its
/// batches.
pub(crate) fn run(link: &Link) -> Result<String> {
    let mut plain = Vec::new();
    let mut paused = Vec::new();
    for line in 0..LINES {
        let word = link.line(line);
        let mut at = 0;
        plain.push(bounce(link, word, &mut at, || {})?);
        paused.push(bounce(link, word, &mut at, std::hint::spin_loop)?);
    }
    let [plain, paused] = [plain, paused].map(|mut lines| {
        lines.sort_by(f64::total_cmp);
        [lines.iter().sum::<f64>() / LINES as f64, lines[0], lines[LINES - 1]]
    });
    let [line, nearest, farthest] = if plain[0] < paused[0] { plain } else { paused };
    let plain = plain[0];
    let paused = paused[0];
    Ok(format!(
        "{{\"line_ns\":{line:.2},\"nearest_ns\":{nearest:.2},\"farthest_ns\":{farthest:.2},\
         \"plain_ns\":{plain:.2},\"paused_ns\":{paused:.2}}}"
    ))
}

fn bounce(link: &Link, word: &AtomicU64, at: &mut u64, pause: impl Fn() + Copy) -> Result<f64> {
    /// Looks before the slower wait with a deadline takes over.
    const LOOKS: u32 = 1 << 16;
    let until = |value: u64| -> Result<()> {
        for _ in 0..LOOKS {
            if word.load(Acquire) == value {
                return Ok(());
            }
            pause();
        }
        link.wait(|| word.load(Acquire) == value)
    };
    let mut times = Vec::with_capacity(BATCHES + 1);
    for _ in 0..=BATCHES {
        let before = link.clock.now();
        for _ in 0..ROUND_TRIPS {
            let ping = *at + 1;
            let pong = *at + 2;
            *at = pong;
            if link.side == Side::First {
                word.store(ping, Release);
                until(pong)?;
            } else {
                until(ping)?;
                word.store(pong, Release);
            }
        }
        times.push(link.clock.now().since(before));
    }
    let times = &mut times[1..];
    times.sort_unstable();
    let median = link.clock.ns_f64(times[BATCHES / 2]) / (2 * ROUND_TRIPS) as f64;
    ensure!(median > 0.0, "the clock stands still");
    Ok(median)
}
