//! The system's libibverbs, opened when it is first asked for.
//!
//! Never linked: a machine without it builds and runs everything else, and is told what is missing. Only functions of
//! the public ABI are used, by the versions that `dlsym` gives, which are those that a program linked today would get.

use std::ffi::CStr;
use std::fmt;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::provider::Provider;

/// Why a library of the system cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    library: &'static str,
    package: &'static str,
    reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, package, reason } = self;
        write!(
            f,
            "{library} cannot be used ({reason}): install rdma-core (Debian: apt-get install {package})"
        )
    }
}

impl std::error::Error for Missing {}

/// The system's libibverbs as a provider, which lives as long as the process.
///
/// # Errors
/// When the library or a function of it is missing; always the same answer.
pub fn provider() -> Result<&'static Provider, &'static Missing> {
    static PROVIDER: OnceLock<Result<Provider, Missing>> = OnceLock::new();
    PROVIDER.get_or_init(load).as_ref()
}

fn load() -> Result<Provider, Missing> {
    let library = Shared::open("libibverbs.so.1", "libibverbs1 ibverbs-providers")?;
    Ok(Provider {
        name: "libibverbs",
        about: "the system's verbs library",
        get_device_list: library.function(c"ibv_get_device_list")?,
        free_device_list: library.function(c"ibv_free_device_list")?,
        get_device_name: library.function(c"ibv_get_device_name")?,
        open_device: library.function(c"ibv_open_device")?,
        close_device: library.function(c"ibv_close_device")?,
        query_device: library.function(c"ibv_query_device")?,
        // The symbol fills all but `port_cap_flags2`, which stays as the caller has set it.
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
    })
}

/// A shared library that stays open as long as the process.
pub(crate) struct Shared {
    library: &'static Library,
    name: &'static str,
    package: &'static str,
}

impl Shared {
    /// Opens the library `name`, which is in the Debian package `package`.
    pub(crate) fn open(name: &'static str, package: &'static str) -> Result<Self, Missing> {
        // SAFETY: opening runs the library's initialisers; those of rdma-core have no preconditions.
        let opened = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        let library = opened.map_err(|error| Missing { library: name, package, reason: in_words(&error) })?;
        // Leaked on purpose: its functions are handed out for ever.
        Ok(Self { library: Box::leak(Box::new(library)), name, package })
    }

    /// The function `name`, whose type the caller takes from the man page.
    pub(crate) fn function<F: Copy>(&self, name: &CStr) -> Result<F, Missing> {
        // SAFETY: the type is that of the function's declaration in rdma-core, which keeps it stable, and the library
        // is never closed.
        let found = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        found.map(|symbol| *symbol).map_err(|error| Missing {
            library: self.name,
            package: self.package,
            reason: in_words(&error),
        })
    }
}

/// What the dynamic linker said.
fn in_words(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_says_what_to_install() {
        let Err(missing) = Shared::open("libibverbs-absent.so.1", "libibverbs1") else {
            panic!("there is no such library");
        };
        let text = missing.to_string();
        assert!(
            text.contains("libibverbs-absent.so.1") && text.contains("apt-get install libibverbs1"),
            "{text}"
        );
        assert!(text.contains("No such file"), "{text}");
    }

    #[test]
    fn a_missing_function_is_named() {
        let library = Shared::open("libc.so.6", "libc6").expect("every program has it");
        let found = library.function::<extern "C" fn()>(c"ibv_no_such_function");
        let text = found.expect_err("there is no such function").to_string();
        assert!(text.contains("ibv_no_such_function"), "{text}");
        assert!(library.function::<extern "C" fn() -> i32>(c"getpid").is_ok());
    }

    #[test]
    fn the_answer_is_always_the_same() {
        assert_eq!(provider().is_ok(), provider().is_ok());
    }
}
