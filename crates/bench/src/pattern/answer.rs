//! The rank that answers messages.

use crate::Error;
use crate::endpoint::{Endpoint, Mark};

/// Answers each message up to the one that is marked as the last.
///
/// # Errors
/// The errors of the endpoint.
pub(crate) fn answer<E: Endpoint>(endpoint: &mut E) -> Result<(), Error> {
    loop {
        let mark = endpoint.receive()?;
        endpoint.send(mark)?;
        endpoint.replenish()?;
        if mark == Mark::Last {
            return endpoint.flush();
        }
    }
}
