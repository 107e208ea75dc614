//! Endpoints, patterns, the agent and the coordinator. Names no backend: the binary hands in the providers.

pub mod point;
