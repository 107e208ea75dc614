//! The table of functions through which verbs are reached.
//!
//! A provider fills the table: softdev with its own functions, the system's libibverbs with its
//! exported symbols. Posting and polling are not in the table: as in C, they go through the
//! context's own [`ibv_context_ops`], so the measured path is that of every verbs program.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::link::LinkModel;

/// The name of the provider for the system's libibverbs.
pub(crate) const LIBIBVERBS: &str = "libibverbs";

/// The verbs of one library. The members are functions of libibverbs, without the prefix `ibv_`.
/// Their man pages are the contracts.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the man pages of the functions of the same name")]
pub struct Provider {
    /// Short name, e.g. `softdev`.
    pub name: &'static str,
    /// A description for users, e.g. `software device in user space`.
    pub about: &'static str,
    pub get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
    pub free_device_list: unsafe extern "C" fn(*mut *mut ibv_device),
    pub get_device_name: unsafe extern "C" fn(*mut ibv_device) -> *const c_char,
    pub open_device: unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
    pub close_device: unsafe extern "C" fn(*mut ibv_context) -> c_int,
    pub query_device: unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
    pub query_port: unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    pub query_gid: unsafe extern "C" fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int,
    /// `_ibv_query_gid_ex`, since rdma-core 31: an entry of the GID table with its type.
    pub query_gid_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int>,
    pub query_pkey: unsafe extern "C" fn(*mut ibv_context, u8, c_int, *mut u16) -> c_int,
    pub alloc_pd: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
    pub dealloc_pd: unsafe extern "C" fn(*mut ibv_pd) -> c_int,
    pub reg_mr: unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
    pub dereg_mr: unsafe extern "C" fn(*mut ibv_mr) -> c_int,
    pub create_comp_channel: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
    pub destroy_comp_channel: unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
    pub create_cq: unsafe extern "C" fn(
        *mut ibv_context,
        c_int,
        *mut c_void,
        *mut ibv_comp_channel,
        c_int,
    ) -> *mut ibv_cq,
    pub resize_cq: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
    pub destroy_cq: unsafe extern "C" fn(*mut ibv_cq) -> c_int,
    pub get_cq_event:
        unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
    pub ack_cq_events: unsafe extern "C" fn(*mut ibv_cq, u32),
    pub get_async_event: unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
    pub ack_async_event: unsafe extern "C" fn(*mut ibv_async_event),
    pub create_qp: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
    pub modify_qp: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
    pub query_qp: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int,
    pub destroy_qp: unsafe extern "C" fn(*mut ibv_qp) -> c_int,
    pub create_srq: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq,
    pub modify_srq: unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int,
    pub query_srq: unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr) -> c_int,
    pub destroy_srq: unsafe extern "C" fn(*mut ibv_srq) -> c_int,
    /// Since rdma-core 23.
    pub qp_to_qp_ex: Option<unsafe extern "C" fn(*mut ibv_qp) -> *mut ibv_qp_ex>,
    pub attach_mcast: unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int,
    pub detach_mcast: unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int,
    pub create_ah: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
    pub destroy_ah: unsafe extern "C" fn(*mut ibv_ah) -> c_int,
    /// Allocates memory that the device accesses without a copy, if it has such memory:
    /// registration of it costs the device nothing extra. Page-aligned, zeroed. Not part of
    /// libibverbs.
    pub alloc_buffer: Option<unsafe extern "C" fn(*mut ibv_context, usize) -> *mut c_void>,
    /// Frees a buffer of `alloc_buffer`, with the length that was asked for.
    pub free_buffer: Option<unsafe extern "C" fn(*mut ibv_context, *mut c_void, usize)>,
    /// Whether completions and a peer's writes come from another CPU of this host. A loop that
    /// waits for them should then pause (`PAUSE` of x86), because the cache line arrives sooner.
    /// For writes of an adapter or a kernel, a loop does not pause, as in perftest.
    pub pauses: bool,
    /// Makes the links of a context's device follow a model, or removes it (null); `EBUSY` while a
    /// queue pair has outstanding work. If the device cannot model links, the reason. Not part of
    /// libibverbs.
    pub set_link: Result<unsafe extern "C" fn(*mut ibv_context, *const LinkModel) -> c_int, &'static str>,
}
