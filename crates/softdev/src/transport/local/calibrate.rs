//! Finds out whether stores past the cache pay on this host: one process measures it, the others
//! believe it.
//!
//! # Invariants
//!
//! * Whether long messages are stored past the cache is measured by the first process of a host
//!   that registers memory for some: by a thread of its own, for some milliseconds; the others
//!   believe it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::memory::copy::streaming;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::local::host::{Host, blocks, while_alone};

/// How long one waits for others that find it out: two at a time would measure each other.
const OTHERS: Duration = Duration::from_millis(200);

/// Other processes that are asked.
const ASKED: usize = 8;

/// In an arena's header, where its process knows: streaming is faster, or slower.
const PAYS: u32 = 1;

const COSTS: u32 = 2;

/// Finds out, once in a process, which way is faster, before there are `bytes` at one place to be
/// sent. All processes of a host believe the first of them.
pub(crate) fn calibrate(host: &Host, bytes: usize) {
    streaming::calibrate(bytes, |grade, measure| {
        let find_out = || asked(host, grade).or_else(measure);
        let pays = while_alone("calibration", OTHERS, find_out).flatten()?;
        host.arena.view.header().streaming[grade].store(if pays { PAYS } else { COSTS }, Relaxed);
        Some(pays)
    });
}

/// What other processes have found of a grade, by its place.
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
