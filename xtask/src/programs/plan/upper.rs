//! Programs above verbs and RDMA CM: libfabric, UCX, and MPI over both.

use super::case::{
    Cases, Device, ETHERNET, HERE, INFINIBAND, Kind, LINK, Lines, Mpi, PORT, Ranks, Ready, words,
};

/// Providers and endpoints of `fi_pingpong`, and whether the quick run has them.
const FABRICS: [(&str, bool); 8] = [
    ("-p verbs -e msg", true),
    ("-p verbs -e msg -c", false),
    ("-p verbs;ofi_rxm -e rdm", true),
    ("-p verbs;ofi_rxm -e rdm -m tagged", false),
    ("-p verbs;ofi_rxm -e rdm -c", false),
    ("-p verbs -e dgram", false),
    ("-p verbs -e dgram -c", false),
    ("-p verbs;ofi_rxd -e rdm", false),
];

/// Tests of UCX's upper layer (UCP) in `ucx_perftest`.
const UCP: [&str; 19] = [
    "tag_lat",
    "tag_bw",
    "tag_sync_lat",
    "tag_sync_bw",
    "ucp_put_lat",
    "ucp_put_bw",
    "ucp_get",
    "ucp_add",
    "ucp_fadd",
    "ucp_swap",
    "ucp_cswap",
    "stream_lat",
    "stream_bw",
    "ucp_am_lat",
    "ucp_am_bw",
    // Messages that need a rendezvous.
    "tag_lat -s 100000",
    "tag_bw -s 100000",
    "ucp_get -s 100000",
    "ucp_am_bw -s 100000",
];

/// Tests of UCX's lower layer (UCT) in `ucx_perftest`, by transport.
const UCT: [(&str, &[&str]); 2] = [
    (
        "rc",
        &[
            "am_lat",
            "am_lat -D zcopy",
            "am_bw",
            "put_lat",
            "put_bw",
            "get -D bcopy -s 100",
            "get -D zcopy -s 5000",
            "add_lat",
            "add_mr",
            "fadd",
            "swap",
            "cswap",
        ],
    ),
    ("ud", &["am_lat", "am_lat -D zcopy", "am_bw", "put_lat", "fadd"]),
];

/// UCX's transports. RC needs UD to connect: `rc` includes it, `rc_verbs` does not.
const TRANSPORTS: [&str; 2] = ["rc", "ud"];

/// Ranks of MPI that exchange messages of all sizes and time small ones: the device, the
/// implementation, UCX's transports, the least time of a small message in ns, and whether the quick
/// run has them.
const PINGPONG: [(Device, Mpi, &str, &str, bool); 6] = [
    (ETHERNET, Mpi::Mpich, "rc,self", "0", false),
    (ETHERNET, Mpi::Mpich, "ud,self", "0", false),
    (ETHERNET, Mpi::OpenMpi, "rc,self", "0", false),
    (ETHERNET, Mpi::OpenMpi, "ud,self", "0", false),
    (LINK, Mpi::Mpich, "ud,self", "5000", true),
    (LINK, Mpi::OpenMpi, "rc,self", "5000", false),
];

/// Ranks of MPI that verify messages, collective operations and one-sided access: the device, the
/// words of the name before the number of ranks, the transports, and whether the quick run has two
/// ranks.
const RANKS: [(Device, &str, Way, bool); 8] = [
    (ETHERNET, "UCX_TLS=rc,self mpirun.mpich", Way::Mpich("UCX_TLS=rc,self"), true),
    (ETHERNET, "UCX_TLS=ud,self mpirun.mpich", Way::Mpich("UCX_TLS=ud,self"), false),
    (ETHERNET, "UCX_TLS=rc,self mpirun.openmpi", Way::OpenMpiUcx("UCX_TLS=rc,self"), false),
    (ETHERNET, "UCX_TLS=ud,self mpirun.openmpi", Way::OpenMpiUcx("UCX_TLS=ud,self"), true),
    (INFINIBAND, "UCX_TLS=rc,self mpirun.mpich", Way::Mpich("UCX_TLS=rc,self"), false),
    (INFINIBAND, "UCX_TLS=ud,self mpirun.openmpi", Way::OpenMpiUcx("UCX_TLS=ud,self"), false),
    (ETHERNET, "mpirun.openmpi --mca mtl ofi", Way::Ofi, true),
    (INFINIBAND, "mpirun.openmpi --mca btl openib,self", Way::Openib, true),
];

/// The transports of an MPI.
#[derive(Clone, Copy)]
enum Way {
    /// MPICH over UCX with these transports.
    Mpich(&'static str),
    /// Open MPI over UCX with these transports.
    OpenMpiUcx(&'static str),
    /// Open MPI over libfabric's messages. It connects on demand.
    Ofi,
    /// Open MPI over verbs. It connects by its own datagrams, on InfiniBand only.
    Openib,
}

impl Way {
    fn mpi(self) -> Mpi {
        if matches!(self, Self::Mpich(_)) { Mpi::Mpich } else { Mpi::OpenMpi }
    }

    fn environment(self) -> Vec<&'static str> {
        match self {
            Self::Mpich(transports) => vec![transports],
            // Open MPI does not use UCX unless these lists have its transports and devices.
            Self::OpenMpiUcx(transports) => vec![
                transports,
                "OMPI_MCA_pml=ucx",
                "OMPI_MCA_osc=ucx",
                "OMPI_MCA_pml_ucx_tls=any",
                "OMPI_MCA_pml_ucx_devices=any",
            ],
            Self::Ofi => vec![
                "FI_PROVIDER=verbs;ofi_rxm",
                "OMPI_MCA_mtl_ofi_provider_include=verbs;ofi_rxm",
                "OMPI_MCA_pml=cm",
                "OMPI_MCA_mtl=ofi",
                "OMPI_MCA_btl=self",
                "OMPI_MCA_osc=pt2pt",
            ],
            Self::Openib => vec![
                "OMPI_MCA_pml=ob1",
                "OMPI_MCA_btl=openib,self",
                "OMPI_MCA_btl_openib_allow_ib=1",
                "OMPI_MCA_btl_openib_warn_no_device_params_found=0",
                // Prints why there is no transport; longer help is lost between the processes.
                "OMPI_MCA_btl_base_verbose=10",
            ],
        }
    }
}

/// Adds all cases.
pub(super) fn cases(cases: &mut Cases) {
    fabrics(cases);
    ucx(cases);
    for (device, mpi, transports, least_ns, is_quick) in PINGPONG {
        let variable = match transports {
            "rc,self" => "UCX_TLS=rc,self",
            _ => "UCX_TLS=ud,self",
        };
        let way = if mpi == Mpi::Mpich { Way::Mpich(variable) } else { Way::OpenMpiUcx(variable) };
        let line = format!("{variable} mpirun.{} -np 2 pingpong", mpi.suffix());
        let kind = ranks(way, "2", "pingpong.c", Some(least_ns));
        cases.push(device, &line, is_quick, kind);
    }
    for (device, line, way, is_quick) in RANKS {
        for count in ["2", "4"] {
            let line = format!("{line} -np {count} ranks");
            cases.push(device, &line, is_quick && count == "2", ranks(way, count, "ranks.c", None));
        }
    }
    let kind = ranks(Way::Openib, "2", "ranks.c", None);
    cases.push(ETHERNET, "mpirun.openmpi --mca btl openib,self -np 2 ranks", false, kind);
}

fn ranks(way: Way, count: &'static str, program: &'static str, argument: Option<&'static str>) -> Kind {
    let prints = if argument.is_none() { "verified" } else { "" };
    let environment = way.environment();
    Kind::Ranks(Ranks { mpi: way.mpi(), environment, count, program, argument, prints })
}

/// Adds the cases of libfabric, whose program has the options `-B` and `-P` for the server's port.
fn fabrics(cases: &mut Cases) {
    let kind = Kind::Prints(words("fi_info -p verbs"), "FI_PROTO_RDMA_CM_IB_RC");
    cases.push(ETHERNET, "fi_info -p verbs", true, kind);
    for (options, is_quick) in FABRICS {
        let line = format!("fi_pingpong {options}");
        let lines = Lines {
            server: &format!("{line} -B {PORT}"),
            client: &format!("{line} -P {PORT} {HERE}"),
            ready: &Ready::Socket,
        };
        cases.pair(ETHERNET, &line, is_quick, &lines, true);
    }
}

fn ucx(cases: &mut Cases) {
    let kind = Kind::Prints(words("ucx_info -d"), "Device: softdev0:1");
    cases.push(ETHERNET, "ucx_info -d", true, kind);
    for transport in TRANSPORTS {
        for test in UCP {
            let line = format!("UCX_TLS={transport} ucx_perftest -t {test}");
            perftest(cases, &line, &format!("env {line}"), test == "tag_lat");
        }
        for interface in ["stream", "tag", "am"] {
            let line = format!("UCX_TLS={transport} ucp_client_server -c {interface}");
            let server = format!("env UCX_SOCKADDR_TLS_PRIORITY=rdmacm {line} -i 10 -p {PORT}");
            let client = &format!("{server} -a {HERE}");
            let is_quick = transport == "rc" && interface == "tag";
            let lines = Lines { server: &server, client, ready: &Ready::Manager };
            cases.pair(ETHERNET, &line, is_quick, &lines, false);
        }
    }
    for (transport, tests) in UCT {
        for test in tests {
            let line = format!("ucx_perftest -d softdev0:1 -x {transport}_verbs -t {test}");
            perftest(cases, &line, &line, false);
        }
    }
}

/// Adds a test of `ucx_perftest`.
fn perftest(cases: &mut Cases, name: &str, line: &str, is_quick: bool) {
    let server = format!("{line} -n 100 -w 10 -p {PORT}");
    let lines = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Socket };
    cases.pair(ETHERNET, name, is_quick, &lines, true);
}
