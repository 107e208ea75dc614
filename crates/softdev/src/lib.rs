//! A software RDMA device in user space: no kernel module, no root, no hardware.
//!
//! The interface is that of libibverbs ([`PROVIDER`]). The semantics follow the InfiniBand
//! Architecture Specification (volume 1): states, completion errors, retries, access checks,
//! limits. The device moves bytes between processes of one host through shared memory.
//!
//! # How it works
//!
//! The requester does the work. `ibv_post_send` places the payload in the receiver's memory and
//! completes the receive; the receiver finds the completion when it polls. An RDMA operation
//! accesses the peer's memory in the same way, and the peer calls nothing. No thread, lock or
//! system call stands between two processes. A request that cannot be carried out yet (the receiver
//! is not ready, or the peer does not exist yet) stays with the requester, and the next verb that
//! its process calls tries it again.
//!
//! Memory of the device ([`Provider::alloc_buffer`]) is mapped by the peers. Other memory is
//! accessed by a system call; messages of up to some kilobytes avoid the call by going through
//! memory of the receiver's lane.
//!
//! # A map of the code
//!
//! Folders are layers: a file uses its own layer and lower ones, never a higher one, and files do
//! not depend on each other in a cycle.
//!
//! * `sys`: locks between threads, clocks, memory orders (`sync`: the primitives that a model
//!   checker can replace), limits, the settings of the environment, `errno`, signals, the network
//!   interfaces (`netlink`), and whether the program's memory exists (`probe`).
//! * `memory`: what processes share. `arena`: the memory itself; `layout`: the tables in it;
//!   `slots`: the slots of a lane; `touching`: access without a lock, and waiting for its end;
//!   `copy`: copying bytes; `pieces`: the pieces of a payload.
//! * `transport`: how messages reach other queue pairs. `local` is shared memory of one host:
//!   `host`: how processes find each other; `target`: the peer's queue pair; `deliver`: placing a
//!   `message` in its lane, the core of the device; `reach`: RDMA Writes, Reads and atomics;
//!   `lane`: a lane with one requester; `claim`: a lane with several; `pool` and `order`: how
//!   requesters take receives of a shared queue; `region`: the check of every access; `place` and
//!   `foreign`: memory that only its owner has mapped; `arming` and `notify`: waking a sleeper;
//!   `raise`: events of a peer; `group`: members of multicast groups; `link`: a model of a link;
//!   `address`: ports and routes; `gids`: addresses of the host's interfaces; `ends`: the GIDs of
//!   datagrams.
//! * `objects`: the state of queue pairs, completion queues, shared receive queues and contexts,
//!   without the code that uses it.
//! * `engine`: that code. `send`: posting and carrying out; `eager`: the fast path for the most
//!   common requests; `task`: what a request does; `retry`: requests that wait; `flight` and
//!   `keeper`: messages under way on a link; `receive`: posting receives; `arrive`: taking
//!   messages; `srq`: shared receive queues; `poll`: taking completions; `channel`: sleeping;
//!   `state`: failing and resetting; `progress`: continuing requests that wait; `quiesce`: waiting
//!   until no peer is at work; `port`: ports that go down and come up.
//! * `verbs`: the functions that programs call, by object; [`tree`]: the files that the kernel
//!   shows for RDMA devices.
//!
//! The methods of `Qp` are in the engine's files by what they do, so the engine is one layer, and
//! its files call each other through that type.
//!
//! # What is not supported
//!
//! Memory windows, and the extended verbs for XRC, device memory, raw packets and flow steering
//! (refused with EINVAL or EOPNOTSUPP). While a send waits for its receiver, its process must call
//! some verb now and then: nothing else continues the send. After `fork`, the child must not use
//! queue pairs, queues and regions of its parent; it may make its own, even in a context of the
//! parent.
//!
//! # Invariants
//!
//! * The requester does the work: `ibv_post_send` places the payload of a send and completes its
//!   receive.
//! * There is no thread, except for a link model and for the calibration.
//! * There is no lock between processes, except for the calibration and for atomics on memory that
//!   peers have not mapped. A lock whose holder has died is taken over.
//! * The polled path makes no system call, except to copy to or from memory that only its owner has
//!   mapped, and to check, about once per millisecond, whether the target of one-sided operations
//!   is alive.
//! * Semantics are those of the specification, which is cited beside the line. An unsupported
//!   request is refused as a real device would refuse it.

mod engine;
mod memory;
mod objects;
mod sys;
mod transport;
pub mod tree;
mod verbs;

#[cfg(test)]
mod tests;

use ::verbs::Provider;

pub use engine::port::set_port;
pub use sys::settings::{
    BadMtu, DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE, LinkLayer, MAX_DEVICES, MTU_VARIABLE,
    PortMtu, Settings, settings,
};
pub use transport::local::gids::place_of;

/// Verbs that [`PROVIDER`] does not contain: only other programs use them, or a provider may lack
/// them.
pub mod more {
    pub use crate::verbs::builder::qp_to_qp_ex;
    pub use crate::verbs::query::{query_gid_ex, used_gids};
    pub use crate::verbs::reregister::rereg_mr;
}

/// The device as a provider of verbs.
pub static PROVIDER: Provider = Provider {
    name: "softdev",
    about: "software device in user space",
    get_device_list: verbs::device::get_device_list,
    free_device_list: verbs::device::free_device_list,
    get_device_name: verbs::device::get_device_name,
    open_device: verbs::open::open_device,
    close_device: verbs::open::close_device,
    query_device: verbs::query::query_device,
    query_port: verbs::query::query_port,
    query_gid: verbs::query::query_gid,
    query_gid_ex: Some(verbs::query::query_gid_ex),
    query_pkey: verbs::query::query_pkey,
    alloc_pd: verbs::domain::alloc_pd,
    dealloc_pd: verbs::domain::dealloc_pd,
    reg_mr: verbs::memory::reg_mr,
    dereg_mr: verbs::memory::dereg_mr,
    create_comp_channel: verbs::channel::create_comp_channel,
    destroy_comp_channel: verbs::channel::destroy_comp_channel,
    create_cq: verbs::completion::create_cq,
    resize_cq: verbs::resize::resize_cq,
    destroy_cq: verbs::completion::destroy_cq,
    get_cq_event: verbs::channel::get_cq_event,
    ack_cq_events: verbs::channel::ack_cq_events,
    get_async_event: verbs::event::get_async_event,
    ack_async_event: verbs::event::ack_async_event,
    create_qp: verbs::queue_pair::create_qp,
    modify_qp: verbs::queue_pair::modify_qp,
    query_qp: verbs::queue_pair::query_qp,
    destroy_qp: verbs::queue_pair::destroy_qp,
    create_srq: verbs::srq::create_srq,
    modify_srq: verbs::srq::modify_srq,
    query_srq: verbs::srq::query_srq,
    destroy_srq: verbs::srq::destroy_srq,
    qp_to_qp_ex: Some(verbs::builder::qp_to_qp_ex),
    attach_mcast: verbs::multicast::attach_mcast,
    detach_mcast: verbs::multicast::detach_mcast,
    create_ah: verbs::domain::create_ah,
    destroy_ah: verbs::domain::destroy_ah,
    alloc_buffer: Some(verbs::memory::alloc_buffer),
    free_buffer: Some(verbs::memory::free_buffer),
    pauses: true,
    set_link: Ok(verbs::open::set_link),
};
