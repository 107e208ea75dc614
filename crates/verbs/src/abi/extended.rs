//! Structures of the extended verbs, which `<infiniband/verbs.h>` reaches through `verbs_context`,
//! `ibv_qp_ex` and `ibv_cq_ex`.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::constants::*;
use super::types::*;

/// A function that no device here provides: null.
pub type absent = *mut c_void;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_srq_attr {
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_srq_init_attr {
    pub srq_context: *mut c_void,
    pub attr: ibv_srq_attr,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_tm_cap {
    pub max_num_tags: u32,
    pub max_ops: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_srq_init_attr_ex {
    pub srq_context: *mut c_void,
    pub attr: ibv_srq_attr,
    pub comp_mask: u32,
    pub srq_type: ibv_srq_type,
    pub pd: *mut ibv_pd,
    pub xrcd: *mut c_void,
    pub cq: *mut ibv_cq,
    pub tm_cap: ibv_tm_cap,
}

/// The object of an asynchronous event. The event's type determines which member is valid (man
/// ibv_get_async_event).
#[derive(Clone, Copy)]
#[repr(C)]
pub union ibv_async_element {
    pub cq: *mut ibv_cq,
    pub qp: *mut ibv_qp,
    pub srq: *mut ibv_srq,
    pub port_num: c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_async_event {
    pub element: ibv_async_element,
    pub event_type: ibv_event_type,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_odp_caps {
    pub general_caps: u64,
    pub rc_odp_caps: u32,
    pub uc_odp_caps: u32,
    pub ud_odp_caps: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_tso_caps {
    pub max_tso: u32,
    pub supported_qpts: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_rss_caps {
    pub supported_qpts: u32,
    pub max_rwq_indirection_tables: u32,
    pub max_rwq_indirection_table_size: u32,
    pub rx_hash_fields_mask: u64,
    pub rx_hash_function: u8,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_packet_pacing_caps {
    pub qp_rate_limit_min: u32,
    pub qp_rate_limit_max: u32,
    pub supported_qpts: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_tm_caps {
    pub max_rndv_hdr_size: u32,
    pub max_num_tags: u32,
    pub flags: u32,
    pub max_ops: u32,
    pub max_sge: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_cq_moderation_caps {
    pub max_cq_count: u16,
    pub max_cq_period: u16,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_pci_atomic_caps {
    pub fetch_add: u16,
    pub swap: u16,
    pub compare_swap: u16,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_device_attr_ex {
    pub orig_attr: ibv_device_attr,
    pub comp_mask: u32,
    pub odp_caps: ibv_odp_caps,
    pub completion_timestamp_mask: u64,
    /// Frequency of the clock of completion time stamps, kHz.
    pub hca_core_clock: u64,
    pub device_cap_flags_ex: u64,
    pub tso_caps: ibv_tso_caps,
    pub rss_caps: ibv_rss_caps,
    pub max_wq_type_rq: u32,
    pub packet_pacing_caps: ibv_packet_pacing_caps,
    pub raw_packet_caps: u32,
    pub tm_caps: ibv_tm_caps,
    pub cq_mod_caps: ibv_cq_moderation_caps,
    pub max_dm_size: u64,
    pub pci_atomic_caps: ibv_pci_atomic_caps,
    pub xrc_odp_caps: u32,
    pub phys_port_cnt_ex: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_query_device_ex_input {
    pub comp_mask: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_rx_hash_conf {
    pub rx_hash_function: u8,
    pub rx_hash_key_len: u8,
    pub rx_hash_key: *mut u8,
    pub rx_hash_fields_mask: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_qp_init_attr_ex {
    pub qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: ibv_qp_type,
    pub sq_sig_all: c_int,
    pub comp_mask: u32,
    pub pd: *mut ibv_pd,
    pub xrcd: *mut c_void,
    pub create_flags: u32,
    pub max_tso_header: u16,
    pub rwq_ind_tbl: *mut c_void,
    pub rx_hash_conf: ibv_rx_hash_conf,
    pub source_qpn: u32,
    /// `IBV_QP_EX_WITH_*`.
    pub send_ops_flags: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_cq_init_attr_ex {
    pub cqe: u32,
    pub cq_context: *mut c_void,
    pub channel: *mut ibv_comp_channel,
    pub comp_vector: u32,
    /// `IBV_WC_EX_WITH_*`.
    pub wc_flags: u64,
    pub comp_mask: u32,
    /// `IBV_CREATE_CQ_ATTR_*`.
    pub flags: u32,
    pub parent_domain: *mut ibv_pd,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ibv_values_ex {
    pub comp_mask: u32,
    pub raw_clock: libc::timespec,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ibv_data_buf {
    pub addr: *mut c_void,
    pub length: usize,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ibv_poll_cq_attr {
    pub comp_mask: u32,
}

/// A queue pair with work requests that are built by calls (man ibv_wr_post).
#[repr(C)]
pub struct ibv_qp_ex {
    pub qp_base: ibv_qp,
    pub comp_mask: u64,
    /// Written by the program while the device reads its other members, hence atomic.
    pub wr_id: AtomicU64,
    /// `IBV_SEND_*`.
    pub wr_flags: AtomicU32,
    pub wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut Self, u32, u64, u64, u64)>,
    pub wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut Self, u32, u64, u64)>,
    pub wr_bind_mw: Option<unsafe extern "C" fn(*mut Self, *mut c_void, u32, *const c_void)>,
    pub wr_local_inv: Option<unsafe extern "C" fn(*mut Self, u32)>,
    pub wr_rdma_read: Option<unsafe extern "C" fn(*mut Self, u32, u64)>,
    pub wr_rdma_write: Option<unsafe extern "C" fn(*mut Self, u32, u64)>,
    pub wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut Self, u32, u64, u32)>,
    pub wr_send: Option<unsafe extern "C" fn(*mut Self)>,
    pub wr_send_imm: Option<unsafe extern "C" fn(*mut Self, u32)>,
    pub wr_send_inv: Option<unsafe extern "C" fn(*mut Self, u32)>,
    pub wr_send_tso: Option<unsafe extern "C" fn(*mut Self, *mut c_void, u16, u16)>,
    pub wr_set_ud_addr: Option<unsafe extern "C" fn(*mut Self, *mut ibv_ah, u32, u32)>,
    pub wr_set_xrc_srqn: Option<unsafe extern "C" fn(*mut Self, u32)>,
    pub wr_set_inline_data: Option<unsafe extern "C" fn(*mut Self, *mut c_void, usize)>,
    pub wr_set_inline_data_list: Option<unsafe extern "C" fn(*mut Self, usize, *const ibv_data_buf)>,
    pub wr_set_sge: Option<unsafe extern "C" fn(*mut Self, u32, u64, u32)>,
    pub wr_set_sge_list: Option<unsafe extern "C" fn(*mut Self, usize, *const ibv_sge)>,
    pub wr_start: Option<unsafe extern "C" fn(*mut Self)>,
    pub wr_complete: Option<unsafe extern "C" fn(*mut Self) -> c_int>,
    pub wr_abort: Option<unsafe extern "C" fn(*mut Self)>,
    /// Since rdma-core 43.
    pub wr_atomic_write: Option<unsafe extern "C" fn(*mut Self, u32, u64, *const c_void)>,
}

/// A completion queue that is read member by member (man ibv_create_cq_ex). Its start has the
/// layout of [`ibv_cq`].
#[repr(C)]
pub struct ibv_cq_ex {
    /// `context` to `async_events_completed`.
    pub base: ibv_cq,
    pub comp_mask: u32,
    /// `ibv_wc_status`. Polling writes it and the program reads it, hence atomic.
    pub status: AtomicU32,
    pub wr_id: AtomicU64,
    pub start_poll: Option<unsafe extern "C" fn(*mut Self, *mut ibv_poll_cq_attr) -> c_int>,
    pub next_poll: Option<unsafe extern "C" fn(*mut Self) -> c_int>,
    pub end_poll: Option<unsafe extern "C" fn(*mut Self)>,
    pub read_opcode: Option<unsafe extern "C" fn(*mut Self) -> ibv_wc_opcode>,
    pub read_vendor_err: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_byte_len: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    /// Network byte order.
    pub read_imm_data: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_qp_num: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_src_qp: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_wc_flags: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_slid: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_sl: Option<unsafe extern "C" fn(*mut Self) -> u8>,
    pub read_dlid_path_bits: Option<unsafe extern "C" fn(*mut Self) -> u8>,
    pub read_completion_ts: Option<unsafe extern "C" fn(*mut Self) -> u64>,
    pub read_cvlan: Option<unsafe extern "C" fn(*mut Self) -> u16>,
    pub read_flow_tag: Option<unsafe extern "C" fn(*mut Self) -> u32>,
    pub read_tm_info: Option<unsafe extern "C" fn(*mut Self, *mut c_void)>,
    pub read_completion_wallclock_ns: Option<unsafe extern "C" fn(*mut Self) -> u64>,
}

impl Deref for ibv_qp_ex {
    type Target = ibv_qp;

    fn deref(&self) -> &ibv_qp {
        &self.qp_base
    }
}

impl Deref for ibv_cq_ex {
    type Target = ibv_cq;

    fn deref(&self) -> &ibv_cq {
        &self.base
    }
}

/// The extended verbs, which precede every [`ibv_context`] whose `abi_compat` is all ones. New
/// members are added in front, and `sz` is the size; a null member is a verb that the device does
/// not have.
#[repr(C)]
pub struct verbs_context {
    pub query_port: Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
    pub advise_mr: Option<unsafe extern "C" fn(*mut ibv_pd, u32, u32, *mut ibv_sge, u32) -> c_int>,
    pub alloc_null_mr: absent,
    pub read_counters: absent,
    pub attach_counters_point_flow: absent,
    pub create_counters: absent,
    pub destroy_counters: absent,
    pub reg_dm_mr: absent,
    pub alloc_dm: absent,
    pub free_dm: absent,
    pub modify_flow_action_esp: absent,
    pub destroy_flow_action: absent,
    pub create_flow_action_esp: absent,
    pub modify_qp_rate_limit: absent,
    pub alloc_parent_domain: absent,
    pub dealloc_td: absent,
    pub alloc_td: absent,
    pub modify_cq: absent,
    pub post_srq_ops: absent,
    pub destroy_rwq_ind_table: absent,
    pub create_rwq_ind_table: absent,
    pub destroy_wq: absent,
    pub modify_wq: absent,
    pub create_wq: absent,
    pub query_rt_values: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_values_ex) -> c_int>,
    pub create_cq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    pub private: *mut c_void,
    pub query_device_ex: Option<
        unsafe extern "C" fn(
            *mut ibv_context,
            *const ibv_query_device_ex_input,
            *mut ibv_device_attr_ex,
            usize,
        ) -> c_int,
    >,
    pub ibv_destroy_flow: absent,
    pub abi_placeholder2: absent,
    pub ibv_create_flow: absent,
    pub abi_placeholder1: absent,
    pub open_qp: absent,
    pub create_qp_ex: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp>,
    pub get_srq_num: absent,
    pub create_srq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq>,
    pub open_xrcd: absent,
    pub close_xrcd: absent,
    pub abi_placeholder3: u64,
    pub sz: usize,
    pub context: ibv_context,
}

/// Returns the structure around a context; null if it has no extended verbs (`verbs_get_ctx` of the
/// header).
///
/// # Safety
/// The context is open.
#[inline]
pub unsafe fn verbs_get_ctx(context: *mut ibv_context) -> *mut verbs_context {
    // SAFETY: the caller guarantees that the context is open.
    if unsafe { (*context).abi_compat }.addr() != ABI_IS_EXTENDED {
        return std::ptr::null_mut();
    }
    // SAFETY: with this mark the context is the last member of a verbs_context.
    unsafe { context.byte_sub(offset_of!(verbs_context, context)).cast() }
}

/// Evaluates to an extended verb of an open context, if its library and its device have it
/// (`verbs_get_ctx_op` of the header). Members are added in front, so the structure of an older
/// library may start behind the member. Unsafe to expand if the context is not open.
#[macro_export]
macro_rules! verbs_get_ctx_op {
    ($context:expr, $verb:ident) => {{
        let found = $crate::abi::verbs_get_ctx($context);
        let reach = ::std::mem::size_of::<$crate::abi::verbs_context>()
            - ::std::mem::offset_of!($crate::abi::verbs_context, $verb);
        if found.is_null() || (*found).sz < reach { None } else { (*found).$verb }
    }};
}
