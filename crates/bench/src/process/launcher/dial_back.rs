//! The agent's side of a launch: it dials back to the coordinator, says who it is, and measures.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::agent::Worker;
use super::super::client_session::ClientSession;
use super::super::dial::Peer;
use super::super::key::Key;
use super::introduction::Introduction;
pub use super::introduction::local_rank;
use crate::Error;

/// Serves the coordinator that listens there, until it goes. Where that happens in the middle of a
/// point, the process ends, silently: nobody is left to be told.
///
/// # Errors
/// If the coordinator is not reached, does not know the key, or goes before it has finished.
pub fn serve<W: Worker>(coordinator: SocketAddr, key: Key, worker: W) -> Result<(), Error> {
    // The coordinator listens before it starts anything: where nobody does, it has gone.
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
    session.serve(worker, None, |_| ()).map(drop)
}

/// What a rank waits for whose point should have ended.
fn stuck() -> String {
    match mpi::current_call() {
        Some((call, Some(peer))) => {
            format!("it still waits in {call}, for rank {peer}, when the point's time is over")
        }
        Some((call, None)) => format!("it still waits in {call} when the point's time is over"),
        None => "it has not ended when the point's time is over".to_owned(),
    }
}
