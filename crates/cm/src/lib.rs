//! The connection manager: what the kernel does for `/dev/infiniband/rdma_cm`, for software devices
//! and in the program's own process.
//!
//! * [`wire`]: InfiniBand's messages, encoded as they are on the wire.
//! * `abi`: the kernel's commands, which librdmacm writes, and their answers.
//! * [`host`]: what a manager needs of the host that it is on.
//! * [`Manager`]: what commands and messages do. No input or output.
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
