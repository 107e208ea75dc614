//! The programs that run, with their arguments, and the programs of the quick run.

mod case;
mod manager;
mod perftest;
mod upper;

use case::{Cases, ETHERNET, INFINIBAND, NAMESPACE, words};

pub(super) use case::{Case, INTERFACE, Kind, Mpi, Pair, Ranks, Ready};

/// The pingpong programs of rdma-core with their modes on Ethernet, and whether the quick run has
/// them.
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

/// Programs without a server.
const ALONE: [(&str, bool); 3] = [("ibv_devices", true), ("ibv_devinfo -v", true), ("ibv_devinfo -l", false)];

/// All cases but the Python tests.
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

#[cfg(test)]
mod tests {
    use super::case::Lines;
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
        // Fixed ports of programs are below 21000.
        let ports: Vec<_> = cases.iter().filter_map(port).filter(|port| *port >= 21_000).collect();
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
