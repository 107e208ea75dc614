//! What a plan must not ask of messages that are timed one way, and what only they have.

use super::Axis;
use super::defaults::Filled;
use crate::Error;
use crate::point::{Length, Operation, Pattern, Poll, RAW_SAMPLES_MAX, STAMP_BYTES, Stamp};

/// Checks an experiment with every default filled in.
pub(super) fn check(filled: &Filled) -> Result<(), Error> {
    let check = Check(filled);
    if filled.pattern != Pattern::OneWay {
        return check.others();
    }
    check.length()?;
    check.operation()?;
    check.polls()?;
    check.signals()?;
    check.stamps()
}

/// Axes that only this pattern has.
const OWN: [&str; 6] = ["buffers", "burst", "pause_ns", "rx_fill", "send_poll", "stamp"];
/// Longest pause: the peer's patience, and that of whoever waits for the run, ends.
const PAUSE_NS_MAX: u64 = 60_000_000_000;
/// Pools of the thesis have some thousand; more than any queue holds, and what a slip of the pen would not stop at.
const BUFFERS_MAX: u32 = 1 << 20;

/// Whether an axis lets the sender sleep until a message is sent.
fn sends_sleep(axis: &Axis) -> bool {
    match axis {
        Axis::Poll(polls) => polls.iter().any(|poll| poll.queues().1.sleeps()),
        Axis::SendPoll(polls) => polls.iter().flatten().any(|poll| poll.sleeps()),
        _ => false,
    }
}

struct Check<'a>(&'a Filled);

impl Check<'_> {
    /// Refuses what only this pattern has where it is another one.
    fn others(&self) -> Result<(), Error> {
        match self.0.axes.iter().find(|axis| OWN.contains(&axis.name())) {
            Some(axis) => {
                let what = format!("{} with the pattern {:?}", axis.name(), self.0.pattern.name());
                self.refuse(axis.name(), &what, "it is for the pattern \"one-way\"")
            }
            None => Ok(()),
        }
    }

    fn length(&self) -> Result<(), Error> {
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

    fn operation(&self) -> Result<(), Error> {
        let has = |operation: &Operation| matches!(operation, Operation::SendImm | Operation::WriteImm);
        let operations = self.values(|axis| match axis {
            Axis::Operation(values) => Some(values.as_slice()),
            _ => None,
        });
        if let Some(other) = operations.iter().find(|operation| !has(operation)) {
            let why = "messages are told apart by their immediate data: use send_imm or write_imm";
            return self.refuse("operation", &format!("{} one way", other.name()), why);
        }
        for (key, what) in [("queue_pairs", "several queue pairs"), ("sge", "several elements")] {
            if self.largest(key) > 1 {
                return self.refuse(
                    key,
                    &format!("{what} one way"),
                    "a message is one element on one queue pair",
                );
            }
        }
        if self.largest("pause_ns") > PAUSE_NS_MAX {
            return self.refuse(
                "pause_ns",
                "a pause of more than a minute",
                "the peer would be taken for dead",
            );
        }
        if self.largest("buffers") > u64::from(BUFFERS_MAX) {
            return self.refuse(
                "buffers",
                &format!("more than {BUFFERS_MAX} buffers"),
                "no pool is so large",
            );
        }
        Ok(())
    }

    fn polls(&self) -> Result<(), Error> {
        let polls = self.values(|axis| match axis {
            Axis::Poll(values) => Some(values.as_slice()),
            _ => None,
        });
        let sends = self.values(|axis| match axis {
            Axis::SendPoll(values) => Some(values.as_slice()),
            _ => None,
        });
        if polls.contains(&Poll::Hybrid) && sends.iter().any(Option::is_some) {
            let why = "\"hybrid\" says how sends are waited for: give poll = \"busy\"";
            return self.refuse("send_poll", "send_poll beside poll = \"hybrid\"", why);
        }
        Ok(())
    }

    /// A burst ends with a completion of its last message; who is to wait for others must be told of them.
    fn signals(&self) -> Result<(), Error> {
        let bursts = self.values(|axis| match axis {
            Axis::Burst(values) => Some(values.as_slice()),
            _ => None,
        });
        let half = self
            .0
            .axes
            .iter()
            .any(|axis| matches!(axis, Axis::SignalInterval(values) if values.contains(&None)));
        let interval = self.largest("signal_interval").max(if half { self.half_depth() } else { 1 });
        match bursts.iter().flatten().find(|burst| u64::from(**burst) < interval) {
            Some(burst) => {
                let what = format!("signal_interval {interval} with a burst of {burst}");
                self.refuse("signal_interval", &what, "a burst ends with a completion: lengthen it")
            }
            None => Ok(()),
        }
    }

    /// The stamp that is written until the device fetches it.
    fn stamps(&self) -> Result<(), Error> {
        let stamps = self.values(|axis| match axis {
            Axis::Stamp(values) => Some(values.as_slice()),
            _ => None,
        });
        if !stamps.contains(&Stamp::Sent) {
            return Ok(());
        }
        let what = "stamp = \"sent\"";
        let inline =
            self.0.axes.iter().any(|axis| matches!(axis, Axis::Inline(values) if values.contains(&true)));
        if inline {
            let why = "inline data is copied when it is posted: the device fetches nothing";
            return self.refuse("stamp", &format!("{what} with inline"), why);
        }
        let alone = |axis: &Axis| !matches!(axis, Axis::Burst(values) if values.iter().any(|burst| *burst != Some(1)));
        if !self.0.axes.iter().all(alone) {
            let why = "the next message could take the place of one whose stamp is not read yet: give 1";
            return self.refuse("burst", &format!("{what} with a burst above 1"), why);
        }
        if self.0.axes.iter().any(sends_sleep) {
            let why = "whoever sleeps cannot write the stamp: poll for sends";
            return self.refuse("stamp", &format!("{what} with sends that are slept for"), why);
        }
        let sizes = self.values(|axis| match axis {
            Axis::SizeBytes(values) => Some(values.as_slice()),
            _ => None,
        });
        match sizes.iter().find(|size| **size < STAMP_BYTES) {
            Some(size) => {
                let why = format!("a stamp has {STAMP_BYTES} bytes");
                self.refuse("size_bytes", &format!("{what} with messages of {size} B"), &why)
            }
            None => Ok(()),
        }
    }

    /// Half of the least send queue.
    fn half_depth(&self) -> u64 {
        let depths = self.values(|axis| match axis {
            Axis::TxDepth(values) => Some(values.as_slice()),
            _ => None,
        });
        u64::from(depths.iter().min().copied().unwrap_or(self.0.tx_depth) / 2)
    }

    fn values<T>(&self, of: impl Fn(&Axis) -> Option<&[T]>) -> &[T] {
        self.0.axes.iter().find_map(of).unwrap_or_default()
    }

    fn largest(&self, name: &str) -> u64 {
        let axis = self.0.axes.iter().filter(|axis| axis.name() == name);
        axis.flat_map(Axis::values).filter_map(|value| value.as_u64()).max().unwrap_or(1)
    }

    fn refuse(&self, key: &str, what: &str, why: &str) -> Result<(), Error> {
        let place = self.0.settings.place(key).unwrap_or_else(|| self.0.place.clone());
        let experiment = self.0.name.clone();
        Err(Error::Refused { place, experiment, what: what.to_owned(), why: why.to_owned() })
    }
}
