//! Half the round trip of a cache line: no exchange between two CPUs can be faster.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::{Result, ensure};

use crate::link::{Link, Side};

/// The number of cache lines, each in a page of its own. A line's physical address decides which
/// part of a shared cache holds it, near the two CPUs or far from them, which changes the time by
/// up to a half.
const LINES: usize = 96;
/// The batches of each line that the median is of, after one warm-up batch: other processes on
/// these CPUs disturb some batches.
const BATCHES: usize = 9;
/// Round trips in a batch: a single one may be shorter than the resolution of the clock.
const ROUND_TRIPS: u64 = 50;

/// Measures lines with and without PAUSE in the loop (which is faster depends on the processor),
/// and returns the faster loop's mean over the lines. Each line's time is the median of its
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
    /// Polls before the slower wait with a deadline takes over.
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
