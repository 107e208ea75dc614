//! Functions that the device does not support. They fail as in libibverbs for an adapter without
//! support (rdma-core, `libibverbs/dummy_ops.c`).

use std::ffi::{c_int, c_void};

use verbs::abi::*;

use crate::asked;

/// Sets `errno` and returns the null pointer of a failed verb.
pub(crate) fn fail<T>(errno: c_int) -> *mut T {
    asked::fail(errno);
    std::ptr::null_mut()
}

/// The result of a verb that returns an object.
fn none<T>() -> *mut T {
    fail(libc::EOPNOTSUPP)
}

/// The result of a verb that returns an error number.
const NOT_SUPPORTED: c_int = libc::EOPNOTSUPP;

// Sharing objects between processes by a kernel descriptor.

pub(crate) unsafe fn import_device(_cmd_fd: c_int) -> *mut ibv_context {
    none()
}

pub(crate) unsafe fn import_pd(_: *mut ibv_context, _handle: u32) -> *mut ibv_pd {
    none()
}

pub(crate) unsafe fn import_mr(_: *mut ibv_pd, _handle: u32) -> *mut ibv_mr {
    none()
}

pub(crate) unsafe fn import_dm(_: *mut ibv_context, _handle: u32) -> *mut c_void {
    none()
}

/// Does nothing: no object can have been imported.
pub(crate) unsafe fn unimport<T>(_: *mut T) {}

// Enhanced connection establishment: options that two adapters of one vendor negotiate.

pub(crate) unsafe fn ece(_: *mut ibv_qp, _: *mut c_void) -> c_int {
    NOT_SUPPORTED
}

// Memory of other devices, and other kinds of memory (rdma-core 34 and 58 to 64).

pub(crate) unsafe fn reg_dmabuf_mr(
    _: *mut ibv_pd,
    _offset: u64,
    _length: usize,
    _iova: u64,
    _fd: c_int,
    _access: c_int,
) -> *mut ibv_mr {
    none()
}

pub(crate) unsafe fn reg_mr_ex(_: *mut ibv_pd, _: *mut c_void) -> *mut ibv_mr {
    none()
}

pub(crate) unsafe fn alloc_buf(_: *mut ibv_pd, _size: usize, _: *mut *mut c_void) -> *mut c_void {
    none()
}

pub(crate) unsafe fn reg_buf_mr(
    _: *mut ibv_pd,
    _buf: *mut c_void,
    _addr: *mut c_void,
    _length: usize,
    _access: c_int,
) -> *mut ibv_mr {
    none()
}

pub(crate) unsafe fn alloc_dmah(_: *mut ibv_context, _: *mut c_void) -> *mut c_void {
    none()
}

// Completion counters (rdma-core 64), and the effective speed of a port, which softdev does not
// have.

pub(crate) unsafe fn query_comp_cntr_caps(_: *mut ibv_context, caps: *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller passes `size` writable bytes; libibverbs clears them first as well.
    unsafe { caps.cast::<u8>().write_bytes(0, size) };
    NOT_SUPPORTED
}

pub(crate) unsafe fn create_comp_cntr(_: *mut ibv_context, _: *mut c_void) -> *mut c_void {
    none()
}

pub(crate) unsafe fn qp_attach_comp_cntr(_: *mut ibv_qp, _cntr: *mut c_void, _attr: *mut c_void) -> c_int {
    NOT_SUPPORTED
}

pub(crate) unsafe fn query_port_speed(_: *mut ibv_context, _port: u32, _speed: *mut u64) -> c_int {
    NOT_SUPPORTED
}
