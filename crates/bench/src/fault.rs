//! Why a rank could not measure its part of a point.

use crate::Error;

/// Why a worker could not carry out a request.
#[derive(Clone, Debug, PartialEq)]
pub enum PointError {
    /// The point cannot be measured here. The text is the reason, for readers of the report.
    NotMeasured(String),
    /// The point has failed. The text says what was tried, on which object, why it failed, and what
    /// to do.
    Failed(String),
}

impl From<Error> for PointError {
    fn from(err: Error) -> Self {
        let words = err.to_string();
        if err.is_limit() { Self::NotMeasured(words) } else { Self::Failed(words) }
    }
}

/// The error for a message of another rank that cannot be read.
pub(crate) fn unreadable(error: serde_json::Error) -> PointError {
    PointError::from(Error::PeerAddress { reason: error.to_string() })
}

/// The error for a request that came before the requests that it needs.
pub(crate) fn out_of_order(what: &str) -> PointError {
    PointError::Failed(format!(
        "the agent was asked to {what} without the steps before: this is a bug, please report it"
    ))
}
