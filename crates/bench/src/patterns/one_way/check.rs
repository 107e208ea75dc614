//! What a plan must not ask of one-way messages.

use crate::Error;
use crate::axis;
use crate::endpoint::header::HEADER_BYTES;
use crate::pattern::check::Check;
use crate::point::{Length, Operation, Poll, QueuePoll, RAW_SAMPLES_MAX, Stamp};

/// Bytes of a stamp in a message.
const STAMP_BYTES: u64 = 8;

/// Checks an experiment of one-way messages.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    stamps_fit(check)?;
    messages(check)?;
    numbered(check)?;
    sleeps(check)?;
    signals(check)?;
    stamps(check)
}

fn stamps_fit(check: &Check<'_>) -> Result<(), Error> {
    let why = "the stamps of all messages are kept in memory, so their number is limited: give iterations";
    /// A rank has up to three stamps for each message, which it sends in one frame.
    const MESSAGES_MAX: u64 = RAW_SAMPLES_MAX / 4;
    match check.0.length {
        Length::Duration(_) => check.refuse("duration", "one-way timing for a duration", why),
        Length::Iterations(n) if n.saturating_add(check.0.warmup) > MESSAGES_MAX => {
            check.refuse("iterations", &format!("more than {MESSAGES_MAX} messages one way"), why)
        }
        Length::Iterations(_) => Ok(()),
    }
}

fn messages(check: &Check<'_>) -> Result<(), Error> {
    let has = |operation: &Operation| matches!(operation, Operation::SendImm | Operation::WriteImm);
    if let Some(other) = check.operation(|operation| !has(operation)) {
        let why = "immediate data numbers the messages: use send_imm or write_imm";
        return check.refuse("operation", &format!("{} one way", other.name()), why);
    }
    let why = "a message is one element on one queue pair";
    check.one(axis::QUEUE_PAIRS.row, "several queue pairs one way", why)?;
    check.one(axis::SGE.row, "several elements one way", why)?;
    check.pauses()
}

/// Checks the size of messages without immediate data, which contain their number.
fn numbered(check: &Check<'_>) -> Result<(), Error> {
    match check.size_below(HEADER_BYTES as u64).filter(|_| check.0.carrier.is_socket()) {
        Some(size) => {
            let why = format!("the number of a message takes {HEADER_BYTES} bytes");
            check.refuse("size_bytes", &format!("messages of {size} B one way"), &why)
        }
        None => Ok(()),
    }
}

/// Whether the sender may sleep for the completion of a send.
fn sends_sleep(check: &Check<'_>) -> bool {
    let axes = &check.0.axes;
    axes.get(axis::POLL).into_iter().any(|poll| poll.queues().1.sleeps())
        || axes.get(axis::SEND_POLL).into_iter().flatten().any(QueuePoll::sleeps)
}

fn sleeps(check: &Check<'_>) -> Result<(), Error> {
    let sends = check.0.axes.get(axis::SEND_POLL);
    if check.has(axis::POLL, Poll::Hybrid) && sends.iter().any(Option::is_some) {
        let why = "\"hybrid\" already says how the sender waits: give poll = \"busy\"";
        return check.refuse("send_poll", "send_poll together with poll = \"hybrid\"", why);
    }
    Ok(())
}

/// Checks that each burst contains a signalled send: a burst ends with the completion of its last
/// message.
fn signals(check: &Check<'_>) -> Result<(), Error> {
    let bursts = check.0.axes.get(axis::BURST);
    let intervals = check.0.axes.get(axis::SIGNAL_INTERVAL);
    let half = check.least_depth(axis::TX_DEPTH) / 2;
    let interval = intervals.iter().map(|interval| interval.unwrap_or(half)).max().unwrap_or(1);
    match bursts.iter().flatten().find(|burst| **burst < interval) {
        Some(burst) => {
            let what = format!("signal_interval {interval} with a burst of {burst}");
            check.refuse("signal_interval", &what, "a burst ends with a completion: lengthen the burst")
        }
        None => Ok(()),
    }
}

/// Checks experiments whose messages carry a stamp.
fn stamps(check: &Check<'_>) -> Result<(), Error> {
    if !check.has(axis::STAMP, Stamp::Sent) {
        return Ok(());
    }
    let what = "stamp = \"sent\"";
    if check.has(axis::INLINE, true) {
        let why = "inline data is copied when it is posted: the device fetches nothing";
        return check.refuse("stamp", &format!("{what} with inline"), why);
    }
    if check.0.axes.get(axis::BURST).into_iter().any(|burst| burst != Some(1)) {
        let why = "the next message could replace one whose stamp is not read yet: give 1";
        return check.refuse("burst", &format!("{what} with a burst above 1"), why);
    }
    if sends_sleep(check) {
        let why = "a sender that sleeps cannot write the stamp: poll for sends";
        return check.refuse("stamp", &format!("{what} with a sender that sleeps"), why);
    }
    match check.size_below(STAMP_BYTES) {
        Some(size) => {
            let why = format!("a stamp has {STAMP_BYTES} bytes");
            check.refuse("size_bytes", &format!("{what} with messages of {size} B"), &why)
        }
        None => Ok(()),
    }
}
