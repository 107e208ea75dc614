//! Which programs run, how, and which of them make the quick run.

mod manager;
mod perftest;
mod upper;

/// How a case is run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
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
pub(super) struct Ranks {
    pub(super) mpi: Mpi,
    /// What the launcher is given in its environment.
    pub(super) environment: Vec<&'static str>,
    pub(super) count: &'static str,
    /// Its file, beside this one.
    pub(super) program: &'static str,
    /// What it is given, if anything.
    pub(super) argument: Option<&'static str>,
    /// What it prints where all has gone well.
    pub(super) prints: &'static str,
}

/// An implementation of MPI: the suffix of Debian's `mpicc` and `mpirun`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mpi {
    Mpich,
    OpenMpi,
}

impl Mpi {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
        }
    }
}

/// A server and a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Pair {
    pub(super) server: Vec<String>,
    pub(super) client: Vec<String>,
    pub(super) ready: Ready,
    /// Whether the server ends by itself.
    pub(super) ends: bool,
}

/// What a server has done when its client is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ready {
    /// It listens on this TCP port, or has that UDP port.
    Socket(u16),
    /// It listens on this port by RDMA CM.
    Manager(u16),
    /// It has been started: it does not listen.
    Started,
}

/// One line of the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    /// Arguments of `rdmascope exec`.
    pub(super) device: Device,
    pub(super) kind: Kind,
    pub(super) is_quick: bool,
}

/// Arguments of `rdmascope exec`.
pub(super) type Device = &'static [&'static str];

/// Ports of the cases, one each: away from those that perftest and qperf take by themselves.
const FIRST_PORT: u16 = 21_000;

const ETHERNET: Device = &[];
const INFINIBAND: Device = &["--link-layer", "infiniband"];
const TWO_DEVICES: Device = &["--devices", "2"];
const NAMESPACE: Device = &["--namespace"];
const LINK: Device = &["--link", "latency=5us"];

/// The address of the server.
const HERE: &str = "127.0.0.1";
/// In the words of a case: the server's port, and the address of a network interface.
const PORT: &str = "PORT";
pub(super) const INTERFACE: &str = "ADDRESS";

/// The pingpong programs of rdma-core with their modes, on Ethernet.
const PINGPONG: [(&str, &str, bool); 17] = [
    ("ibv_rc_pingpong", "-g 0", true),
    ("ibv_rc_pingpong", "-g 0 -e", false),
    ("ibv_rc_pingpong", "-g 0 -c", false),
    ("ibv_rc_pingpong", "-g 0 -N", true),
    ("ibv_rc_pingpong", "-g 0 -t", false),
    ("ibv_rc_pingpong", "-g 0 -s 65536 -m 4096", false),
    ("ibv_rc_pingpong", "-g 0 -o", false),
    ("ibv_rc_pingpong", "-g 0 -O", false),
    ("ibv_rc_pingpong", "-g 0 -o -P", false),
    ("ibv_rc_pingpong", "-g 0 -j", false),
    ("ibv_uc_pingpong", "-g 0", false),
    ("ibv_uc_pingpong", "-g 0 -e", false),
    ("ibv_ud_pingpong", "-g 0", true),
    ("ibv_ud_pingpong", "-g 0 -e", false),
    ("ibv_srq_pingpong", "-g 0", true),
    ("ibv_srq_pingpong", "-g 0 -e", false),
    ("ibv_xsrq_pingpong", "-g 0", true),
];

/// Programs that need no second one.
const ALONE: [(&str, bool); 3] = [("ibv_devices", true), ("ibv_devinfo -v", true), ("ibv_devinfo -l", false)];

/// All cases but pyverbs'.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Cases::default();
    for (line, is_quick) in ALONE {
        cases.push(ETHERNET, line, is_quick, Kind::Alone(words(line)));
    }
    let kind = Kind::Compiled("opener.c");
    cases.push(ETHERNET, "opener (dlopen, dlvsym)", true, kind);
    for (program, mode, is_quick) in PINGPONG {
        cases.own_server(ETHERNET, &format!("{program} {mode}"), is_quick);
    }
    for program in ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"] {
        cases.own_server(INFINIBAND, program, false);
    }
    cases.own_server(NAMESPACE, "ibv_rc_pingpong -g 0", true);
    perftest::cases(&mut cases);
    manager::cases(&mut cases);
    upper::cases(&mut cases);
    cases.0
}

/// The cases so far.
#[derive(Default)]
struct Cases(Vec<Case>);

impl Cases {
    fn push(&mut self, device: Device, line: &str, is_quick: bool, kind: Kind) {
        let name = device.iter().copied().chain([line]).collect::<Vec<_>>().join(" ");
        self.0.push(Case { name, device, kind, is_quick });
    }

    /// A port for the next case.
    fn port(&self) -> u16 {
        FIRST_PORT + self.0.len() as u16
    }

    /// A program that is its own server, with `-p` for its port.
    fn own_server(&mut self, device: Device, line: &str, is_quick: bool) {
        let server = format!("{line} -p {PORT}");
        let pair = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Socket };
        self.pair(device, line, is_quick, &pair, true);
    }

    /// A server and a client whose words have [`PORT`] for their port. `ends`: whether the server
    /// ends by itself.
    fn pair(&mut self, device: Device, name: &str, is_quick: bool, lines: &Lines<'_>, ends: bool) {
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
struct Lines<'a> {
    server: &'a str,
    client: &'a str,
    ready: &'a dyn Fn(u16) -> Ready,
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cases_have_names_and_ports_of_their_own() {
        let cases = cases();
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
        let port = |case: &Case| match &case.kind {
            Kind::Pair(Pair { ready: Ready::Socket(port) | Ready::Manager(port), .. }) => Some(*port),
            _ => None,
        };
        let ports: Vec<_> = cases.iter().filter_map(port).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
        assert!(names.iter().any(|name| *name == "ib_send_lat -c UD -n 1000"));
        assert!(
            !names.iter().any(|name| name.contains("ib_write_bw -c UD") || name.contains("read_bw -c UC"))
        );
    }

    #[test]
    fn a_port_is_in_the_words_of_both() {
        let mut cases = Cases::default();
        let lines = Lines { server: "s -B PORT", client: "c -P PORT", ready: &Ready::Manager };
        cases.pair(INFINIBAND, "both", true, &lines, false);
        let pair = Pair {
            server: words("s -B 21000"),
            client: words("c -P 21000"),
            ready: Ready::Manager(21_000),
            ends: false,
        };
        assert_eq!(cases.0[0].kind, Kind::Pair(pair));
        assert_eq!(cases.0[0].name, "--link-layer infiniband both");
    }
}
