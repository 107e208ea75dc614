//! The rank that answers.

use crate::Error;
use crate::endpoint::{Endpoint, Mark};

/// Answers each message until the one that says that it is the last.
///
/// # Errors
/// What the endpoint says.
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
