//! What a plan must not ask of parametrised round trips.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;

/// Checks an experiment of parametrised round trips.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    if let Some(silent) = check.operation(|operation| !operation.arrives()) {
        let why = "the receiver is not notified, so it cannot answer: use send, send_imm or write_imm";
        return check.refuse("operation", &format!("bursts of {}", silent.name()), why);
    }
    let why = "messages of a burst would arrive out of order";
    check.one(axis::QUEUE_PAIRS.row, "bursts over several queue pairs", why)?;
    if check.signals_seldom() {
        let why = "all sends complete before the next round: give 1";
        return check.refuse("signal_interval", "bursts with unsignalled sends", why);
    }
    check.pauses()?;
    bursts(check)
}

/// Refuses bursts that do not fit into the queues: a burst waits only for its pauses.
fn bursts(check: &Check<'_>) -> Result<(), Error> {
    if check.has(axis::BURST, None) {
        return check.refuse("burst", "a burst of all messages", "each burst is answered: give a number");
    }
    let burst = check.largest(axis::BURST.row);
    let room = check.room();
    if burst > u64::from(room) {
        let why =
            format!("the queues hold {room} requests: shorten the burst, or raise tx_depth and rx_depth");
        return check.refuse("burst", &format!("bursts of {burst} messages"), &why);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
