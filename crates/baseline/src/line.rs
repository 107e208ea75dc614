//! Half the round trip of a cache line: what nothing between two CPUs can be faster than.

use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::{Result, ensure};

use crate::link::{Link, Side};

/// Batches whose median is taken, after one that warms up: others on these CPUs spoil some of them.
const BATCHES: usize = 61;
/// Round trips in a batch: one alone may take less than a clock resolves.
const ROUND_TRIPS: u64 = 100;

/// Bounces the line, by loops with and without PAUSE (which of them is faster depends on the processor), and gives the
/// faster one's median.
pub(crate) fn run(link: &Link) -> Result<String> {
    let mut at = 0;
    let plain = bounce(link, &mut at, || {})?;
    let paused = bounce(link, &mut at, std::hint::spin_loop)?;
    Ok(format!(r#"{{"line_ns":{:.2},"plain_ns":{plain:.2},"paused_ns":{paused:.2}}}"#, plain.min(paused)))
}

fn bounce(link: &Link, at: &mut u64, pause: impl Fn() + Copy) -> Result<f64> {
    /// Looks before the slower wait with a deadline takes over.
    const LOOKS: u32 = 1 << 16;
    let word = &link.control().turn.0;
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
            let (ping, pong) = (*at + 1, *at + 2);
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
