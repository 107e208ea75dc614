//! Endpoints, patterns, the agent and the coordinator. Names no backend: the binary hands in the providers.

pub mod endpoint;
mod error;
pub mod pattern;
pub mod plan;
pub mod point;
mod units;
mod verbs_endpoint;

pub use error::Error;
