//! Why a rank could not do its share of a point.

use crate::Error;

/// Why a worker could not do what it was asked to.
#[derive(Clone, Debug, PartialEq)]
pub enum PointError {
    /// It cannot be done here: the reason, for the reader of the report.
    NotMeasured(String),
    /// It went wrong: what was tried, on which object, why it failed, what to do.
    Failed(String),
}

impl From<Error> for PointError {
    fn from(err: Error) -> Self {
        let words = err.to_string();
        if err.is_limit() { Self::NotMeasured(words) } else { Self::Failed(words) }
    }
}

/// What another rank has said cannot be read.
pub(crate) fn unreadable(error: serde_json::Error) -> PointError {
    PointError::from(Error::PeerAddress { reason: error.to_string() })
}

/// A request came without those that have to come before.
pub(crate) fn out_of_order(what: &str) -> PointError {
    PointError::Failed(format!(
        "the agent was asked to {what} without the steps before: this is a bug, please report it"
    ))
}
