//! The rights of this process.

use crate::host::Host;

/// Whether the process has a capability (capabilities(7)) of the initial user namespace. A
/// capability in another user namespace does not count.
pub(crate) fn has_capability(host: &Host, capability: u32) -> bool {
    // Capabilities belong to threads.
    let status = |whose: &str| host.status(whose, "CapEff");
    let effective =
        status("thread-self").or_else(|| status("self")).and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    let map = host.line("proc/self/uid_map").unwrap_or_default();
    effective.is_some_and(|bits| bits & (1 << capability) != 0)
        && map.split_whitespace().eq(["0", "0", "4294967295"])
}

pub(crate) const CAP_IPC_LOCK: u32 = 14;
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
pub(crate) const ROOT: &str = "run as root";
