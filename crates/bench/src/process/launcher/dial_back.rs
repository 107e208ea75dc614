//! The agent's side of a launch: the agent connects to the coordinator, introduces itself and
//! measures.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::agent::Worker;
use super::super::client_session::ClientSession;
use super::super::dial::Peer;
use super::super::key::Key;
use super::introduction::Introduction;
pub use super::introduction::local_rank;
use crate::Error;

/// Serves the coordinator at this address until it quits. If the coordinator is lost in the middle
/// of a point, the process ends silently, because there is no one to report to.
///
/// # Errors
/// If the coordinator cannot be reached, does not know the key, or is lost before it quits.
pub fn serve<W: Worker>(coordinator: SocketAddr, key: Key, worker: W) -> Result<(), Error> {
    // The coordinator listens before it starts any rank. If it does not listen, it is gone.
    let wait = Duration::ZERO;
    let peer = Peer { host: coordinator.ip().to_string(), port: coordinator.port(), key, wait };
    let (stream, address, channel) = peer.reach(None, &mut |_| ()).map_err(|error| match error {
        Error::NoServer { reason, .. } => Error::NoCoordinator { reason },
        other => other,
    })?;
    let mut session = ClientSession::new(stream, address, channel).that_may_be_stuck(stuck);
    let introduction = serde_json::to_string(&Introduction::own())
        .map_err(|error| Error::BrokenFrame { reason: format!("this rank cannot be introduced: {error}") })?;
    session.say(introduction)?;
    session.serve(worker, None, |_| 1).map(drop)
}

/// Returns what a rank still waits for at the end of the point's time.
fn stuck() -> String {
    match mpi::current_call() {
        Some((call, Some(peer))) => {
            format!("it still waits in {call} for rank {peer} at the point's time limit")
        }
        Some((call, None)) => format!("it still waits in {call} at the point's time limit"),
        None => "it has not ended at the point's time limit".to_owned(),
    }
}
