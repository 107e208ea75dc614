//! The libibverbs ABI and a safe wrapper over it.
//!
//! * [`abi`]: the types and constants of `<infiniband/verbs.h>`, laid out as in rdma-core 44 and
//!   checked at compile time. rdma-core keeps this ABI stable, so that one set of types serves
//!   every provider.
//! * [`provider`]: the table of functions through which all verbs are called. It separates the
//!   measuring code from the measured library.
//! * [`manager`]: connections by librdmacm, which is opened at run time, too;
//! * [`library`]: shared libraries, opened at run time;
//! * [`system`]: the system's libibverbs as a provider, opened at run time;
//! * [`LinkModel`]: the properties of a link, for a device that can model one;
//! * [`transition`]: which queue-pair state may follow which, and with which attributes.
//! * the safe wrapper: [`Device`], [`Context`], [`ProtectionDomain`], [`MemoryRegion`],
//!   [`CompletionChannel`], [`CompletionQueue`], [`QueuePair`], [`AddressHandle`] and the work
//!   requests. Every object holds its parents, so that the order of destruction is right by
//!   construction; a queue pair's state is part of its type, so that a request that its state
//!   forbids does not compile.

pub mod abi;
pub mod library;
pub mod manager;
pub mod provider;
pub mod system;
pub mod transition;

mod address;
mod completion;
mod context;
mod error;
mod event;
mod gid;
mod kind;
mod link;
mod memory;
mod port;
mod queue_pair;
mod sockaddr;
mod srq;
mod work;

pub use address::{AddressHandle, Gid, GlobalRoute, Route};
pub use completion::{Completion, CompletionChannel, CompletionQueue, WcOpcode, WcStatus};
pub use context::{Context, Device, DeviceLimits, Transport, devices};
pub use error::{Error, Result};
pub use event::{Affected, AsyncEvent, AsyncEventType};
pub use gid::{GidEntry, GidKind, default_gid};
pub use kind::DeviceKind;
pub use link::{BadLink, GENERATIONS, Generation, LinkModel, LinkRate};
pub use memory::{Buffer, MemoryKind, MemoryRegion, ProtectionDomain, Remote};
pub use port::{LinkLayer, LinkSpeed, Mtu, PhysicalState, Port, PortState};
pub use provider::Provider;
pub use queue_pair::{
    CanReceive, Connection, Init, Initialisation, QueuePair, QueuePairOptions, ReadyToReceive, ReadyToSend,
    Reset, Service,
};
pub use sockaddr::Sockaddr;
pub use srq::SharedReceiveQueue;
pub use work::{ReceiveRequest, SendRequest};
