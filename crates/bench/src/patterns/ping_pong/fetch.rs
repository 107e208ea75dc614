//! Round trips of operations that the peer's adapter answers alone: RDMA Read and atomics (G16);
//! puts and gets of MPI, with the call that completes each.

use measure::samples::Recorder;

use crate::Error;
use crate::endpoint::{Endpoint, Mark};
use crate::point::Length;

/// Fetches again and again, each when the one before is complete, and records the time between
/// consecutive completions: a round trip each. The peer has nothing to do.
///
/// # Errors
/// What the endpoint says; [`Error::Deadline`] when nothing is answered any more.
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
    while done < target && before.0 < end {
        once(endpoint)?;
        let now = clock.now();
        recorder.record(now.since(before));
        before = now;
        done += 1;
    }
    Ok(())
}

/// One round trip.
#[inline]
fn once<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    endpoint.send(Mark::Last)?;
    endpoint.flush()
}
