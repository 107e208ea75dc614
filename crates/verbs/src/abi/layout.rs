//! The layout of the ABI, asserted at compile time.
//!
//! The numbers are those of rdma-core 44 on x86-64. On 64-bit Arm they differ by the size of a
//! mutex alone (`pthread_mutex_t` of glibc: 48 bytes there, 40 bytes on x86-64). `tests/header.rs`
//! compares every member with the system's own header where that is installed.

use std::mem::{offset_of, size_of};

use super::extended::*;
use super::types::*;

/// Bytes that a mutex has more than on x86-64.
const MUTEX: usize = size_of::<libc::pthread_mutex_t>() - 40;

const _: () = {
    assert!(MUTEX == if cfg!(target_arch = "aarch64") { 8 } else { 0 });
    assert!(size_of::<ibv_device>() == 664);
    assert!(size_of::<ibv_context>() == 328 + MUTEX);
    assert!(offset_of!(ibv_context, ops.poll_cq) == 96);
    assert!(offset_of!(ibv_context, ops.post_send) == 208);
    assert!(offset_of!(ibv_context, cmd_fd) == 264);
    assert!(offset_of!(ibv_context, abi_compat) == 320 + MUTEX);
    assert!(size_of::<ibv_pd>() == 16);
    assert!(size_of::<ibv_mr>() == 48);
    assert!(size_of::<ibv_cq>() == 128 + MUTEX);
    assert!(size_of::<ibv_srq>() == 128 + MUTEX);
    assert!(size_of::<ibv_qp>() == 160 + MUTEX);
    assert!(offset_of!(ibv_qp, qp_num) == 52);
    assert!(size_of::<ibv_ah>() == 24);
    assert!(size_of::<ibv_comp_channel>() == 16);
    assert!(size_of::<ibv_wc>() == 48);
    assert!(size_of::<ibv_sge>() == 16);
    assert!(size_of::<ibv_send_wr>() == 128);
    assert!(size_of::<ibv_recv_wr>() == 32);
    assert!(size_of::<ibv_port_attr>() == 52);
    assert!(size_of::<ibv_device_attr>() == 232);
    assert!(size_of::<ibv_qp_attr>() == 144);
    assert!(size_of::<ibv_qp_init_attr>() == 64);
    assert!(size_of::<ibv_ah_attr>() == 32);
    assert!(size_of::<ibv_gid>() == 16);
};

const _: () = {
    assert!(size_of::<verbs_context>() == 648 + MUTEX);
    assert!(offset_of!(verbs_context, sz) == 312);
    assert!(offset_of!(verbs_context, context) == 320);
    assert!(size_of::<ibv_qp_ex>() == 352 + MUTEX);
    assert!(offset_of!(ibv_qp_ex, wr_start) == 320 + MUTEX);
    assert!(size_of::<ibv_cq_ex>() == 288 + MUTEX);
    assert!(size_of::<ibv_device_attr_ex>() == 400);
    assert!(size_of::<ibv_qp_init_attr_ex>() == 136);
    assert!(size_of::<ibv_srq_init_attr>() == 24);
};
