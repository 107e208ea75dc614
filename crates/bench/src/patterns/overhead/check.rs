//! What a plan must not ask of the pattern `overhead`.

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

/// Refuses settings that would make the calls of a point differ.
fn calls(check: &Check<'_>) -> Result<(), Error> {
    match check.0.length {
        Length::Duration(_) => {
            let why = "batches are counted: give iterations";
            return check.refuse("duration", "calls for a duration", why);
        }
        Length::Iterations(batches) if batches > RAW_SAMPLES_MAX => {
            let what = format!("more than {RAW_SAMPLES_MAX} batches of calls");
            return check.refuse("iterations", &what, "the samples of all batches are kept in memory");
        }
        Length::Iterations(_) => {}
    }
    let polls = check.0.axes.get(axis::POLL);
    if polls.iter().any(|poll| *poll != Poll::Busy) {
        let why = "a sleep is no part of a call: give poll = \"busy\"";
        return check.refuse("poll", "calls of a rank that sleeps", why);
    }
    let why = "all calls of a batch are equal, on one queue pair";
    check.one(axis::QUEUE_PAIRS.row, "calls with several queue pairs", why)?;
    check.one(axis::OUTSTANDING_READS.row, "calls with several outstanding reads", why)?;
    if check.signals_seldom() {
        let why = "every send of a batch asks for its completion: give 1";
        return check.refuse("signal_interval", "calls with unsignalled sends", why);
    }
    if check.has(axis::SETUP, Setup::RdmaCm) {
        let why = "RDMA CM has separate steps: give step = \"rdma_cm_connect\"";
        return check.refuse("setup", "calls through RDMA CM", why);
    }
    Ok(())
}

/// Refuses batches of posts or polls that are larger than the queues.
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

/// Refuses steps that lack what they need.
fn steps_fit(check: &Check<'_>, steps: &[Step]) -> Result<(), Error> {
    let silent = check.operation(|operation| !operation.arrives());
    if let (Some(step), Some(operation)) = (steps.iter().find(|step| step.is_of_receiver()), silent) {
        let what = format!("{} of {}", step.word(), operation.name());
        return check.refuse("step", &what, "this operation consumes no receive");
    }
    let of_manager = steps.iter().find(|step| step.is_of_manager());
    let services = check.0.axes.get(axis::SERVICE);
    if let (Some(step), Some(service)) =
        (of_manager, services.iter().find(|service| **service != Service::Rc))
    {
        let what = format!("{} over {}", step.word(), service.word());
        return check.refuse(
            "step",
            &what,
            "RDMA CM connects only RC: give service = \"RC\", or leave it out",
        );
    }
    let of_memory = steps.iter().find(|step| step.is_of_memory());
    if let (Some(step), true) = (of_memory, check.has(axis::MEMORY, Memory::Device)) {
        let what = format!("{} of the device's memory", step.word());
        return check.refuse(
            "memory",
            &what,
            "it exists already: give memory = \"process\", or leave it out",
        );
    }
    if let (Some(step), true) = (of_memory, check.has(axis::SIZE_BYTES, 0)) {
        let what = format!("{} of 0 B", step.word());
        return check.refuse("size_bytes", &what, "a memory region has at least 1 byte");
    }
    let registered = of_memory.map_or(0, |_| check.largest(axis::SIZE_BYTES.row));
    if registered.saturating_mul(check.largest(axis::BATCH.row)) > REGISTERED_MAX {
        let why = "all regions of a batch exist at the same time: give a smaller batch, or smaller sizes";
        return check.refuse("batch", "batches that register more than 4 GiB", why);
    }
    Ok(())
}

/// The most memory that a batch may map at once: more than a small machine has.
const REGISTERED_MAX: u64 = 4 << 30;

#[cfg(test)]
mod tests;
