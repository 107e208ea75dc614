//! The transport that MPI used, as far as it can be known: UCX logs it when it connects ranks, Open
//! MPI's settings leave no choice, a peer's memory is mapped, or a port of an RDMA device has sent
//! as many packets.
//!
//! # Invariants
//!
//! * Nothing is inspected while messages are measured, and UCX writes only when it connects ranks.
//! * If the transport is not known, the result says so. If several are possible, it lists all,
//!   joined by `or`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};

use super::choices::MpiTransport;
use super::port_counts::PortCounts;
use super::transports::NET_DEVICES;
use crate::Error;
use crate::host_counters::Ways;

/// The log that UCX writes in this process: a file without a name.
#[derive(Debug)]
pub struct UcxLog(File);

impl UcxLog {
    /// Creates an empty log, before UCX is loaded; returns `None` if the environment already sets
    /// UCX's log level or log file.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn create() -> io::Result<Option<Self>> {
        if [LEVEL, FILE].iter().any(|name| std::env::var_os(name).is_some()) {
            return Ok(None);
        }
        let file = memfd_create("rdmascope-ucx-log", MemfdFlags::CLOEXEC)?;
        Ok(Some(Self(file.into())))
    }

    /// Returns the variables that make UCX log the transports that it selects.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [(LEVEL, "info".to_owned()), (FILE, format!("/proc/self/fd/{}", self.0.as_raw_fd()))]
    }

    fn text(&self) -> String {
        // UCX leaves its log in the buffer of a libc stream.
        // SAFETY: a null pointer is allowed: all streams are flushed, each under its own lock.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let length = self.0.metadata().map_or(0, |file| file.len()).min(BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = self.0.read_exact_at(&mut bytes, 0);
        read.map_or_else(|_| String::new(), |()| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The transport that a point requests of MPI, and the sources that show which one it used.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) asked: MpiTransport,
    /// The library, as it names itself.
    pub(super) library: String,
    /// How many ranks MPI has.
    pub(super) ranks: usize,
    pub(super) log: Option<Arc<UcxLog>>,
    /// The packets that the ports of this host had sent before.
    pub(super) ports: PortCounts,
}

impl Carried {
    /// Returns the port of the device that the point requests; its counters go to the record.
    pub(super) fn ways(&self) -> Ways {
        let device = std::env::var(NET_DEVICES).ok().filter(|_| self.asked == MpiTransport::Verbs);
        Ways { ports: device.and_then(|device| port(&device)).into_iter().collect(), ..Ways::default() }
    }

    /// Returns the transport that MPI used, once this rank has sent or received `messages`
    /// messages.
    ///
    /// # Errors
    /// [`Error::OtherTransport`] if it is certain that the point requests another transport.
    pub(super) fn transport(&self, messages: u64) -> Result<String, Error> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let log = self.log.as_ref().map(|log| log.text()).unwrap_or_default();
        let variable = |name: &str| std::env::var(name).ok();
        let mut used = used(&self.library, self.ranks, &log, &maps, variable);
        if used.is_empty() {
            let carriers = PortCounts::now().carriers(&self.ports, messages);
            let by_count = |port: String| format!("{} {port} (by its counters)", MpiTransport::Verbs.word());
            used.extend(carriers.into_iter().map(by_count));
        }
        let used_text = used.iter().cloned().collect::<Vec<_>>().join(" or ");
        let asked = self.asked.word();
        let is_asked_for = |one: &String| one.split(' ').next() == Some(asked);
        if self.asked != MpiTransport::Default && !used.is_empty() && !used.iter().any(is_asked_for) {
            return Err(Error::OtherTransport { library: self.library.clone(), asked, used: used_text });
        }
        Ok(if used.is_empty() { NOT_KNOWN.to_owned() } else { used_text })
    }
}

/// Returns the sysfs directory of the port that UCX is told to use, such as `mlx5_0:1`.
fn port(device: &str) -> Option<PathBuf> {
    let (name, port) = device.split_once(':')?;
    let is_plain = !name.is_empty() && !name.contains(['/', ',', '.']) && port.parse::<u8>().is_ok();
    is_plain.then(|| Path::new("/sys/class/infiniband").join(name).join("ports").join(port))
}

/// Returns every transport that a library may have used; empty if nothing is known.
fn used(
    library: &str,
    ranks: usize,
    log: &str,
    maps: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> BTreeSet<String> {
    let mut by_ucx: BTreeSet<String> = log.lines().flat_map(of_line).collect();
    if library.starts_with("Open MPI") {
        // Open MPI connects ranks by UCX only if UCX carries their messages.
        return if by_ucx.is_empty() {
            by_open_mpi(ranks, maps, variable).into_iter().collect()
        } else {
            by_ucx
        };
    }
    // MPICH may use its own shared memory between the ranks of a host, unless it is told not to.
    let is_all = variable("MPIR_CVAR_NOLOCAL").is_some_and(|value| value != "0");
    if !by_ucx.is_empty() && !is_all {
        by_ucx.insert(SHM.to_owned());
    }
    by_ucx
}

/// Returns the transports in a line in which UCX logs how it reaches a peer, such as
/// `ep_cfg[1]: tag(rc_mlx5/mlx5_0:1)`; releases since 1.15 write `inter-node cfg#1 tag(...)`.
fn of_line(line: &str) -> Vec<String> {
    let Some((_, peer)) = line.split_once("ep_cfg[").or_else(|| line.split_once("cfg#")) else {
        return Vec::new();
    };
    let list = peer.split_once("tag(").and_then(|(_, rest)| rest.split_once(')'));
    let transports: Vec<&str> = list.map_or_else(Vec::new, |(list, _)| list.split_whitespace().collect());
    // This is how a rank reaches itself.
    if transports.iter().any(|transport| transport.starts_with("self/")) {
        return Vec::new();
    }
    transports.into_iter().filter_map(|transport| transport.split_once('/')).map(named).collect()
}

/// Returns the name that plans use for a transport of UCX: RC, UD and DC are verbs, and every copy
/// between processes of a host is shared memory. Any other transport keeps its own name.
fn named((transport, resource): (&str, &str)) -> String {
    let family = transport.split('_').next().unwrap_or_default();
    match family {
        "rc" | "ud" | "dc" => format!("{} {resource}", MpiTransport::Verbs.word()),
        "sysv" | "posix" | "cma" | "knem" | "xpmem" | "mm" => SHM.to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the transport that Open MPI's own `ob1` used: the only component that it is allowed, or
/// shared memory if it has mapped that of every rank, which `ob1` prefers to all others.
fn by_open_mpi(ranks: usize, maps: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    if variable("OMPI_MCA_pml").as_deref() == Some("ob1") {
        let list = variable("OMPI_MCA_btl").unwrap_or_default();
        let components: Vec<&str> = list.split(',').filter(|component| *component != "self").collect();
        match components[..] {
            ["vader" | "sm"] => return Some(SHM.to_owned()),
            ["tcp"] => return Some(MpiTransport::Tcp.word().to_owned()),
            _ => {}
        }
    }
    let files: BTreeSet<&str> =
        maps.lines().filter_map(|line| line.rsplit_once('/')).map(|(_, name)| name).collect();
    // Components that were not chosen have been closed.
    let chosen: Vec<_> = files.iter().filter(|name| name.starts_with("mca_pml_")).collect();
    let is_ob1 = !chosen.is_empty() && chosen.iter().all(|name| name.starts_with("mca_pml_ob1."));
    let is_segment = |name: &&&str| name.starts_with("vader_segment.") || name.starts_with("sm_segment.");
    let segments = files.iter().filter(is_segment).count();
    (is_ob1 && segments >= ranks).then(|| SHM.to_owned())
}

/// What a record contains if the transport is not known.
const NOT_KNOWN: &str = "transport not known";
const SHM: &str = MpiTransport::Shm.word();
/// The variables for UCX's log level and log file (since 1.0).
const LEVEL: &str = "UCX_LOG_LEVEL";
const FILE: &str = "UCX_LOG_FILE";
/// The most that is read of the log: UCX writes a line for each kind of peer, not for each peer.
const BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of UCX 1.13 under Open MPI and MPICH, and of 1.15.
    const RC: &str = "\
[1795616735.358369] [vm:16528:0]  parser.c:1916 UCX  INFO  UCX_* env variables: UCX_TLS=rc,self
[1795616735.361929] [vm:16528:0]  ucp_worker.c:1763 UCX  INFO    ep_cfg[0]: tag(self/memory0 rc_verbs/softdev0:1)
[1795616735.699614] [vm:16528:0]  ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(rc_verbs/softdev0:1)
";
    const SHARED: &str = "\
ucp_worker.c:1763 UCX  INFO    ep_cfg[0]: tag(sysv/memory cma/memory) rma(sysv/memory posix/memory) am(sysv/memory)
";
    const NEW: &str = "ucp_worker.c UCX  INFO  ucp_context_0 inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)\n";
    const TCP: &str = "ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(tcp/lo tcp/eth0) rma_am(tcp/lo)\n";

    /// Returns what is known with these variables.
    fn found(library: &str, log: &str, maps: &str, set: &[(&str, &str)]) -> String {
        let variable =
            |name: &str| set.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        used(library, 2, log, maps, variable).into_iter().collect::<Vec<_>>().join(" or ")
    }

    #[test]
    fn ucx_tells_what_it_takes_to_other_ranks() {
        for library in ["Open MPI v4.1.4", "MPICH 4.0.2"] {
            let found = |log| found(library, log, "", &[("MPIR_CVAR_NOLOCAL", "1")]);
            assert_eq!(found(RC), "verbs softdev0:1");
            assert_eq!(found(NEW), "verbs mlx5_0:1");
            assert_eq!(found(TCP), "tcp");
            assert_eq!(found(SHARED), "shm");
            assert_eq!(found("nothing of interest\n"), "");
        }
    }

    #[test]
    fn the_port_that_counts_is_that_of_the_device() {
        let found = port("mlx5_0:1").unwrap();
        assert_eq!(found, Path::new("/sys/class/infiniband/mlx5_0/ports/1"));
        for other in ["all", "mlx5_0:1,mlx5_1:1", "../x:1", ":1", "eth0"] {
            assert_eq!(port(other), None, "{other}");
        }
    }

    #[test]
    fn shared_memory_of_mpich_itself_is_not_forgotten() {
        assert_eq!(found("MPICH 4.0.2", RC, "", &[]), "shm or verbs softdev0:1");
        assert_eq!(found("MPICH 4.0.2", SHARED, "", &[]), "shm");
        assert_eq!(found("MPICH 4.0.2", "", "", &[]), "");
    }

    #[test]
    fn what_open_mpi_has_no_choice_of_is_known() {
        let found =
            |btl: &str| found("Open MPI v4.1.4", "", "", &[("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", btl)]);
        assert_eq!(found("self,tcp"), "tcp");
        assert_eq!(found("self,vader"), "shm");
        assert_eq!(found("self,vader,tcp"), "");
        assert_eq!(found("^tcp"), "");
    }

    #[test]
    fn open_mpi_left_to_itself_is_known_by_the_memory_of_all_ranks() {
        let maps = |names: &[&str]| {
            let line = |name: &&str| format!("7f00-7f01 rw-s 00000000 00:19 42  /x/{name}\n");
            names.iter().map(line).collect::<String>()
        };
        let found = |names: &[&str]| found("Open MPI v4.1.4", "", &maps(names), &[]);
        assert_eq!(found(&["mca_pml_ob1.so", "vader_segment.vm.0.1.0", "vader_segment.vm.0.1.1"]), "shm");
        assert_eq!(found(&["mca_pml_ob1.so", "vader_segment.vm.0.1.0"]), "", "the peer has none");
        let both = ["mca_pml_ucx.so", "vader_segment.vm.0.1.0", "vader_segment.vm.0.1.1"];
        assert_eq!(found(&both), "", "ob1 carries nothing");
        assert_eq!(found(&both[1..]), "", "nothing shows what does");
    }
}
