//! The system's libibverbs, opened on first use.
//!
//! rdmascope is never linked to it: without libibverbs, everything else builds and runs, and an
//! error names the missing library. Only functions of the public ABI are used, in the versions that
//! `dlsym` returns, which are those of a program linked today.

use std::sync::OnceLock;

use crate::library::{Library, Missing};
use crate::provider::{LIBIBVERBS, Provider};

/// Returns the system's libibverbs as a provider, which lives as long as the process.
///
/// # Errors
/// The library or one of its functions is missing. The answer never changes.
pub fn provider() -> Result<&'static Provider, &'static Missing> {
    static PROVIDER: OnceLock<Result<Provider, Missing>> = OnceLock::new();
    PROVIDER.get_or_init(load).as_ref()
}

fn load() -> Result<Provider, Missing> {
    let library = Library::open("libibverbs.so.1", "rdma-core", "libibverbs1 ibverbs-providers")?;
    // SAFETY: the types are those of the declarations in rdma-core, which keeps them stable.
    Ok(unsafe {
        Provider {
            name: LIBIBVERBS,
            about: "the system's verbs library",
            get_device_list: library.function(c"ibv_get_device_list")?,
            free_device_list: library.function(c"ibv_free_device_list")?,
            get_device_name: library.function(c"ibv_get_device_name")?,
            open_device: library.function(c"ibv_open_device")?,
            close_device: library.function(c"ibv_close_device")?,
            query_device: library.function(c"ibv_query_device")?,
            // The function fills all members except `port_cap_flags2`, which the caller has set.
            query_port: library.function(c"ibv_query_port")?,
            query_gid: library.function(c"ibv_query_gid")?,
            query_gid_ex: library.function(c"_ibv_query_gid_ex").ok(),
            query_pkey: library.function(c"ibv_query_pkey")?,
            alloc_pd: library.function(c"ibv_alloc_pd")?,
            dealloc_pd: library.function(c"ibv_dealloc_pd")?,
            reg_mr: library.function(c"ibv_reg_mr")?,
            dereg_mr: library.function(c"ibv_dereg_mr")?,
            create_comp_channel: library.function(c"ibv_create_comp_channel")?,
            destroy_comp_channel: library.function(c"ibv_destroy_comp_channel")?,
            create_cq: library.function(c"ibv_create_cq")?,
            resize_cq: library.function(c"ibv_resize_cq")?,
            destroy_cq: library.function(c"ibv_destroy_cq")?,
            get_cq_event: library.function(c"ibv_get_cq_event")?,
            ack_cq_events: library.function(c"ibv_ack_cq_events")?,
            get_async_event: library.function(c"ibv_get_async_event")?,
            ack_async_event: library.function(c"ibv_ack_async_event")?,
            create_qp: library.function(c"ibv_create_qp")?,
            modify_qp: library.function(c"ibv_modify_qp")?,
            query_qp: library.function(c"ibv_query_qp")?,
            destroy_qp: library.function(c"ibv_destroy_qp")?,
            create_srq: library.function(c"ibv_create_srq")?,
            modify_srq: library.function(c"ibv_modify_srq")?,
            query_srq: library.function(c"ibv_query_srq")?,
            destroy_srq: library.function(c"ibv_destroy_srq")?,
            qp_to_qp_ex: library.function(c"ibv_qp_to_qp_ex").ok(),
            attach_mcast: library.function(c"ibv_attach_mcast")?,
            detach_mcast: library.function(c"ibv_detach_mcast")?,
            create_ah: library.function(c"ibv_create_ah")?,
            destroy_ah: library.function(c"ibv_destroy_ah")?,
            alloc_buffer: None,
            free_buffer: None,
            pauses: false,
            set_link: Err(
                "the signal rate of a link is set at the switch or with the adapter's own tools, not through verbs",
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_always_the_same() {
        assert_eq!(provider().is_ok(), provider().is_ok());
    }
}
