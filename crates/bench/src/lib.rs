//! Endpoints, patterns, the agent and the coordinator. Names no backend: the binary hands in the providers.

mod error;
pub mod plan;
pub mod point;
pub mod process;
mod units;

pub use error::Error;
