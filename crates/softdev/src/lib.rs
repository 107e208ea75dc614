//! A software RDMA device in user space: no kernel module, no root, no hardware.
//!
//! Its interface is libibverbs' own ([`PROVIDER`]); its semantics are those of the InfiniBand
//! Architecture Specification (volume 1): states, completion errors, retries, access checks,
//! limits. Between processes of one host it moves bytes through shared memory.
//!
//! # How it works
//!
//! The requester does the work. Posting a send places the payload in the receiver's memory and
//! completes the receiver's work request, all within `ibv_post_send`; the receiver finds the
//! completion when it polls. An RDMA operation reaches for the peer's memory in the same way, and
//! its peer need not call anything. No thread, no lock and no system call stands between two
//! processes; what cannot be carried out yet (receiver not ready, peer not there yet) stays with
//! the requester and is tried again from whatever verb its process calls next.
//!
//! Memory that the device gave ([`Provider::alloc_buffer`]) is mapped by the peers. Any other is
//! reached by a system call, and by messages of up to some kilobytes without one: through memory of
//! the receiver's lane.
//!
//! # A map of the code
//!
//! Folders are layers: a file uses its own layer and those below, never one above, and no files use
//! each other in a circle.
//!
//! * `sys`: locks between threads, clocks, orders (`sync`: what protocols are written over to be
//!   checked), limits, what the environment says of the devices, `errno`, signals, the network
//!   interfaces (`netlink`), and whether the program's memory is there (`probe`).
//! * `memory`: what processes share. `arena`: the memory itself; `layout`: the tables in it;
//!   `slots`: the slots of a lane; `touching`: use without a lock, and its end; `copy`: moving
//!   bytes; `pieces`: those of a payload.
//! * `transport`: how messages reach other queue pairs. `local` is shared memory of one host:
//!   `host`: how processes find each other; `target`: the queue pair at the other end; `deliver`:
//!   placing a `message` in its lane, the heart; `reach`: writes, reads and atomics; `lane`: the
//!   requester's end of a lane, `claim`: that of one of several; `pool` and `order`: how requesters
//!   take receives of a shared queue; `region`: the check of every access; `place` and `foreign`:
//!   memory that only its process has mapped; `arming` and `notify`: waking a sleeper; `raise`:
//!   events of a peer; `group`: members of multicast groups; `link`: a model of a link; `address`:
//!   ports and routes; `gids`: addresses of the host's interfaces; `ends`: those that a datagram
//!   had.
//! * `objects`: what queue pairs, completion queues, shared receive queues and contexts keep. They
//!   know nothing of what happens when they are used.
//! * `engine`: what happens then. `send`: posting and carrying out; `eager`: the short way of what
//!   is posted most; `task`: what a request does; `retry`: what has to wait; `flight` and `keeper`:
//!   messages under way on a link; `receive`: posting receives; `arrive`: what polling finds of
//!   them; `srq`; `poll`: taking completions; `channel`: sleeping; `state`: failing and resetting;
//!   `progress`: carrying on with what waits; `quiesce`: waiting until no peer is at work; `port`:
//!   ports that go down and come up.
//! * `verbs`: the functions that programs call, by object; [`tree`]: the files that the kernel
//!   shows of such devices.
//!
//! Methods of `Qp` stand in the engine's files by what they do, so the engine is one layer, whose
//! files call each other through that type.
//!
//! # What is not supported
//!
//! Memory windows, and of the extended verbs XRC, device memory, raw packets, flow steering
//! (refused: EINVAL or EOPNOTSUPP). While a send waits for its receiver, its process must call some
//! verb now and then: nothing else carries on with it. After `fork`, the child must not use queue
//! pairs, queues and regions of its parent; it may make its own, in a context of the parent too.
//!
//! # Invariants
//!
//! * The requester does the work: a send is placed and completed within `ibv_post_send`. No thread,
//!   but where a link is imitated and for a calibration; no lock between processes, but for atomics
//!   on memory that peers have not mapped (taken from the dead); no system call on the polled path,
//!   but for a look, about every millisecond, whether the target of one-sided operations lives.
//! * Semantics are the specification's, cited beside the line. What is not supported is refused as
//!   a real device would.

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

/// Verbs that [`PROVIDER`] has no place for, since only programs of others use them, or that it
/// need not have.
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
