//! Endpoints, patterns, the agent and the coordinator. This crate depends on no backend: the binary
//! passes the providers.

mod alarm;
pub mod application;
pub mod axis;
mod barrier;
mod calibrate;
pub mod choice;
mod cpu;
mod cut;
pub mod endpoint;
mod endpoints;
mod error;
mod fault;
mod host_counters;
mod interfaces;
mod library_endpoint;
mod mpi_endpoint;
mod nearest;
mod pattern;
mod patterns;
mod placement;
pub mod plan;
pub mod point;
pub mod process;
mod rank_clock;
pub mod reference;
mod scratch;
mod shared;
mod shmem_endpoint;
mod signal;
mod socket_endpoint;
mod tool_endpoint;
mod topology;
pub mod transfer;
mod verbs_endpoint;
pub mod worker;

pub use calibrate::core_to_core;
pub use error::Error;
pub use nearest::hint;
pub use pattern::command;
pub use patterns::PATTERNS;
