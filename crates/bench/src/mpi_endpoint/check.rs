//! What a plan must not ask of MPI.

use super::endpoint::MpiEndpoint;
use crate::Error;
use crate::axis;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::pattern::check::{Check, patterns};
use crate::point::{MpiCall, Pattern, Poll, Traffic};

/// Checks an experiment that MPI carries.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let carries = |pattern: &Pattern| MpiEndpoint::CAPABILITIES.contain(pattern.row().needs);
    if !carries(&check.0.pattern) {
        let what = format!("the pattern {:?} over MPI", check.0.pattern.name());
        let why = format!("MPI carries {}", patterns(carries).join(", "));
        return check.refuse("endpoint", &what, &why);
    }
    if check.has(axis::POLL, Poll::Event) {
        let why = "the library decides how its calls wait: leave it out";
        return check.refuse("poll", "MPI that sleeps for messages", why);
    }
    let floods = check.0.pattern.row().floods || check.has(axis::TRAFFIC, Traffic::Stream);
    if floods && check.has(axis::MPI_CALL, MpiCall::Blocking) {
        let why = "a flood keeps several messages under way: use nonblocking";
        return check.refuse("mpi_call", "a stream of blocking calls", why);
    }
    if check.0.axes.numbers(axis::LOADERS.row).any(|loaders| loaders > 0) {
        let why =
            "a rank takes messages of MPI only in its own calls, so nobody would take a load: give loaders 0";
        return check.refuse("loaders", "a load of messages of MPI", why);
    }
    match check.0.axes.get(axis::SIZE_BYTES).into_iter().find(|size| *size > BYTES_MAX) {
        Some(size) => {
            let why = format!("a count of MPI is an int: at most {BYTES_MAX} B");
            check.refuse("size_bytes", &format!("messages of {size} B over MPI"), &why)
        }
        None => Ok(()),
    }
}

/// The largest count.
const BYTES_MAX: u64 = i32::MAX as u64;
