//! What a plan must not ask of messages that are timed one way, and what only they have.

use crate::Error;
use crate::axis;
use crate::endpoint::header::HEADER_BYTES;
use crate::pattern::check::Check;
use crate::point::{Length, Operation, Poll, QueuePoll, RAW_SAMPLES_MAX, Stamp};

/// Bytes of a stamp in a message.
const STAMP_BYTES: u64 = 8;
/// Longest pause: the peer's patience, and that of whoever waits for the run, ends.
pub(crate) const PAUSE_NS_MAX: u64 = 60_000_000_000;

impl Check<'_> {
    /// Checks an experiment of messages that are timed one way.
    pub(crate) fn one_way(&self) -> Result<(), Error> {
        self.stamps_fit()?;
        self.messages()?;
        self.numbered()?;
        self.sleeps()?;
        self.signals()?;
        self.stamps()
    }

    fn stamps_fit(&self) -> Result<(), Error> {
        let why = "every message has stamps in memory that is made before: give iterations, warm-up included";
        /// Each has up to three stamps at an end, which travel in one frame.
        const MESSAGES_MAX: u64 = RAW_SAMPLES_MAX / 4;
        match self.0.length {
            Length::Duration(_) => self.refuse("duration", "one-way timing for a time", why),
            Length::Iterations(n) if n.saturating_add(self.0.warmup) > MESSAGES_MAX => {
                self.refuse("iterations", &format!("more than {MESSAGES_MAX} messages one way"), why)
            }
            Length::Iterations(_) => Ok(()),
        }
    }

    fn messages(&self) -> Result<(), Error> {
        let has = |operation: &Operation| matches!(operation, Operation::SendImm | Operation::WriteImm);
        let operations = self.0.axes.get(axis::OPERATION);
        if let Some(other) = operations.iter().find(|operation| !has(operation)) {
            let why = "messages are told apart by their immediate data: use send_imm or write_imm";
            return self.refuse("operation", &format!("{} one way", other.name()), why);
        }
        for (row, what) in
            [(axis::QUEUE_PAIRS.row, "several queue pairs"), (axis::SGE.row, "several elements")]
        {
            if self.largest(row) > 1 {
                return self.refuse(
                    row.name,
                    &format!("{what} one way"),
                    "a message is one element on one queue pair",
                );
            }
        }
        if self.largest(axis::PAUSE_NS.row) > PAUSE_NS_MAX {
            return self.refuse(
                "pause_ns",
                "a pause of more than a minute",
                "the peer would be taken for dead",
            );
        }
        Ok(())
    }

    /// A message that has no immediate data says its number itself.
    fn numbered(&self) -> Result<(), Error> {
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        match sizes.iter().find(|size| self.0.carrier.is_socket() && **size < HEADER_BYTES as u64) {
            Some(size) => {
                let why = format!("a message says its number in {HEADER_BYTES} bytes");
                self.refuse("size_bytes", &format!("messages of {size} B one way"), &why)
            }
            None => Ok(()),
        }
    }

    /// Whether the sender may sleep until a message is sent.
    fn sends_sleep(&self) -> bool {
        let axes = &self.0.axes;
        axes.get(axis::POLL).into_iter().any(|poll| poll.queues().1.sleeps())
            || axes.get(axis::SEND_POLL).into_iter().flatten().any(QueuePoll::sleeps)
    }

    fn sleeps(&self) -> Result<(), Error> {
        let polls = self.0.axes.get(axis::POLL);
        let sends = self.0.axes.get(axis::SEND_POLL);
        if polls.contains(&Poll::Hybrid) && sends.iter().any(Option::is_some) {
            let why = "\"hybrid\" says how sends are waited for: give poll = \"busy\"";
            return self.refuse("send_poll", "send_poll beside poll = \"hybrid\"", why);
        }
        Ok(())
    }

    /// A burst ends with a completion of its last message; who is to wait for others must be told
    /// of them.
    fn signals(&self) -> Result<(), Error> {
        let bursts = self.0.axes.get(axis::BURST);
        let intervals = self.0.axes.get(axis::SIGNAL_INTERVAL);
        let half = self.least_depth(axis::TX_DEPTH) / 2;
        let interval = intervals.iter().map(|interval| interval.unwrap_or(half)).max().unwrap_or(1);
        match bursts.iter().flatten().find(|burst| **burst < interval) {
            Some(burst) => {
                let what = format!("signal_interval {interval} with a burst of {burst}");
                self.refuse("signal_interval", &what, "a burst ends with a completion: lengthen it")
            }
            None => Ok(()),
        }
    }

    /// The stamp that is written until the device fetches it.
    fn stamps(&self) -> Result<(), Error> {
        let stamps = self.0.axes.get(axis::STAMP);
        if !stamps.contains(&Stamp::Sent) {
            return Ok(());
        }
        let what = "stamp = \"sent\"";
        if self.0.axes.get(axis::INLINE).contains(&true) {
            let why = "inline data is copied when it is posted: the device fetches nothing";
            return self.refuse("stamp", &format!("{what} with inline"), why);
        }
        if self.0.axes.get(axis::BURST).into_iter().any(|burst| burst != Some(1)) {
            let why = "the next message could take the place of one whose stamp is not read yet: give 1";
            return self.refuse("burst", &format!("{what} with a burst above 1"), why);
        }
        if self.sends_sleep() {
            let why = "whoever sleeps cannot write the stamp: poll for sends";
            return self.refuse("stamp", &format!("{what} with sends that are slept for"), why);
        }
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        match sizes.iter().find(|size| **size < STAMP_BYTES) {
            Some(size) => {
                let why = format!("a stamp has {STAMP_BYTES} bytes");
                self.refuse("size_bytes", &format!("{what} with messages of {size} B"), &why)
            }
            None => Ok(()),
        }
    }
}
