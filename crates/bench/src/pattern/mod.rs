//! Patterns: how ranks exchange messages, and what is timed.
//!
//! A pattern allocates, formats and locks nothing, and does not depend on a kind of endpoint or a
//! kind of recorder: it is compiled for each.
//!
//! # Invariants
//!
//! * A hot loop allocates no memory, formats nothing, takes no lock of rdmascope and calls only the
//!   verbs through pointers. Patterns are generic over endpoint and recorder, and are compiled for
//!   each pair of types.

pub(crate) mod answer;
pub(crate) mod check;
pub mod command;
pub(crate) mod defaults;
pub(crate) mod experiment;
pub(crate) mod flood;
pub(crate) mod id;
pub(crate) mod joint;
pub(crate) mod outcome;
mod progress;
pub(crate) mod rank;
pub(crate) mod registry;
pub(crate) mod settings;
pub(crate) mod timed;
#[cfg(test)]
pub(crate) mod times;
pub(crate) mod together;
mod watch;

pub(crate) use progress::{Progress, at, counts};
pub(crate) use watch::{Watch, Watched};
