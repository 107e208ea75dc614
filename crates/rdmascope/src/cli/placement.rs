//! The flags for the hosts, CPUs, devices and addresses of ranks, and for the record's directory.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use bench::worker::{Net, PortOptions};
use clap::Args;

use super::count::count;
use super::time::time_above_zero;
use crate::server_args::ServerArgs;

/// Where a benchmark runs, and where its record goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Site<P: Args = Placement> {
    /// Directory for the record and a report; it must not contain a run.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ends: ServerArgs,
    #[command(flatten)]
    pub(crate) placement: P,
}

/// Where the ranks run, and on which device.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Placement {
    /// Device to measure; see `rdmascope devices`.
    #[arg(short = 'd', long, alias = "ib-dev", value_name = "NAME")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) port: PortFlags,
    #[command(flatten)]
    pub(crate) location: Location,
}

/// Where the ranks run, and which addresses their sockets have.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SocketPlacement {
    #[command(flatten)]
    pub(crate) net: NetFlags,
    #[command(flatten)]
    pub(crate) location: Location,
}

/// Where the ranks run that an MPI launcher starts.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MpiPlacement {
    /// Device that MPI uses with --mpi-transport verbs; see `rdmascope devices`.
    #[arg(short = 'd', long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) location: Location,
}

/// Where the ranks of a plan run, for any endpoint.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlanPlacement {
    #[command(flatten)]
    pub(crate) net: NetFlags,
    #[command(flatten)]
    pub(crate) placement: Placement,
}

/// Which addresses sockets have.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NetFlags {
    /// Network of the sockets on all hosts: an interface such as ib0, or a network such as
    /// 10.1.0.0/16 [default: a network that the hosts share].
    #[arg(long, value_name = "NET")]
    pub(crate) net: Option<Net>,
    /// First port of the sockets that carry messages, for firewalls [default: the kernel chooses].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) data_port: Option<u16>,
}

impl NetFlags {
    /// Returns the flags of a server that listens on an address. If only this host can reach the
    /// address, the default of the network is loopback, too.
    pub(crate) fn of_server(&self, listens: IpAddr) -> Self {
        let net = self.net.clone().or_else(|| listens.is_loopback().then_some(Net::Loopback));
        Self { net, data_port: self.data_port }
    }
}

/// The flags that say where the ranks run, for any endpoint.
pub(crate) trait Places {
    /// Returns the flags for hosts and CPUs.
    fn location(&self) -> &Location;

    /// Returns the flags for the device, if the ranks can use one.
    fn device(&self) -> Option<&Placement> {
        None
    }

    /// Returns the device, and its port, for MPI over verbs.
    fn mpi_device(&self) -> (Option<&str>, PortOptions) {
        match self.device() {
            Some(placement) => (placement.device.as_deref(), placement.port.options()),
            None => (None, PortOptions::default()),
        }
    }

    /// Returns the flags for addresses of sockets, if the ranks can use sockets.
    fn net(&self) -> Option<&NetFlags> {
        None
    }
}

impl Places for Placement {
    fn location(&self) -> &Location {
        &self.location
    }

    fn device(&self) -> Option<&Placement> {
        Some(self)
    }
}

impl Places for SocketPlacement {
    fn location(&self) -> &Location {
        &self.location
    }

    fn net(&self) -> Option<&NetFlags> {
        Some(&self.net)
    }
}

impl Places for MpiPlacement {
    fn location(&self) -> &Location {
        &self.location
    }

    fn mpi_device(&self) -> (Option<&str>, PortOptions) {
        (self.device.as_deref(), PortOptions::default())
    }
}

impl Places for PlanPlacement {
    fn location(&self) -> &Location {
        &self.placement.location
    }

    fn device(&self) -> Option<&Placement> {
        Some(&self.placement)
    }

    fn net(&self) -> Option<&NetFlags> {
        Some(&self.net)
    }
}

/// Where the ranks run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Location {
    /// CPUs of rank 0 and rank 1; further ranks use them in turn. A server or its client may name
    /// just its own CPU. `none` pins no rank [default: the first CPUs that are allowed].
    #[arg(long, value_name = "A,B")]
    pub(crate) cpus: Option<String>,
    /// Hosts of rank 0 and rank 1; further ranks use them in turn. Needs --via.
    #[arg(long, value_name = "A,B", requires = "via", value_delimiter = ',', num_args = 1)]
    pub(crate) hosts: Vec<String>,
    /// Command that starts an agent on a host, such as 'ssh {host}' or 'ip netns exec {host}'.
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) via: Option<String>,
    /// Command that starts all ranks, as your site starts MPI programs: 'srun --mpi=pmix -n
    /// {ranks}' [default: 'mpirun -np {ranks}' for points over MPI, none for other points].
    #[arg(long, value_name = "TEMPLATE", conflicts_with_all = ["via", "hosts"])]
    pub(crate) mpi: Option<String>,
    /// MPI library, by path or name [default: the one that fits the launcher].
    #[arg(long, value_name = "PATH")]
    pub(crate) mpi_library: Option<String>,
    /// Address of this host that ranks on other hosts can reach, if --mpi starts ranks there
    /// [default: 127.0.0.1, for ranks on this host].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) mpi_listen: Option<IpAddr>,
    /// Path of rdmascope on the hosts [default: the path of this program].
    #[arg(long, value_name = "PATH", requires = "via")]
    pub(crate) agent_path: Option<String>,
    /// Time limit for starting the agents, such as 30 or 2min.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_above_zero)]
    pub(crate) start_timeout: Duration,
}

/// The port of the device and the route of packets, for all ranks.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PortFlags {
    /// Port of the device [default: the first active one].
    #[arg(short = 'i', long = "ib-port", value_name = "N", value_parser = count(1..=u8::MAX))]
    pub(crate) ib_port: Option<u8>,
    /// Index of the GID [default: the most widely routable one; see `rdmascope devices`].
    #[arg(short = 'x', long = "gid-index", value_name = "N", value_parser = count(0..=u8::MAX))]
    pub(crate) gid_index: Option<u8>,
    /// Index of the partition key.
    #[arg(long = "pkey_index", alias = "pkey-index", value_name = "N", default_value_t = 0, value_parser = count(0..=u16::MAX))]
    pub(crate) pkey_index: u16,
    /// Service level.
    #[arg(short = 'S', long, value_name = "N", default_value_t = 0, value_parser = count(0_u8..=15))]
    pub(crate) sl: u8,
    /// Traffic class of the global route header.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count(0..=u8::MAX))]
    pub(crate) tclass: u8,
}

impl PortFlags {
    /// Returns these flags as options of the worker.
    pub(crate) fn options(&self) -> PortOptions {
        PortOptions {
            port: self.ib_port,
            gid_index: self.gid_index,
            pkey_index: self.pkey_index,
            service_level: self.sl,
            traffic_class: self.tclass,
        }
    }

    /// Returns these flags as arguments of an agent.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let given = [
            ("--ib-port", self.ib_port.map(u32::from)),
            ("--gid-index", self.gid_index.map(u32::from)),
            ("--pkey_index", Some(self.pkey_index.into()).filter(|n| *n > 0)),
            ("--sl", Some(self.sl.into()).filter(|n| *n > 0)),
            ("--tclass", Some(self.tclass.into()).filter(|n| *n > 0)),
        ];
        given
            .iter()
            .filter_map(|(name, n)| Some([(*name).to_owned(), n.as_ref()?.to_string()]))
            .flatten()
            .collect()
    }
}
