//! Opens, at run time, the MPI library that is installed on the host.
//!
//! No libmpi is linked: [`Library::open`] loads one, finds out which of three ABIs it has (Open
//! MPI's, MPICH's, the MPI 5 standard ABI), and [`World::init`] initialises it and verifies the
//! constants of that ABI before anything else is called.
//!
//! # Invariants
//! - A process opens at most one MPI library and never closes it.
//! - All calls of MPI come from the thread that called `MPI_Init_thread` :
//!   [`World`], [`Communicator`], [`Slots`], [`NonblockingCollective`] and [`Window`] are not
//!   [`Send`].
//! - Nothing is called after `MPI_Finalize`: [`World::finalize`] refuses while a communicator, or
//!   an object that holds one, is in use.
//! - Memory that MPI may still read or write is leaked, never freed.
//! - A function checks the lengths of its own buffers against its counts. Ranks that call a
//!   collective with different lengths break MPI's rules as in C: a library may report
//!   `MPI_ERR_TRUNCATE`, or not notice.

mod abi;
mod collectives;
mod communicator;
mod elf;
mod error;
mod functions;
mod handles;
mod library;
mod memory;
mod nonblocking;
pub mod search;
mod slots;
mod status;
mod topology;
mod vectors;
mod verification;
mod waiting;
mod window;
mod world;

pub use abi::{Abi, Datatype, Op};
pub use communicator::Communicator;
pub use error::{Error, Result};
pub use library::Library;
pub use nonblocking::NonblockingCollective;
pub use slots::Slots;
pub use status::Status;
pub use vectors::Parts;
pub use waiting::current_call;
pub use window::Window;
pub use world::{ThreadLevel, World};
