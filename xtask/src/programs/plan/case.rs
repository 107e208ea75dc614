//! What a case is, and how one is made of words.

/// How a case is run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) enum Kind {
    /// A program by itself.
    Alone(Vec<String>),
    /// A program by itself that passes only if it prints this.
    Prints(Vec<String>, &'static str),
    /// A program by itself that is compiled from this file of C, beside this one.
    Compiled(&'static str),
    /// Ranks of an MPI.
    Ranks(Ranks),
    /// A server and a client.
    Pair(Pair),
}

/// Ranks of an MPI that run a program of ours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) struct Ranks {
    pub(in crate::programs) mpi: Mpi,
    /// What the launcher is given in its environment.
    pub(in crate::programs) environment: Vec<&'static str>,
    pub(in crate::programs) count: &'static str,
    /// Its file, beside this one.
    pub(in crate::programs) program: &'static str,
    /// What it is given, if anything.
    pub(in crate::programs) argument: Option<&'static str>,
    /// What it prints where all has gone well.
    pub(in crate::programs) prints: &'static str,
}

/// An implementation of MPI: the suffix of Debian's `mpicc` and `mpirun`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::programs) enum Mpi {
    Mpich,
    OpenMpi,
}

impl Mpi {
    pub(in crate::programs) fn suffix(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }
}

/// A server and a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) struct Pair {
    pub(in crate::programs) server: Vec<String>,
    pub(in crate::programs) client: Vec<String>,
    pub(in crate::programs) ready: Ready,
    /// Whether the server ends by itself.
    pub(in crate::programs) ends: bool,
}

/// What a server has done when its client is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::programs) enum Ready {
    /// It listens on this TCP port, or has that UDP port.
    Socket(u16),
    /// It listens on this port by RDMA CM.
    Manager(u16),
    /// It has been started: it does not listen.
    Started,
}

/// One line of the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) struct Case {
    pub(in crate::programs) name: String,
    /// Arguments of `rdmascope exec`.
    pub(in crate::programs) device: Device,
    pub(in crate::programs) kind: Kind,
    pub(in crate::programs) is_quick: bool,
}

/// Arguments of `rdmascope exec`.
pub(in crate::programs) type Device = &'static [&'static str];

/// Ports of the cases, one each: away from those that perftest and qperf take by themselves.
const FIRST_PORT: u16 = 21_000;

pub(super) const ETHERNET: Device = &[];
pub(super) const INFINIBAND: Device = &["--link-layer", "infiniband"];
pub(super) const TWO_DEVICES: Device = &["--devices", "2"];
pub(super) const NAMESPACE: Device = &["--namespace"];
pub(super) const LINK: Device = &["--link", "latency=5us"];

/// The address of the server.
pub(super) const HERE: &str = "127.0.0.1";
/// In the words of a case: the server's port, and the address of a network interface.
pub(super) const PORT: &str = "PORT";
pub(in crate::programs) const INTERFACE: &str = "ADDRESS";

/// The cases so far.
#[derive(Default)]
pub(super) struct Cases(pub(super) Vec<Case>);

impl Cases {
    pub(super) fn push(&mut self, device: Device, line: &str, is_quick: bool, kind: Kind) {
        let name = device.iter().copied().chain([line]).collect::<Vec<_>>().join(" ");
        self.0.push(Case { name, device, kind, is_quick });
    }

    /// A port for the next case.
    pub(super) fn port(&self) -> u16 {
        FIRST_PORT + self.0.len() as u16
    }

    /// A program that is its own server, with `-p` for its port.
    pub(super) fn own_server(&mut self, device: Device, line: &str, is_quick: bool) {
        let server = format!("{line} -p {PORT}");
        let pair = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Socket };
        self.pair(device, line, is_quick, &pair, true);
    }

    /// A server and a client whose words have [`PORT`] for their port. `ends`: whether the server
    /// ends by itself.
    pub(super) fn pair(&mut self, device: Device, name: &str, is_quick: bool, lines: &Lines<'_>, ends: bool) {
        let port = self.port();
        let words = |line: &str| words(&line.replace(PORT, &port.to_string()));
        let pair = Pair {
            server: words(lines.server),
            client: words(lines.client),
            ready: (lines.ready)(port),
            ends,
        };
        self.push(device, name, is_quick, Kind::Pair(pair));
    }
}

/// What a server and a client are started by.
pub(super) struct Lines<'a> {
    pub(super) server: &'a str,
    pub(super) client: &'a str,
    pub(super) ready: &'a dyn Fn(u16) -> Ready,
}

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
