//! Registration functions besides `ibv_reg_mr`, and queries about data order and fork.

use std::ffi::{c_int, c_void};

use softdev::PROVIDER;
use verbs::abi::*;

use crate::refused::fail;

/// `ibv_reg_mr_iova`, and `ibv_reg_mr_iova2`, which the macro `ibv_reg_mr` calls if the access
/// flags are not constant.
pub(crate) unsafe fn reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    if iova != addr as u64 {
        return fail(libc::EOPNOTSUPP);
    }
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { (PROVIDER.reg_mr)(pd, addr, length, access) }
}

/// `ibv_query_qp_data_in_order`: no order is guaranteed.
pub(crate) unsafe fn data_in_order(_: *mut ibv_qp, _op: u32, _flags: u32) -> c_int {
    0
}

/// `ibv_fork_init`: the device accesses memory through its process, so a child takes no page from
/// its parent.
pub(crate) unsafe fn fork_init() -> c_int {
    0
}

/// `IBV_FORK_UNNEEDED`.
pub(crate) unsafe fn is_fork_initialized() -> c_int {
    2
}
