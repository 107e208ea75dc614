//! The guard: a process that changes the host for an agent. It outlives the agent until it has
//! reverted its changes.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::host::Host;
use crate::keeper::Keeper;
use crate::own::every_cpu;
use crate::request::{Reply, Request};

/// Serves an agent until its connection ends for any reason, then reverts what is in force.
///
/// # Errors
///
/// If the input is not from an agent. Changes in force are reverted in this case, too.
pub fn guard(host: Host, input: impl Read, mut output: impl Write) -> io::Result<()> {
    // The agent may be pinned and may poll: the guard must not wait for the agent's CPU.
    let _ = rustix::thread::sched_setaffinity(None, &every_cpu());
    let mut keeper = Keeper::new(host);
    let mut served = Ok(());
    for line in BufReader::new(input).lines() {
        served = line.and_then(|line| answer(&mut keeper, &line, &mut output));
        if served.is_err() {
            break;
        }
    }
    let said = keeper.release();
    keeper.note(said);
    served
}

fn answer(keeper: &mut Keeper, line: &str, output: &mut impl Write) -> io::Result<()> {
    let mut reply = Reply::default();
    match serde_json::from_str(line)? {
        Request::Apply { wanted, ranks, process } => {
            reply.said.extend(keeper.settle(&wanted, &ranks));
            reply.conditions = keeper.apply(&wanted, &ranks, process);
        }
        Request::Verify => reply.conditions = keeper.verify(),
        Request::Release => reply.said = keeper.release(),
        Request::Restore { dead } => reply.said = keeper.restore(&dead),
    }
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    let written = output.write_all(&line).and_then(|()| output.flush());
    if written.is_err() {
        // The agent is gone.
        keeper.note(reply.said);
    }
    written
}
