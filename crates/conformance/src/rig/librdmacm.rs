//! The functions of librdmacm that cases call, with the contracts of their man pages.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libc::sockaddr;
use verbs::abi::rdma_cm::*;
use verbs::abi::*;
use verbs::library::{Library, Missing};

macro_rules! functions {
    ($($name:ident($($type:ty),*) $(-> $returned:ty)?;)*) => {
        /// The functions, by their names.
        pub(crate) struct Librdmacm {
            $(pub(crate) $name: unsafe extern "C" fn($($type),*) $(-> $returned)?,)*
        }

        fn load() -> Result<Librdmacm, Missing> {
            let library = Library::open("librdmacm.so.1", "rdma-core", "librdmacm1")?;
            Ok(Librdmacm {
                $($name: {
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    let name = CStr::from_bytes_with_nul(name).expect("the name has one zero byte, at its end");
                    // SAFETY: the type is the declaration in rdma-core, which keeps it stable.
                    unsafe { library.function(name)? }
                },)*
            })
        }
    };
}

functions! {
    rdma_create_event_channel() -> *mut rdma_event_channel;
    rdma_destroy_event_channel(*mut rdma_event_channel);
    rdma_create_id(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, c_int) -> c_int;
    rdma_destroy_id(*mut rdma_cm_id) -> c_int;
    rdma_bind_addr(*mut rdma_cm_id, *const sockaddr) -> c_int;
    rdma_resolve_addr(*mut rdma_cm_id, *const sockaddr, *const sockaddr, c_int) -> c_int;
    rdma_resolve_route(*mut rdma_cm_id, c_int) -> c_int;
    rdma_listen(*mut rdma_cm_id, c_int) -> c_int;
    rdma_connect(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    rdma_accept(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    rdma_reject(*mut rdma_cm_id, *const c_void, u8) -> c_int;
    rdma_disconnect(*mut rdma_cm_id) -> c_int;
    rdma_establish(*mut rdma_cm_id) -> c_int;
    rdma_notify(*mut rdma_cm_id, c_int) -> c_int;
    rdma_init_qp_attr(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int;
    rdma_create_qp(*mut rdma_cm_id, *mut ibv_pd, *mut ibv_qp_init_attr) -> c_int;
    rdma_destroy_qp(*mut rdma_cm_id);
    rdma_get_cm_event(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int;
    rdma_ack_cm_event(*mut rdma_cm_event) -> c_int;
    rdma_migrate_id(*mut rdma_cm_id, *mut rdma_event_channel) -> c_int;
    rdma_set_option(*mut rdma_cm_id, c_int, c_int, *mut c_void, usize) -> c_int;
    rdma_get_src_port(*mut rdma_cm_id) -> u16;
    rdma_get_dst_port(*mut rdma_cm_id) -> u16;
    rdma_join_multicast(*mut rdma_cm_id, *mut sockaddr, *mut c_void) -> c_int;
    rdma_leave_multicast(*mut rdma_cm_id, *mut sockaddr) -> c_int;
    rdma_getaddrinfo(
        *const c_char, *const c_char, *const rdma_addrinfo, *mut *mut rdma_addrinfo
    ) -> c_int;
    rdma_freeaddrinfo(*mut rdma_addrinfo);
    rdma_create_ep(*mut *mut rdma_cm_id, *mut rdma_addrinfo, *mut ibv_pd, *mut ibv_qp_init_attr) -> c_int;
    rdma_get_request(*mut rdma_cm_id, *mut *mut rdma_cm_id) -> c_int;
}

/// The system's librdmacm, which stays open until the process ends.
///
/// # Errors
/// If the library or one of its functions is missing; the result is always the same.
pub(crate) fn librdmacm() -> Result<&'static Librdmacm, &'static Missing> {
    static LIBRARY: OnceLock<Result<Librdmacm, Missing>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref()
}
