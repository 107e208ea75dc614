//! Errors of verbs.

use std::ffi::CStr;

use crate::abi::*;
use crate::transition::{self, Refusal};

/// Result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a verb: what failed, on which object, and the system's own words.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device has the name.
    #[error("there is no device named `{name}`; this provider has: {known}")]
    NoSuchDevice {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A verb failed.
    #[error("{verb} on {object} failed: {} (errno {errno}){}", describe(*errno), remedy(verb, *errno))]
    Verb {
        /// Name of the C function.
        verb: &'static str,
        /// The object that it was called on.
        object: String,
        /// The error number.
        errno: i32,
    },
    /// A state change was refused, and the specification says why.
    #[error("modify_qp of {service} queue pair {qp_num:#08x} from {} to {} was refused: {why}",
        transition::state_name(*from), transition::state_name(*to))]
    Transition {
        /// The queue pair's number.
        qp_num: u32,
        /// Its service.
        service: &'static str,
        /// The state that it was in.
        from: ibv_qp_state,
        /// The state that was asked for.
        to: ibv_qp_state,
        /// What is wrong, in words.
        why: String,
    },
    /// The device's limit is lower than the value asked for.
    #[error("{what} of {asked} is more than {device} allows ({limit})")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// What was asked for.
        asked: u64,
        /// What the device allows.
        limit: u64,
        /// The device's name.
        device: String,
    },
    /// The connection manager reported another event than the expected one.
    #[error(
        "RDMA CM answered {got} where {wanted} was expected: are both addresses on RDMA devices of one network, is the \
         module rdma_ucm loaded on both hosts, and does no firewall drop the packets?"
    )]
    Manager {
        /// The event that was waited for.
        wanted: String,
        /// The event that came instead.
        got: String,
    },
    /// A range outside of its memory region.
    #[error("bytes {offset} to {} lie outside a memory region of {length} B", offset + len)]
    Range {
        /// First byte.
        offset: usize,
        /// Number of bytes.
        len: usize,
        /// Length of the region.
        length: usize,
    },
}

impl Error {
    /// Returns the error of the verb that has just failed and set `errno`.
    pub(crate) fn last(verb: &'static str, object: impl Into<String>) -> Self {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Self::Verb { verb, object: object.into(), errno }
    }

    /// Returns `Ok` if a verb returned 0, otherwise the error with the number that it returned (or
    /// `errno` if that is -1).
    pub(crate) fn check(verb: &'static str, object: impl FnOnce() -> String, returned: i32) -> Result<()> {
        match returned {
            0 => Ok(()),
            -1 => Err(Self::last(verb, object())),
            errno => Err(Self::Verb { verb, object: object(), errno: errno.abs() }),
        }
    }

    /// Whether a signal has interrupted the call.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Verb { errno: libc::EINTR, .. })
    }

    /// Explains a refused transition from the specification's table.
    pub(crate) fn transition(
        qp: (u32, ibv_qp_type),
        from: ibv_qp_state,
        to: ibv_qp_state,
        mask: u32,
        errno: i32,
    ) -> Self {
        let why = match transition::check(qp.1, from, to, mask) {
            Err(Refusal::NoSuchTransition) => "there is no transition between these states".to_owned(),
            Err(Refusal::Mask { missing, invalid }) => {
                let missing = (missing != 0).then(|| format!("it needs {}", transition::names(missing)));
                let invalid =
                    (invalid != 0).then(|| format!("it does not allow {}", transition::names(invalid)));
                [missing, invalid].into_iter().flatten().collect::<Vec<_>>().join(" and ")
            }
            Ok(()) => format!("{} (errno {errno}): an attribute's value is not acceptable", describe(errno)),
        };
        Self::Transition { qp_num: qp.0, service: service_name(qp.1), from, to, why }
    }
}

/// Returns a remedy for an error whose text does not explain it; empty if none is known.
fn remedy(verb: &str, errno: i32) -> String {
    match (verb, errno) {
        ("get_device_list", libc::ENOSYS) => {
            ": the kernel's RDMA modules are not loaded; load them with `modprobe ib_uverbs` and the module of the adapter, \
             or for Soft-RoCE `modprobe rdma_rxe` and `rdma link add rxe0 type rxe netdev eth0`"
                .to_owned()
        }
        // libibverbs also reports ENOENT if the file may not be opened.
        ("open_device", libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EACCES | libc::EPERM) => {
            ": its file in /dev/infiniband is missing (a container needs `--device /dev/infiniband`), or this user may not \
             read and write it (`ls -l /dev/infiniband`; rdma-core's udev rules make it mode 666)"
                .to_owned()
        }
        // To the kernel, shared memory is a file.
        ("open_device", libc::EFBIG) => {
            ": the file size limit also limits the memory that the device shares; raise it with \
             `ulimit -f unlimited`"
                .to_owned()
        }
        ("post_send", libc::ENOMEM) if limit(libc::RLIMIT_AS, "").is_empty() => {
            ": the send queue is full".to_owned()
        }
        // softdev connects a datagram's sender to the peer's process only when the first datagram
        // is posted.
        ("open_device" | "modify_qp" | "post_send", libc::ENOMEM) => {
            let whose = if verb == "open_device" { "the device's" } else { "the peer's" };
            format!(
                ": {whose} memory could not be mapped; the limit of address space is {}; raise it with \
                 `ulimit -v unlimited`, for a service with LimitAS=infinity",
                limit(libc::RLIMIT_AS, "unlimited (so the host has no more memory)")
            )
        }
        // Adapters do not return these errors; softdev does, when it looks up a peer.
        ("modify_qp" | "post_send", libc::ESRCH) => {
            ": softdev reaches its peers through /proc/PID, and /proc shows the processes of another PID namespace; mount \
             this one's (`unshare --mount-proc`, or `mount -t proc proc /proc`)"
                .to_owned()
        }
        ("modify_qp" | "post_send", libc::EACCES | libc::EPERM) => {
            ": softdev reaches its peers through /proc/PID/fd, which this process may not read; run both ranks as the same user \
             with the same capabilities"
                .to_owned()
        }
        // If the limit is 0, the kernel returns EPERM.
        ("reg_mr" | "create_cq" | "create_qp", libc::ENOMEM | libc::EPERM) => format!(
            ": the limit of locked memory is {}; raise it with `ulimit -l unlimited`, for good in \
             /etc/security/limits.d, for a service with LimitMEMLOCK=infinity, for a container with --ulimit memlock=-1",
            limit(libc::RLIMIT_MEMLOCK, "unlimited (so the device has run out of a resource of its own)")
        ),
        ("rdma_create_event_channel", _) => {
            ": the kernel's connection manager is not loaded; load it with `modprobe rdma_ucm`, and in a container add \
             --device /dev/infiniband/rdma_cm"
                .to_owned()
        }
        ("rdma_bind_addr", libc::ENODEV | libc::EADDRNOTAVAIL) => {
            ": the address must belong to the network interface of the RDMA device (`rdma link` shows it)".to_owned()
        }
        ("modify_qp" | "create_ah", libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ETIMEDOUT) => {
            ": the peer's GID cannot be resolved to a link address: both hosts need GIDs of one kind, and interfaces with \
             addresses of one network (`ip addr`); run `rdmascope devices` on both, and choose a GID with -x"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Describes a limit of this process.
fn limit(resource: libc::__rlimit_resource_t, unlimited: &str) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable.
    let known = unsafe { libc::getrlimit(resource, &raw mut limit) } == 0;
    match limit.rlim_cur {
        _ if !known => "unknown".to_owned(),
        libc::RLIM_INFINITY => unlimited.to_owned(),
        bytes => format!("{} KiB", bytes / 1024),
    }
}

/// The abbreviation of a service.
pub(crate) fn service_name(service: ibv_qp_type) -> &'static str {
    match service {
        IBV_QPT_RC => "RC",
        IBV_QPT_UC => "UC",
        IBV_QPT_UD => "UD",
        _ => "unknown",
    }
}

/// Returns the system's text for an error number.
pub(crate) fn describe(errno: i32) -> String {
    let mut text = [0; 128];
    // SAFETY: the buffer is valid for its length, and strerror_r terminates its output with a zero
    // byte.
    let found = unsafe { libc::strerror_r(errno, text.as_mut_ptr(), text.len()) } == 0;
    if !found {
        return "unknown error".to_owned();
    }
    // SAFETY: strerror_r succeeded, so the buffer holds a string that ends with a zero byte.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}
