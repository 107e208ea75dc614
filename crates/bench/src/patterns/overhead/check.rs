//! What a plan must not ask of calls that are timed by themselves, and what only they have.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Length, Memory, Poll, RAW_SAMPLES_MAX, Setup, Step};

impl Check<'_> {
    /// Checks an experiment of calls that are timed by themselves.
    pub(crate) fn overhead(&self) -> Result<(), Error> {
        self.calls()?;
        let steps = self.0.axes.get(axis::STEP);
        self.batches(&steps)?;
        self.steps(&steps)
    }

    /// A call is the same whatever else goes on: what would change it during a point is refused.
    fn calls(&self) -> Result<(), Error> {
        match self.0.length {
            Length::Duration(_) => {
                let why = "batches are counted: give iterations";
                return self.refuse("duration", "calls that are timed for a time", why);
            }
            Length::Iterations(batches) if batches > RAW_SAMPLES_MAX => {
                let what = format!("more than {RAW_SAMPLES_MAX} batches of calls");
                return self.refuse("iterations", &what, "each has a sample in memory that is made before");
            }
            Length::Iterations(_) => {}
        }
        let polls = self.0.axes.get(axis::POLL);
        if polls.iter().any(|poll| *poll != Poll::Busy) {
            let why = "a sleep is no part of a call: give poll = \"busy\"";
            return self.refuse("poll", "calls of an end that sleeps", why);
        }
        for (row, what) in [
            (axis::QUEUE_PAIRS.row, "several queue pairs"),
            (axis::OUTSTANDING_READS.row, "a number of reads under way"),
        ] {
            if self.largest(row) > 1 {
                let why = "a batch is of calls that are all alike, on one queue pair";
                return self.refuse(row.name, &format!("calls with {what}"), why);
            }
        }
        if self.signals_seldom() {
            let why = "every send of a batch asks for its completion: give 1";
            return self.refuse("signal_interval", "calls of sends that do so seldom", why);
        }
        if self.0.axes.get(axis::SETUP).contains(&Setup::RdmaCm) {
            let why = "what RDMA CM does is no call of verbs: give setup = \"exchange\", or none";
            return self.refuse("setup", "calls through RDMA CM", why);
        }
        Ok(())
    }

    /// No batch of posts or polls may be more than the queues hold.
    fn batches(&self, steps: &[Step]) -> Result<(), Error> {
        let batch = self.largest(axis::BATCH.row);
        let room = self.least_depth(axis::TX_DEPTH).min(self.least_depth(axis::RX_DEPTH));
        if batch > u64::from(room) && steps.iter().any(|step| step.is_hot()) {
            let why =
                format!("the queues hold {room} requests: shorten the batch, or raise tx_depth and rx_depth");
            return self.refuse("batch", &format!("batches of {batch} calls"), &why);
        }
        Ok(())
    }

    fn steps(&self, steps: &[Step]) -> Result<(), Error> {
        let operations = self.0.axes.get(axis::OPERATION);
        let memories = self.0.axes.get(axis::MEMORY);
        let silent = operations.iter().find(|operation| !operation.arrives());
        if let (Some(step), Some(operation)) = (steps.iter().find(|step| step.is_of_receiver()), silent) {
            let what = format!("{} of {}", step.word(), operation.name());
            return self.refuse("step", &what, "nothing arrives there that a receive is posted for");
        }
        let of_memory = steps.iter().find(|step| step.is_of_memory());
        if let (Some(step), true) = (of_memory, memories.contains(&Memory::Device)) {
            let what = format!("{} of the device's memory", step.word());
            return self.refuse("memory", &what, "it is there already: give memory = \"process\", or none");
        }
        if let (Some(step), true) = (of_memory, self.0.axes.get(axis::SIZE_BYTES).contains(&0)) {
            let what = format!("{} of 0 B", step.word());
            return self.refuse("size_bytes", &what, "a memory region has at least 1 byte");
        }
        let registered = of_memory.map_or(0, |_| self.largest(axis::SIZE_BYTES.row));
        if registered.saturating_mul(self.largest(axis::BATCH.row)) > REGISTERED_MAX {
            let why = "a batch is registered at the same time: shorten it, or take smaller sizes";
            return self.refuse("batch", "batches that register more than 4 GiB", why);
        }
        Ok(())
    }
}

/// All of a batch is mapped at once: more than a small machine has.
const REGISTERED_MAX: u64 = 4 << 30;

#[cfg(test)]
mod tests;
