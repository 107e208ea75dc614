//! Which programs run, how, and which of them make the quick run.

/// How a case is run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A program by itself.
    Alone(Vec<String>),
    /// A program by itself that passes only if it prints this.
    Prints(Vec<String>, &'static str),
    /// A program by itself that is compiled from this file of C, beside this one.
    Compiled(&'static str),
    /// Two ranks of an MPI over UCX with these transports (`UCX_TLS`). A small message must not
    /// take less than `least_ns`.
    Ranks { mpi: Mpi, transports: &'static str, least_ns: u32 },
    /// A server, which listens on a TCP port, and a client. `ends`: whether the server ends by
    /// itself.
    Pair { server: Vec<String>, client: Vec<String>, port: u16, ends: bool },
}

/// An implementation of MPI that uses UCX: the suffix of Debian's `mpicc` and `mpirun`.
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

/// One line of the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    /// Arguments of `rdmascope exec`.
    pub(super) device: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) is_quick: bool,
}

/// Ports of the cases, one each: away from those that perftest and qperf take by themselves.
const FIRST_PORT: u16 = 21_000;

const ETHERNET: &[&str] = &[];
const INFINIBAND: &[&str] = &["--link-layer", "infiniband"];
const TWO_DEVICES: &[&str] = &["--devices", "2"];
const NAMESPACE: &[&str] = &["--namespace"];
const LINK: &[&str] = &["--link", "latency=5us"];

/// The address of the server.
const HERE: &str = "127.0.0.1";

/// perftest's programs with the services that each has.
const PERFTEST: [(&str, &[&str]); 8] = [
    ("ib_send_lat", &["RC", "UC", "UD"]),
    ("ib_send_bw", &["RC", "UC", "UD"]),
    ("ib_write_lat", &["RC", "UC"]),
    ("ib_write_bw", &["RC", "UC"]),
    ("ib_read_lat", &["RC"]),
    ("ib_read_bw", &["RC"]),
    ("ib_atomic_lat", &["RC"]),
    ("ib_atomic_bw", &["RC"]),
];

/// Modes: arguments, words that the program's name must have, services, and whether the quick run
/// has it.
type Mode = (&'static str, &'static [&'static str], &'static [&'static str], bool);

const ALL: &[&str] = &["RC", "UC", "UD"];
const CONNECTED: &[&str] = &["RC", "UC"];

/// Two CPUs that others use too make a ping-pong that polls slow, hence few messages.
const MODES: [Mode; 33] = [
    ("-n 1000", &[], ALL, true),
    ("-n 20 -a", &["send_lat", "write_lat", "read_lat"], ALL, false),
    ("-n 100 -a", &["send_bw", "write_bw", "read_bw"], ALL, false),
    ("-n 1000 -e", &["send", "read", "atomic"], ALL, false),
    ("-n 1000 -b", &["_bw"], ALL, false),
    ("-n 1000 -q 4", &["_bw"], ALL, false),
    ("-n 1000 -l 8", &["_bw"], ALL, false),
    ("-n 1000 -q 2 -l 4 -b", &["send_bw", "write_bw"], ALL, false),
    ("-n 1000 -Q 16 -t 512", &["_bw"], ALL, false),
    ("-D 1", &[], ALL, false),
    ("-D 1 -b", &["_bw"], CONNECTED, false),
    ("-n 1000 -s 32 -I 32", &["send", "write"], ALL, false),
    ("-n 1000 -s 4096 -m 1024", &["send", "write", "read"], CONNECTED, false),
    ("-n 1000 --use-srq", &["send"], ALL, false),
    ("-n 1000 --use-srq -q 4", &["send_bw"], &["RC"], true),
    // What finds no receive is lost where nothing is acknowledged, and perftest waits a minute for
    // it: here all fit.
    ("-n 50 --use-srq -q 4", &["send_bw"], &["UC", "UD"], false),
    ("-n 1000 -e --use-srq", &["send_lat"], ALL, false),
    ("-n 5000 -r 5000", &["send"], ALL, false),
    ("-n 1000 -e -b", &["send_bw", "read_bw"], &["RC"], false),
    ("-n 1000 -A CMP_AND_SWAP", &["atomic"], ALL, false),
    ("-n 1000 -o 1", &["read", "atomic"], ALL, false),
    ("-n 100 -g", &["send"], &["UD"], true),
    ("-n 5 -s 64 -q 1024 -t 1 -r 5", &["send_bw"], CONNECTED, false),
    ("-n 5 -s 64 -q 1024 -t 1", &["write_bw", "read_bw"], CONNECTED, false),
    ("-n 1000 --mr_per_qp -q 4", &["write_bw"], &["RC"], false),
    ("-n 1000 --odp", &["send_lat", "write_bw", "read_bw"], &["RC"], false),
    ("-n 1000 --inline_recv=32", &["send_lat"], &["RC"], false),
    ("-n 1000 --reversed", &["_bw"], &["RC"], false),
    ("-n 1000 -R", &["send_lat", "write_bw"], &["RC"], true),
    ("-n 1000 -c XRC", &["send_lat", "write_bw"], &["RC"], true),
    ("-n 1000 -c DC", &["send_lat", "write_bw"], &["RC"], false),
    ("-n 1000 -c SRD", &["send_lat"], &["RC"], false),
    ("-n 1000 -z", &["send_lat"], &["RC"], false),
];

/// qperf's tests of RDMA as Debian builds it, which is without XRC, and whether the quick run has
/// them.
const QPERF: [(&str, bool); 21] = [
    ("rc_bi_bw", false),
    ("rc_bw", false),
    ("rc_lat", true),
    ("uc_bi_bw", false),
    ("uc_bw", false),
    ("uc_lat", false),
    ("ud_bi_bw", false),
    ("ud_bw", false),
    ("ud_lat", true),
    ("rc_rdma_read_bw", false),
    ("rc_rdma_read_lat", false),
    ("rc_rdma_write_bw", false),
    ("rc_rdma_write_lat", false),
    ("rc_rdma_write_poll_lat", false),
    ("uc_rdma_write_bw", false),
    ("uc_rdma_write_lat", false),
    ("uc_rdma_write_poll_lat", false),
    ("rc_compare_swap_mr", false),
    ("rc_fetch_add_mr", false),
    ("ver_rc_compare_swap", false),
    ("ver_rc_fetch_add", false),
];

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

/// Ranks of MPI: the device, the implementation, UCX's transports, the least nanoseconds that a
/// small message takes, and whether the quick run has them. (RC wires up by UD, which `rc` has and
/// `rc_verbs` has not.)
const RANKS: [(&[&str], Mpi, &str, u32, bool); 6] = [
    (ETHERNET, Mpi::Mpich, "rc,self", 0, true),
    (ETHERNET, Mpi::Mpich, "ud,self", 0, false),
    (ETHERNET, Mpi::OpenMpi, "rc,self", 0, true),
    (ETHERNET, Mpi::OpenMpi, "ud,self", 0, true),
    (LINK, Mpi::Mpich, "ud,self", 5_000, true),
    (LINK, Mpi::OpenMpi, "rc,self", 5_000, false),
];

/// All cases but pyverbs'.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (line, is_quick) in ALONE {
        cases.push(Case {
            name: line.to_owned(),
            device: ETHERNET,
            kind: Kind::Alone(words(line)),
            is_quick,
        });
    }
    let kind = Kind::Prints(words("ucx_info -d"), "Device: softdev0:1");
    cases.push(Case { name: "ucx_info -d".to_owned(), device: ETHERNET, kind, is_quick: true });
    let kind = Kind::Compiled("opener.c");
    cases.push(Case { name: "opener (dlopen, dlvsym)".to_owned(), device: ETHERNET, kind, is_quick: true });
    for (device, mpi, transports, least_ns, is_quick) in RANKS {
        let line = format!("UCX_TLS={transports} mpirun.{} -np 2 pingpong", mpi.suffix());
        let kind = Kind::Ranks { mpi, transports, least_ns };
        cases.push(Case { name: name(device, &line), device, kind, is_quick });
    }
    for (program, mode, is_quick) in PINGPONG {
        push_pair(&mut cases, ETHERNET, &format!("{program} {mode}"), is_quick);
    }
    for program in ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"] {
        push_pair(&mut cases, INFINIBAND, program, false);
    }
    for (program, services) in PERFTEST {
        for service in services {
            for (arguments, programs, of, is_quick) in MODES {
                let is_named = programs.is_empty() || programs.iter().any(|name| program.contains(name));
                if is_named && of.contains(service) {
                    let service =
                        if arguments.contains("-c ") { String::new() } else { format!(" -c {service}") };
                    push_pair(&mut cases, ETHERNET, &format!("{program}{service} {arguments}"), is_quick);
                }
            }
        }
    }
    for line in ["ib_send_lat -c UD -n 1000", "ib_send_lat -c RC -n 1000", "ib_write_bw -c UC -n 1000"] {
        push_pair(&mut cases, INFINIBAND, line, false);
    }
    push_pair(&mut cases, NAMESPACE, "ibv_rc_pingpong -g 0", true);
    push_pair(&mut cases, TWO_DEVICES, "ib_send_lat -d softdev1 -n 1000", true);
    for (test, is_quick) in QPERF {
        push_qperf(&mut cases, INFINIBAND, test, is_quick);
    }
    push_qperf(&mut cases, ETHERNET, "rc_lat", false);
    push_qperf(&mut cases, ETHERNET, "ud_lat", false);
    push_qperf(&mut cases, ETHERNET, "rc_lat -cm 1", false);
    cases
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn name(device: &[&str], line: &str) -> String {
    device.iter().copied().chain([line]).collect::<Vec<_>>().join(" ")
}

/// A program that is its own server, with `-p` for its port.
fn push_pair(cases: &mut Vec<Case>, device: &'static [&'static str], line: &str, is_quick: bool) {
    let port = FIRST_PORT + cases.len() as u16;
    let server = words(&format!("{line} -p {port}"));
    let client = server.iter().cloned().chain([HERE.to_owned()]).collect();
    let kind = Kind::Pair { server, client, port, ends: true };
    cases.push(Case { name: name(device, line), device, kind, is_quick });
}

/// A test of qperf, whose server waits for more.
fn push_qperf(cases: &mut Vec<Case>, device: &'static [&'static str], test: &str, is_quick: bool) {
    let port = FIRST_PORT + cases.len() as u16;
    let (test, options) = test.split_once(' ').unwrap_or((test, ""));
    let server = words(&format!("qperf -lp {port}"));
    let client = words(&format!("qperf -lp {port} -t 1 {options} {HERE} {test}"));
    let line = format!("qperf {test} {options}");
    let kind = Kind::Pair { server, client, port, ends: false };
    cases.push(Case { name: name(device, line.trim_end()), device, kind, is_quick });
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
        let port = |case: &Case| match case.kind {
            Kind::Pair { port, .. } => Some(port),
            Kind::Alone(_) | Kind::Prints(..) | Kind::Compiled(_) | Kind::Ranks { .. } => None,
        };
        let ports: Vec<_> = cases.iter().filter_map(port).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
        assert!(names.iter().any(|name| *name == "ib_send_lat -c UD -n 1000"));
        assert!(
            !names.iter().any(|name| name.contains("ib_write_bw -c UD") || name.contains("read_bw -c UC"))
        );
    }

    #[test]
    fn every_mode_meets_a_program() {
        let cases = cases();
        for (arguments, ..) in MODES {
            assert!(cases.iter().any(|case| case.name.ends_with(arguments)), "{arguments}");
        }
    }
}
