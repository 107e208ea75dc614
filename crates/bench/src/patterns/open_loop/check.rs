//! What a plan must not ask of messages at a set rate, and what only they have.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Carrier, Load, Operation};

/// Checks an experiment with a set rate.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let why = "answers would come out of their order";
    check.one(axis::QUEUE_PAIRS.row, "messages at a set rate over several queue pairs", why)?;
    answered(check)?;
    loaded(check)?;
    check.rates()?;
    if check.has(axis::LOAD_BYTES, 0) {
        return check.refuse("load_bytes", "a load of empty messages", "give at least 1");
    }
    Ok(())
}

/// Each message must be told of, however many are under way.
fn answered(check: &Check<'_>) -> Result<(), Error> {
    if check.has(axis::OPERATION, Operation::Write) {
        let why = "several may be under way, and memory tells of the last alone: use write_imm";
        return check.refuse("operation", "RDMA Write at a set rate", why);
    }
    if check.signals_seldom() {
        let why = "who asks for few completions learns late that there is room: give 1";
        return check.refuse("signal_interval", "messages at a set rate, seldom signalled", why);
    }
    let fetches = check.operation(|operation| operation.is_fetch()).is_some();
    let polls = check.0.axes.get(axis::POLL);
    if fetches && polls.iter().any(|poll| poll.queues().1.sleeps()) {
        let why = "who sleeps for a completion does not wake when the next message is due: use busy";
        return check.refuse("poll", "fetches at a set rate by a rank that sleeps", why);
    }
    Ok(())
}

/// Not every endpoint carries a load.
fn loaded(check: &Check<'_>) -> Result<(), Error> {
    let carrier = check.0.carrier;
    if carrier == Carrier::Shmem && check.0.axes.get(axis::LOADERS).iter().any(|loaders| *loaders > 0) {
        let why = "nobody takes what loads put into a ring: use unix_stream";
        return check.refuse("loaders", "loads over shared memory", why);
    }
    if carrier.is_socket() && check.has(axis::LOAD, Load::Outcast) {
        let why = "it is RDMA Read of the memory of who asks, which sockets have not: use incast or beside";
        return check.refuse("load", &format!("a load outcast over {}", carrier.name()), why);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
