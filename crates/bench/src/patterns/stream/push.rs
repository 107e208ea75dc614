//! Streams of one-sided operations: the target does not notice them, so the requester counts.

use super::flood::Flow;
use crate::Error;
use crate::cut;
use crate::endpoint::{Endpoint, Mark, Posted};
use crate::pattern::flood::Flood;
use crate::point::Length;

/// Streams to the peer, or both ranks do: once to warm up, once to measure. Returns what was
/// posted, from the first post until the last operation is known to be done: acknowledged, or
/// without acknowledgements (`reliable` is false), confirmed by the peer. Returns nothing at a rank
/// that does not send, which only confirms.
///
/// # Errors
/// The errors of the endpoint; [`Error::Deadline`] when the confirmation is lost.
pub(crate) fn push<E: Endpoint>(
    endpoint: &mut E,
    flow: Flow,
    warmup: u64,
    length: Length,
    reliable: bool,
) -> Result<Option<Flood>, Error> {
    if flow == Flow::In {
        if !reliable {
            confirm(endpoint, flow)?;
        }
        endpoint.attend()?;
        return Ok(None);
    }
    if warmup > 0 {
        post(endpoint, Length::Iterations(warmup))?;
        endpoint.flush()?;
    }
    if flow == Flow::Both {
        // Both directions start together, so that neither runs alone for a while.
        greet(endpoint)?;
        take(endpoint)?;
    }
    let clock = endpoint.clock();
    let begin = clock.now();
    let messages = post(endpoint, length)?;
    endpoint.flush()?;
    if !reliable {
        confirm(endpoint, flow)?;
    }
    let ticks = clock.now().since(begin);
    endpoint.release()?;
    Ok(Some(Flood { messages, ticks, total: messages }))
}

/// Posts operations for the given length; returns how many.
fn post<E: Endpoint>(endpoint: &mut E, length: Length) -> Result<u64, Error> {
    let clock = endpoint.clock();
    let (target, end) = length.end(clock, clock.now());
    let mut total = 0;
    let mut lanes = endpoint.lanes();
    while lanes > 0 && total < target {
        let over = total + lanes >= target || cut::is_over_at(clock, end);
        let mark = if over { Mark::Last } else { Mark::More };
        while endpoint.try_send(mark)? == Posted::Busy {
            endpoint.idle()?;
        }
        total += 1;
        lanes -= u64::from(over);
    }
    Ok(total)
}

/// Asks the peer on every queue pair to confirm that all operations have arrived, and waits for the
/// answer. A message does not overtake the operations before it on the same queue pair.
fn confirm<E: Endpoint>(endpoint: &mut E, flow: Flow) -> Result<(), Error> {
    if flow != Flow::In {
        greet(endpoint)?;
    }
    if flow != Flow::Out {
        take(endpoint)?;
        greet(endpoint)?;
    }
    if flow != Flow::In {
        take(endpoint)?;
    }
    Ok(())
}

fn greet<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    (0..endpoint.lanes()).try_for_each(|_| endpoint.send_sync())
}

fn take<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    for _ in 0..endpoint.lanes() {
        endpoint.receive()?;
        endpoint.replenish()?;
    }
    Ok(())
}
