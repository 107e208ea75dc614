//! `<infiniband/verbs.h>` of rdma-core 44 in Rust.
//!
//! Names are C's, so that readers find them in the man pages. Enumerations are plain integers: a
//! device may return a value that this version does not know, and that must not be undefined
//! behaviour.

#![allow(missing_docs, reason = "the names and their documentation are rdma-core's: see the man pages")]
#![allow(non_camel_case_types, reason = "C's names")]
#![allow(clippy::use_self, reason = "C's declarations")]

mod constants;
mod extended;
mod layout;
pub mod rdma_cm;
mod types;

pub use constants::*;
pub use extended::*;
pub use types::*;
