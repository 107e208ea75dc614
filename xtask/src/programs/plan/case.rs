//! The cases, and their construction from words.

/// How a case is run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) enum Kind {
    /// One program.
    Alone(Vec<String>),
    /// One program that passes only if it prints this text.
    Prints(Vec<String>, &'static str),
    /// One program that is compiled from this C file in `xtask/src/programs`.
    Compiled(&'static str),
    /// Ranks of an MPI.
    Ranks(Ranks),
    /// A server and a client.
    Pair(Pair),
}

/// Ranks of an MPI that run a C program of `xtask/src/programs`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::programs) struct Ranks {
    pub(in crate::programs) mpi: Mpi,
    /// The environment variables of the launcher.
    pub(in crate::programs) environment: Vec<&'static str>,
    pub(in crate::programs) count: &'static str,
    /// The program's file.
    pub(in crate::programs) program: &'static str,
    /// The program's argument, if it has one.
    pub(in crate::programs) argument: Option<&'static str>,
    /// The text that the program prints if it succeeds.
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

/// The state of a server in which its client is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::programs) enum Ready {
    /// The server listens on this TCP port, or has this UDP port.
    Socket(u16),
    /// The server listens on this port of RDMA CM.
    Manager(u16),
    /// The server has been started: it does not listen.
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

/// The port of the first case; each case has its own, none of the default ports of the programs.
const FIRST_PORT: u16 = 21_000;

pub(super) const ETHERNET: Device = &[];
pub(super) const INFINIBAND: Device = &["--link-layer", "infiniband"];
pub(super) const TWO_DEVICES: Device = &["--devices", "2"];
pub(super) const NAMESPACE: Device = &["--namespace"];
pub(super) const LINK: Device = &["--link", "latency=5us"];

/// The address of the server.
pub(super) const HERE: &str = "127.0.0.1";
/// Placeholders in the words of a case: the server's port, and the address of a network interface.
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

    /// The port of the next case.
    pub(super) fn port(&self) -> u16 {
        FIRST_PORT + self.0.len() as u16
    }

    /// Adds a program that is its own server, with the option `-p` for the port.
    pub(super) fn own_server(&mut self, device: Device, line: &str, is_quick: bool) {
        let server = format!("{line} -p {PORT}");
        let pair = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Socket };
        self.pair(device, line, is_quick, &pair, true);
    }

    /// Adds a server and a client whose words have the placeholder [`PORT`]. `ends`: whether the
    /// server ends by itself.
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

/// The command lines of a server and a client.
pub(super) struct Lines<'a> {
    pub(super) server: &'a str,
    pub(super) client: &'a str,
    pub(super) ready: &'a dyn Fn(u16) -> Ready,
}

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
