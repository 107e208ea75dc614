//! What a plan must not ask of a fan-out, and its own axes.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Mesh, Notify, Operation, Service, Setup};

impl Check<'_> {
    /// Checks an experiment of one to n.
    pub(crate) fn fan_out(&self) -> Result<(), Error> {
        let operations = self.0.axes.get(axis::OPERATION);
        if self.largest(axis::QUEUE_PAIRS.row) > 1 {
            let why = "there is one to each of the peers";
            return self.refuse("queue_pairs", "several queue pairs with a fan-out", why);
        }
        self.told(&operations)?;
        self.datagrams()?;
        self.connected()
    }

    /// How ranks learn what others have done.
    fn told(&self, operations: &[Operation]) -> Result<(), Error> {
        let notifies = self.0.axes.get(axis::NOTIFY);
        let sleeps = self.0.axes.get(axis::POLL);
        let sleeps = sleeps.iter().any(|poll| poll.queues().0.sleeps());
        for operation in operations {
            let name = operation.name();
            let polls_memory = *operation == Operation::Write || operation.is_fetch();
            if sleeps && polls_memory {
                let why =
                    "ranks tell each other by writing to memory, which is polled: use send_imm or write_imm";
                return self.refuse("poll", &format!("a fan-out of {name} with a receiver that sleeps"), why);
            }
            for notify in notifies.iter().flatten() {
                let why = match (notify, operation) {
                    (Notify::Memory, Operation::Read | Operation::Write) => continue,
                    (Notify::Completion, Operation::Write) => "the target of a write has none: use write_imm",
                    (Notify::Completion, _) => continue,
                    (Notify::Memory, operation) if operation.is_atomic() => {
                        "what it brings may be what the memory held before"
                    }
                    (Notify::Memory, _) => "what is received is told by a completion",
                };
                let how = match notify {
                    Notify::Completion => "by a completion",
                    Notify::Memory => "by memory",
                };
                return self.refuse("notify", &format!("{name} told {how}"), why);
            }
        }
        Ok(())
    }

    /// Datagrams of all peers come to one queue pair.
    fn datagrams(&self) -> Result<(), Error> {
        let peers = self.largest(axis::PEERS.row);
        let fewest = self.least_depth(axis::RX_DEPTH).min(self.least_depth(axis::TX_DEPTH));
        if self.has_datagrams() && peers > u64::from(fewest) {
            let why = "one queue pair serves them all: give rx_depth and tx_depth of that many";
            return self.refuse("peers", &format!("{peers} peers over UD with queues of {fewest}"), why);
        }
        Ok(())
    }

    fn connected(&self) -> Result<(), Error> {
        let setups = self.0.axes.get(axis::SETUP);
        let meshes = self.0.axes.get(axis::MESH);
        if setups.contains(&Setup::RdmaCm) && (self.has_datagrams() || meshes.contains(&Mesh::Full)) {
            let why = "it connects a queue pair of each peer with one of rank 0, and no others";
            return self.refuse("setup", "RDMA CM for datagrams or a full mesh of a fan-out", why);
        }
        Ok(())
    }

    fn has_datagrams(&self) -> bool {
        self.0.axes.get(axis::SERVICE).contains(&Service::Ud)
    }
}
