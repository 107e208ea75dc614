//! Rights of this process.

use crate::host::Host;

/// Whether the process has a capability (capabilities(7)) that counts: not one of a user namespace
/// of its own.
pub(crate) fn has_capability(host: &Host, capability: u32) -> bool {
    // Rights are a thread's.
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
