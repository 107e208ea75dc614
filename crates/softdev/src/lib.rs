//! A software RDMA device in user space: no kernel module, no root, no hardware.
//!
//! Its interface is libibverbs' own ([`PROVIDER`]); its semantics are those of the InfiniBand Architecture Specification
//! (volume 1): states, completion errors, retries, access checks, limits. Between processes of one host it moves bytes
//! through shared memory.
//!
//! # How it works
//!
//! The requester does the work. Posting a send places the payload in the receiver's memory and completes the receiver's
//! work request, all within `ibv_post_send`; the receiver finds the completion when it polls. An RDMA operation reaches for
//! the peer's memory in the same way, and its peer need not call anything. No thread, no lock and no system call stands
//! between two processes; what cannot be carried out yet (receiver not ready, peer not there yet) stays with the requester
//! and is tried again from whatever verb its process calls next.
//!
//! Memory that the device gave ([`Provider::alloc_buffer`]) is mapped by the peers. Any other is reached by a system call,
//! and by messages of up to some kilobytes without one: through memory of the receiver's lane.
//!
//! # A map of the code
//!
//! * `limits`: what the device allows.
//! * `arena`: the memory that a process shares; `shared`: what stands in it; `indexes`: which entries are in use; `host`: how
//!   processes find each other.
//! * `memory`: memory regions and the check of every access; `probe`: whether there is memory to be
//!   registered; `reregister`: changing one; `on_demand`: advice on them;
//!   `copy`: moving bytes; `foreign`: those of another process that are mapped nowhere else.
//! * `deliver`: placing a `message` in a peer's lane: the heart; `lane`: the requester's end of it, `claim`: that of one of
//!   several; `target`: the queue pair at the other end; `one_sided`: writes, reads and atomics; `touching`: use without a lock,
//!   and its end.
//! * `eager`: the short way of what is posted most.
//! * `send`: the send queue; `work`: what is posted to it; `retry`: what has to wait; `receive`: the receive queue;
//!   `wqe`: what is posted there; `arrive`: what polling finds there; `srq`: shared receive queues; `pool`: what
//!   requesters see of one, `order`: how they take receives from it.
//! * `event`: asynchronous events; `multicast`: groups of datagram queue pairs.
//! * `completion`: completion queues; `own`: completions of sends; `channel`: completion channels, for whoever sleeps;
//!   `arming`: which completion wakes him.
//! * `queue_pair`: creation, state changes, errors; `context`: domains, address handles; `device`: devices, ports, routes;
//!   `settings`: what the environment says of them; `parent_domain`: domains that stand for others.
//! * `port`: ports that go down and come up. `link`: a model of a link; `flight`: messages under way on it.
//! * `builder`: work requests that are built by calls; `polling`: completions that are read member by member;
//!   `extended`: queries whose answers grow; `clock`: the time of completion stamps.
//! * `spin`, `own_lock`, `timer`: locks between threads, time for retries; `sync`: what protocols are written over to be
//!   checked.
//!
//! # What is not supported
//!
//! Memory windows, and of the extended verbs XRC, device memory, raw packets, flow steering (refused: EINVAL or EOPNOTSUPP).
//! While a send waits for its receiver, its process must call some verb now and then: nothing else carries on with it.
//! After `fork`, the child must not use objects of its parent.
//!
//! # Invariants
//!
//! * The requester does the work: a send is placed and completed within `ibv_post_send`. No thread,
//!   but where a link is imitated and for a calibration; no lock between processes, but for atomics
//!   on memory that peers have not mapped (taken from the dead); no system call on the polled path,
//!   but for a look, about every millisecond, whether the target of one-sided operations lives.
//! * Semantics are the specification's, cited beside the line. What is not supported is refused as
//!   a real device would.

mod arrive;
mod channel;
mod completion;
mod context;
mod eager;

mod event;
mod flight;
mod memory;
mod multicast;
mod own;
mod polling;
mod port;
mod queue_pair;
mod receive;
mod retry;
mod send;
mod srq;
mod sys;
mod transport;
mod verbs;
mod work;
mod wqe;

#[cfg(test)]
mod tests;

use ::verbs::Provider;

pub use port::set_port;
pub use sys::settings::{
    DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE, LinkLayer, MAX_DEVICES, Settings, settings,
};

/// Verbs that [`PROVIDER`] has no place for, since only programs of others use them, or that it need not have.
pub mod more {
    pub use crate::verbs::builder::qp_to_qp_ex;
    pub use crate::verbs::query::query_gid_ex;
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
