//! What a plan must not ask of messages at a set rate.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Carrier, Load, Operation};

/// Checks an experiment with a set rate.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let why = "answers would arrive out of order";
    check.one(axis::QUEUE_PAIRS.row, "messages at a set rate over several queue pairs", why)?;
    answered(check)?;
    loaded(check)?;
    check.rates()?;
    if check.has(axis::LOAD_BYTES, 0) {
        return check.refuse("load_bytes", "a load of empty messages", "give at least 1 byte");
    }
    Ok(())
}

/// Refuses messages that are not reported one by one, however many are outstanding.
fn answered(check: &Check<'_>) -> Result<(), Error> {
    if check.has(axis::OPERATION, Operation::Write) {
        let why = "several may be outstanding, and memory shows only the last: use write_imm";
        return check.refuse("operation", "RDMA Write at a set rate", why);
    }
    if check.signals_seldom() {
        let why = "the sender would learn late that there is room: give 1";
        return check.refuse("signal_interval", "unsignalled messages at a set rate", why);
    }
    let fetches = check.operation(|operation| operation.is_fetch()).is_some();
    let polls = check.0.axes.get(axis::POLL);
    if fetches && polls.iter().any(|poll| poll.queues().1.sleeps()) {
        let why = "a rank that sleeps for a completion does not wake when the next message is due: use busy";
        return check.refuse("poll", "fetches at a set rate by a rank that sleeps", why);
    }
    Ok(())
}

/// Refuses loads that the endpoint cannot carry.
fn loaded(check: &Check<'_>) -> Result<(), Error> {
    let carrier = check.0.carrier;
    if carrier == Carrier::Shmem && check.0.axes.get(axis::LOADERS).iter().any(|loaders| *loaders > 0) {
        let why = "no rank takes the load's messages out of the shared memory: use unix_stream";
        return check.refuse("loaders", "loads over shared memory", why);
    }
    if carrier.is_socket() && check.has(axis::LOAD, Load::Outcast) {
        let why = "outcast is RDMA Read of rank 0's memory, which sockets do not have: use incast or beside";
        return check.refuse("load", &format!("a load outcast over {}", carrier.name()), why);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
