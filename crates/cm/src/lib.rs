//! The connection manager for software devices. It runs in the program's own process, and does the
//! work of the kernel behind `/dev/infiniband/rdma_cm`.
//!
//! * [`wire`]: InfiniBand's messages, encoded as they are on the wire.
//! * `abi`: the kernel's commands, which librdmacm writes, and their answers.
//! * [`host`]: the interface between a manager and its host.
//! * [`Manager`]: carries out commands and handles messages. No input or output.
//! * [`Process`]: the manager of this process, with its sockets and its thread.

mod abi;
pub mod host;
mod identifier;
mod manager;
mod process;
mod times;
pub mod wire;

pub use abi::{Space, VERSION};
pub use manager::{Manager, Outcome};
pub use process::{Devices, Process, is_memory_borrowed};
pub use times::{RESPONSE_TIME, TIME_WAIT, TRIES};
