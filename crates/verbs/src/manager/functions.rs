//! The functions of librdmacm, opened at run time.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::abi::ibv_qp_attr;
use crate::abi::rdma_cm::*;
use crate::library::{Library, Missing};

/// The functions of librdmacm that are used, with the contracts of their man pages.
pub struct Manager {
    pub(super) create_event_channel: unsafe extern "C" fn() -> *mut rdma_event_channel,
    pub(super) destroy_event_channel: unsafe extern "C" fn(*mut rdma_event_channel),
    pub(super) create_id:
        unsafe extern "C" fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, c_int) -> c_int,
    pub(super) destroy_id: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) bind_addr: unsafe extern "C" fn(*mut rdma_cm_id, *const libc::sockaddr) -> c_int,
    pub(super) get_src_port: unsafe extern "C" fn(*mut rdma_cm_id) -> u16,
    pub(super) listen: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    pub(super) resolve_addr:
        unsafe extern "C" fn(*mut rdma_cm_id, *const libc::sockaddr, *const libc::sockaddr, c_int) -> c_int,
    pub(super) resolve_route: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    pub(super) connect: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    pub(super) accept: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    pub(super) establish: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) disconnect: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) init_qp_attr: unsafe extern "C" fn(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int,
    pub(super) get_cm_event: unsafe extern "C" fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
    pub(super) ack_cm_event: unsafe extern "C" fn(*mut rdma_cm_event) -> c_int,
    pub(super) event_str: unsafe extern "C" fn(u32) -> *const c_char,
    pub(super) set_option: unsafe extern "C" fn(*mut rdma_cm_id, c_int, c_int, *mut c_void, usize) -> c_int,
}

/// Returns the system's librdmacm, which stays open as long as the process.
///
/// # Errors
/// The library or one of its functions is missing. The answer never changes.
pub fn manager() -> Result<&'static Manager, &'static Missing> {
    static MANAGER: OnceLock<Result<Manager, Missing>> = OnceLock::new();
    MANAGER.get_or_init(load).as_ref()
}

/// Whether librdmacm finds only software devices in this process: the library that `rdmascope exec`
/// preloads over libibverbs has a function of this name.
#[must_use]
pub fn is_emulated() -> bool {
    static IS_EMULATED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the name is a C string. The function is not called.
    *IS_EMULATED
        .get_or_init(|| unsafe { !libc::dlsym(libc::RTLD_DEFAULT, c"rdmascope_manager".as_ptr()).is_null() })
}

fn load() -> Result<Manager, Missing> {
    let library = Library::open("librdmacm.so.1", "rdma-core", "librdmacm1")?;
    // SAFETY: the types are those of the declarations in rdma-core, which keeps them stable.
    Ok(unsafe {
        Manager {
            create_event_channel: library.function(c"rdma_create_event_channel")?,
            destroy_event_channel: library.function(c"rdma_destroy_event_channel")?,
            create_id: library.function(c"rdma_create_id")?,
            destroy_id: library.function(c"rdma_destroy_id")?,
            bind_addr: library.function(c"rdma_bind_addr")?,
            get_src_port: library.function(c"rdma_get_src_port")?,
            listen: library.function(c"rdma_listen")?,
            resolve_addr: library.function(c"rdma_resolve_addr")?,
            resolve_route: library.function(c"rdma_resolve_route")?,
            connect: library.function(c"rdma_connect")?,
            accept: library.function(c"rdma_accept")?,
            establish: library.function(c"rdma_establish")?,
            disconnect: library.function(c"rdma_disconnect")?,
            init_qp_attr: library.function(c"rdma_init_qp_attr")?,
            get_cm_event: library.function(c"rdma_get_cm_event")?,
            ack_cm_event: library.function(c"rdma_ack_cm_event")?,
            event_str: library.function(c"rdma_event_str")?,
            set_option: library.function(c"rdma_set_option")?,
        }
    })
}
