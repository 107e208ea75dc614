//! What a plan must not ask of calls that are timed by themselves, and what only they have.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Length, Memory, Poll, RAW_SAMPLES_MAX, Service, Setup, Step};

/// Checks an experiment of calls that are timed by themselves.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    calls(check)?;
    let steps = check.0.axes.get(axis::STEP);
    batches(check, &steps)?;
    steps_fit(check, &steps)
}

/// A call is the same whatever else goes on: what would change it during a point is refused.
fn calls(check: &Check<'_>) -> Result<(), Error> {
    match check.0.length {
        Length::Duration(_) => {
            let why = "batches are counted: give iterations";
            return check.refuse("duration", "calls that are timed for a time", why);
        }
        Length::Iterations(batches) if batches > RAW_SAMPLES_MAX => {
            let what = format!("more than {RAW_SAMPLES_MAX} batches of calls");
            return check.refuse("iterations", &what, "each has a sample in memory that is made before");
        }
        Length::Iterations(_) => {}
    }
    let polls = check.0.axes.get(axis::POLL);
    if polls.iter().any(|poll| *poll != Poll::Busy) {
        let why = "a sleep is no part of a call: give poll = \"busy\"";
        return check.refuse("poll", "calls of an end that sleeps", why);
    }
    let why = "a batch is of calls that are all alike, on one queue pair";
    check.one(axis::QUEUE_PAIRS.row, "calls with several queue pairs", why)?;
    check.one(axis::OUTSTANDING_READS.row, "calls with a number of reads under way", why)?;
    if check.signals_seldom() {
        let why = "every send of a batch asks for its completion: give 1";
        return check.refuse("signal_interval", "calls of sends that do so seldom", why);
    }
    if check.has(axis::SETUP, Setup::RdmaCm) {
        let why = "what RDMA CM does has steps of its own: give step = \"rdma_cm_connect\"";
        return check.refuse("setup", "calls through RDMA CM", why);
    }
    Ok(())
}

/// No batch of posts or polls may be more than the queues hold.
fn batches(check: &Check<'_>, steps: &[Step]) -> Result<(), Error> {
    let batch = check.largest(axis::BATCH.row);
    let room = check.room();
    if batch > u64::from(room) && steps.iter().any(|step| step.is_hot()) {
        let why =
            format!("the queues hold {room} requests: shorten the batch, or raise tx_depth and rx_depth");
        return check.refuse("batch", &format!("batches of {batch} calls"), &why);
    }
    Ok(())
}

/// Each step finds what it needs.
fn steps_fit(check: &Check<'_>, steps: &[Step]) -> Result<(), Error> {
    let silent = check.operation(|operation| !operation.arrives());
    if let (Some(step), Some(operation)) = (steps.iter().find(|step| step.is_of_receiver()), silent) {
        let what = format!("{} of {}", step.word(), operation.name());
        return check.refuse("step", &what, "nothing arrives there that a receive is posted for");
    }
    let of_manager = steps.iter().find(|step| step.is_of_manager());
    let services = check.0.axes.get(axis::SERVICE);
    if let (Some(step), Some(service)) =
        (of_manager, services.iter().find(|service| **service != Service::Rc))
    {
        let what = format!("{} of {}", step.word(), service.word());
        return check.refuse(
            "step",
            &what,
            "connections of RDMA CM are of RC: give service = \"RC\", or none",
        );
    }
    let of_memory = steps.iter().find(|step| step.is_of_memory());
    if let (Some(step), true) = (of_memory, check.has(axis::MEMORY, Memory::Device)) {
        let what = format!("{} of the device's memory", step.word());
        return check.refuse("memory", &what, "it is there already: give memory = \"process\", or none");
    }
    if let (Some(step), true) = (of_memory, check.has(axis::SIZE_BYTES, 0)) {
        let what = format!("{} of 0 B", step.word());
        return check.refuse("size_bytes", &what, "a memory region has at least 1 byte");
    }
    let registered = of_memory.map_or(0, |_| check.largest(axis::SIZE_BYTES.row));
    if registered.saturating_mul(check.largest(axis::BATCH.row)) > REGISTERED_MAX {
        let why = "a batch is registered at the same time: shorten it, or take smaller sizes";
        return check.refuse("batch", "batches that register more than 4 GiB", why);
    }
    Ok(())
}

/// All of a batch is mapped at once: more than a small machine has.
const REGISTERED_MAX: u64 = 4 << 30;

#[cfg(test)]
mod tests;
