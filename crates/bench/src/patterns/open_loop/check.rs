//! What a plan must not ask of messages at a set rate, and what only they have.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Carrier, Length, Load, Operation};

/// Above it one message is due before the clock has told that the one before was.
const RATE_HZ_MAX: u64 = 50_000_000;

impl Check<'_> {
    /// Checks an experiment with a set rate.
    pub(crate) fn open_loop(&self) -> Result<(), Error> {
        if self.largest(axis::QUEUE_PAIRS.row) > 1 {
            let why = "answers would come out of their order";
            return self.refuse("queue_pairs", "messages at a set rate over several queue pairs", why);
        }
        self.answered()?;
        self.loaded()?;
        self.rates()?;
        let loads = self.0.axes.get(axis::LOAD_BYTES);
        if loads.contains(&0) {
            return self.refuse("load_bytes", "a load of empty messages", "give at least 1");
        }
        Ok(())
    }

    /// Each message must be told of, however many are under way.
    fn answered(&self) -> Result<(), Error> {
        let operations = self.0.axes.get(axis::OPERATION);
        if operations.contains(&Operation::Write) {
            let why = "several may be under way, and memory tells of the last alone: use write_imm";
            return self.refuse("operation", "RDMA Write at a set rate", why);
        }
        if self.signals_seldom() {
            let why = "who asks for few completions learns late that there is room: give 1";
            return self.refuse("signal_interval", "messages at a set rate, seldom signalled", why);
        }
        let fetches = operations.iter().any(|operation| operation.is_fetch());
        let polls = self.0.axes.get(axis::POLL);
        if fetches && polls.iter().any(|poll| poll.queues().1.sleeps()) {
            let why = "who sleeps for a completion does not wake when the next message is due: use busy";
            return self.refuse("poll", "fetches at a set rate by a rank that sleeps", why);
        }
        Ok(())
    }

    /// Not every endpoint carries a load.
    fn loaded(&self) -> Result<(), Error> {
        let carrier = self.0.carrier;
        if carrier == Carrier::Shmem && self.0.axes.get(axis::LOADERS).iter().any(|loaders| *loaders > 0) {
            let why = "nobody takes what loads put into a ring: use unix_stream";
            return self.refuse("loaders", "loads over shared memory", why);
        }
        if carrier.is_socket() && self.0.axes.get(axis::LOAD).contains(&Load::Outcast) {
            let why =
                "it is RDMA Read of the memory of who asks, which sockets have not: use incast or beside";
            return self.refuse("load", &format!("a load outcast over {}", carrier.name()), why);
        }
        Ok(())
    }

    /// Rates that can be, and that end in time.
    pub(crate) fn rates(&self) -> Result<(), Error> {
        let rates = self.0.axes.get(axis::RATE_HZ);
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        // Of which there are the most messages.
        let smallest = sizes.iter().copied().min().unwrap_or(1).max(1);
        for rate_hz in rates {
            if rate_hz == 0 || rate_hz > RATE_HZ_MAX {
                let why = format!("give 1 to {RATE_HZ_MAX} messages in a second");
                return self.refuse("rate_hz", &format!("a rate of {rate_hz}/s"), &why);
            }
            let (length, warmup) = self.0.length_at(smallest, Some(rate_hz));
            let Length::Iterations(messages) = length else { continue };
            let takes_s = messages.saturating_add(warmup) as f64 / rate_hz as f64;
            if takes_s >= self.0.timeout_s {
                let what = format!("{messages} messages and {warmup} to warm up at {rate_hz}/s");
                let why = format!(
                    "that takes {takes_s:.0} s, and the point may take {} s: raise timeout, or measure fewer",
                    self.0.timeout_s
                );
                return self.refuse("rate_hz", &what, &why);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
