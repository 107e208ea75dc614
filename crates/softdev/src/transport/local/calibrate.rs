//! Whether stores past the cache are faster on this host: one process measures it, and the others
//! use its result.
//!
//! # Invariants
//!
//! * The first process of a host that registers memory for long messages measures whether they are
//!   stored past the cache: with a thread of its own, in some milliseconds. The other processes use
//!   its result.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::memory::copy::streaming;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::local::host::{Host, blocks, while_alone};

/// How long a process waits for others that are measuring: two at a time would measure each other.
const OTHERS: Duration = Duration::from_millis(200);

/// The number of other processes that are asked.
const ASKED: usize = 8;

/// A result in an arena's header: streaming is faster, or slower.
const PAYS: u32 = 1;

const COSTS: u32 = 2;

/// Finds out, once per process, which way is faster, before there are `bytes` bytes at one place to
/// send. All processes of a host use the result of the first one.
pub(crate) fn calibrate(host: &Host, bytes: usize) {
    streaming::calibrate(bytes, |grade, measure| {
        let find_out = || asked(host, grade).or_else(measure);
        let pays = while_alone("calibration", OTHERS, find_out).flatten()?;
        host.arena.view.header().streaming[grade].store(if pays { PAYS } else { COSTS }, Relaxed);
        Some(pays)
    });
}

/// Returns the result of other processes for a grade, by its index.
fn asked(host: &Host, grade: usize) -> Option<bool> {
    let says = |block: u32| {
        let peer = host.peer_of(block << QP_INDEX_BITS)?;
        match peer.view(&host.arena.view).header().streaming[grade].load(Relaxed) {
            PAYS => Some(true),
            COSTS => Some(false),
            _ => None,
        }
    };
    blocks(host.block).into_iter().filter(|block| *block != host.block).take(ASKED).find_map(says)
}
