//! What a plan must not ask of a fan-out.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Mesh, Notify, Operation, Service, Setup};

/// Checks an experiment of fan-outs.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let operations = check.0.axes.get(axis::OPERATION);
    let why = "there is one queue pair for each peer";
    check.one(axis::QUEUE_PAIRS.row, "several queue pairs with a fan-out", why)?;
    told(check, &operations)?;
    datagrams(check)?;
    connected(check)
}

/// Checks how ranks learn that messages have arrived.
fn told(check: &Check<'_>, operations: &[Operation]) -> Result<(), Error> {
    let notifies = check.0.axes.get(axis::NOTIFY);
    let sleeps = check.0.axes.get(axis::POLL);
    let sleeps = sleeps.iter().any(|poll| poll.queues().0.sleeps());
    for operation in operations {
        let name = operation.name();
        let polls_memory = *operation == Operation::Write || operation.is_fetch();
        if sleeps && polls_memory {
            let why = "the ranks poll their memory for these operations: use send_imm or write_imm";
            return check.refuse("poll", &format!("a fan-out of {name} with a receiver that sleeps"), why);
        }
        for notify in notifies.iter().flatten() {
            let why = match (notify, operation) {
                (Notify::Memory, Operation::Read | Operation::Write) => continue,
                (Notify::Completion, Operation::Write) => {
                    "an RDMA Write causes no completion at the receiver: use write_imm"
                }
                (Notify::Completion, _) => continue,
                (Notify::Memory, operation) if operation.is_atomic() => {
                    "the fetched value may equal the memory's old value, so that polling misses it"
                }
                (Notify::Memory, _) => "a received message causes a completion: give notify completion",
            };
            let how = match notify {
                Notify::Completion => "by a completion",
                Notify::Memory => "by memory",
            };
            return check.refuse("notify", &format!("{name} notified {how}"), why);
        }
    }
    Ok(())
}

/// Checks the queues for datagrams: one queue pair receives those of all peers.
fn datagrams(check: &Check<'_>) -> Result<(), Error> {
    let peers = check.largest(axis::PEERS.row);
    let fewest = check.room();
    if has_datagrams(check) && peers > u64::from(fewest) {
        let why = "one queue pair serves all peers: give rx_depth and tx_depth of at least that many";
        return check.refuse("peers", &format!("{peers} peers over UD with queues of {fewest}"), why);
    }
    Ok(())
}

fn connected(check: &Check<'_>) -> Result<(), Error> {
    let is_other = has_datagrams(check) || check.has(axis::MESH, Mesh::Full);
    if check.has(axis::SETUP, Setup::RdmaCm) && is_other {
        let why = "RDMA CM connects a queue pair of each peer with one of rank 0, and no others";
        return check.refuse("setup", "RDMA CM for datagrams or a full mesh of a fan-out", why);
    }
    Ok(())
}

fn has_datagrams(check: &Check<'_>) -> bool {
    check.has(axis::SERVICE, Service::Ud)
}
