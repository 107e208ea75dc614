//! Round trips of operations that the peer's adapter answers by itself, RDMA Read and atomics, and
//! puts and gets of MPI with the call that completes them.

use measure::samples::Recorder;

use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark};
use crate::point::Length;

/// Fetches repeatedly, each time when the previous fetch is complete, and records the time between
/// consecutive completions: a round trip each. The peer has nothing to do.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when a fetch is not answered.
#[inline(never)]
pub(crate) fn fetch<E: Endpoint, R: Recorder>(
    endpoint: &mut E,
    recorder: &mut R,
    warmup: u64,
    length: Length,
) -> Result<(), Error> {
    let clock = endpoint.clock();
    for _ in 0..warmup {
        once(endpoint)?;
    }
    let mut before = clock.now();
    let (target, end) = length.end(clock, before);
    let mut done = 0;
    while done < target && !cut::is_over(before, end) {
        once(endpoint)?;
        let now = clock.now();
        recorder.record(now.since(before));
        before = now;
        done += 1;
    }
    Ok(())
}

/// Makes one round trip.
#[inline]
fn once<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    endpoint.send(Mark::Last)?;
    endpoint.flush()
}
