//! What a plan must not ask of parametrised round trips.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::patterns::one_way::check::PAUSE_NS_MAX;

impl Check<'_> {
    /// Checks an experiment of parametrised round trips.
    pub(crate) fn prtt(&self) -> Result<(), Error> {
        let operations = self.0.axes.get(axis::OPERATION);
        if let Some(silent) = operations.iter().find(|operation| !operation.arrives()) {
            let why = "the target is told of nothing that it could answer: use send, send_imm or write_imm";
            return self.refuse("operation", &format!("bursts of {}", silent.name()), why);
        }
        if self.largest(axis::QUEUE_PAIRS.row) > 1 {
            let why = "messages of a burst would arrive out of their order";
            return self.refuse("queue_pairs", "bursts over several queue pairs", why);
        }
        if self.signals_seldom() {
            let why = "all sends complete before the next round: give 1";
            return self.refuse(
                "signal_interval",
                "bursts of sends that seldom ask for their completion",
                why,
            );
        }
        if self.largest(axis::PAUSE_NS.row) > PAUSE_NS_MAX {
            let why = "the peer would be taken for dead";
            return self.refuse("pause_ns", "a pause of more than a minute", why);
        }
        self.bursts()
    }

    /// A burst waits for nothing but its pauses.
    fn bursts(&self) -> Result<(), Error> {
        let bursts = self.0.axes.get(axis::BURST);
        if bursts.contains(&None) {
            return self.refuse("burst", "a burst of all messages", "each burst is answered: give a number");
        }
        let burst = self.largest(axis::BURST.row);
        let room = self.least_depth(axis::TX_DEPTH).min(self.least_depth(axis::RX_DEPTH));
        if burst > u64::from(room) {
            let why =
                format!("the queues hold {room} requests: shorten the burst, or raise tx_depth and rx_depth");
            return self.refuse("burst", &format!("bursts of {burst} messages"), &why);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
