//! The flags that say where ranks run, on what, and where the record goes.

use std::net::IpAddr;
use std::path::PathBuf;

use bench::worker::{Net, PortOptions};
use clap::Args;

use crate::server_args::ServerArgs;

/// Where a benchmark runs, and where its record goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Site<P: Args = Placement> {
    /// Keep the record and a report in this directory; it must not hold a run.
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
    #[arg(short = 'd', long, value_name = "NAME")]
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

/// Where ranks run that a launcher of MPI starts.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MpiPlacement {
    /// Device that MPI takes where --mpi-transport is verbs; see `rdmascope devices`.
    #[arg(short = 'd', long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) location: Location,
}

/// Where the ranks of a plan run, whatever carries its messages.
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
    /// Which addresses sockets have at both ends: of an interface such as ib0, or of a network such
    /// as 10.1.0.0/16 [default: of a network that both hosts have].
    #[arg(long, value_name = "NET")]
    pub(crate) net: Option<Net>,
    /// First port of the sockets that carry messages, for firewalls [default: whatever the kernel
    /// gives].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) data_port: Option<u16>,
}

impl NetFlags {
    /// Those of a server that listens there: one that only this host reaches has sockets that only
    /// this host reaches.
    pub(crate) fn of_server(&self, listens: IpAddr) -> Self {
        let net = self.net.clone().or_else(|| listens.is_loopback().then_some(Net::Loopback));
        Self { net, data_port: self.data_port }
    }
}

/// Where the ranks run, whatever carries their messages.
pub(crate) trait Places {
    /// On which hosts and CPUs.
    fn location(&self) -> &Location;

    /// Through which device, where they may take one.
    fn device(&self) -> Option<&Placement> {
        None
    }

    /// The device that MPI takes where it is to take verbs, and its port.
    fn mpi_device(&self) -> (Option<&str>, PortOptions) {
        match self.device() {
            Some(placement) => (placement.device.as_deref(), placement.port.options()),
            None => (None, PortOptions::default()),
        }
    }

    /// Which addresses their sockets have, where they may have some.
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
    /// CPUs of rank 0 and rank 1, which further ranks take in turn, or of the one end that is
    /// started by hand; `none` leaves them to the scheduler [default: the first that are allowed].
    #[arg(long, value_name = "A,B")]
    pub(crate) cpus: Option<String>,
    /// Hosts of rank 0 and rank 1, which further ranks take in turn; needs --via.
    #[arg(long, value_name = "A,B", requires = "via", value_delimiter = ',', num_args = 1)]
    pub(crate) hosts: Vec<String>,
    /// Command that starts an agent, e.g. 'ssh {host}' or 'ip netns exec {host}'.
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) via: Option<String>,
    /// Command that starts all ranks, as the site starts MPI programs: 'srun --mpi=pmix -n {ranks}'
    /// [default: 'mpirun -np {ranks}' for what MPI carries, none for anything else].
    #[arg(long, value_name = "TEMPLATE", conflicts_with_all = ["via", "hosts"])]
    pub(crate) mpi: Option<String>,
    /// Library of MPI, by path or name [default: the one that fits the launcher].
    #[arg(long, value_name = "PATH")]
    pub(crate) mpi_library: Option<String>,
    /// Address of this host that ranks of other hosts reach, where --mpi starts some [default:
    /// 127.0.0.1, for ranks of this host].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) mpi_listen: Option<IpAddr>,
    /// Path of rdmascope on the hosts [default: this program's own].
    #[arg(long, value_name = "PATH", requires = "via")]
    pub(crate) agent_path: Option<String>,
    /// Seconds that starting the agents may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) start_timeout: u32,
}

/// Which way packets leave the device, at both ends.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PortFlags {
    /// Port of the device [default: the first active one].
    #[arg(short = 'i', long = "ib-port", value_name = "N")]
    pub(crate) ib_port: Option<u8>,
    /// Index of the GID [default: the one that reaches farthest; `rdmascope devices` lists them].
    #[arg(short = 'x', long = "gid-index", value_name = "N")]
    pub(crate) gid_index: Option<u8>,
    /// Index of the partition key.
    #[arg(long = "pkey_index", alias = "pkey-index", value_name = "N", default_value_t = 0)]
    pub(crate) pkey_index: u16,
    /// Service level.
    #[arg(short = 'S', long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..16))]
    pub(crate) sl: u8,
    /// Traffic class of the global route header.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) tclass: u8,
}

impl PortFlags {
    /// As the worker takes them.
    pub(crate) fn options(&self) -> PortOptions {
        PortOptions {
            port: self.ib_port,
            gid_index: self.gid_index,
            pkey_index: self.pkey_index,
            service_level: self.sl,
            traffic_class: self.tclass,
        }
    }

    /// As arguments of an agent.
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
