//! The comparisons: tests of other tools, the equivalent benchmark of rdmascope, and the sizes.

/// How much is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Amount {
    Full,
    Quick,
}

/// The tool that is compared with rdmascope.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tool {
    /// The Intel MPI Benchmarks.
    Imb,
    Iperf3,
    /// The loop of `pingpong.c`.
    Linked,
    Osu,
    Perftest,
    Qperf,
    Sockperf,
}

/// The quantity that is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quantity {
    /// CPU time of both ranks for 2^20 bytes, in ns.
    Cost,
    /// Median latency in ns.
    Latency,
    /// Mean latency in ns, for tools that print no median.
    MeanLatency,
    /// The mean over the ranks of each rank's mean time in a collective operation, in ns.
    MeanOfRanks,
    /// Messages per second.
    Rate,
}

/// Where a test is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    /// Both ranks on one CPU of the virtual machine, whose clock counts instructions: equal runs
    /// take equal times. For operations that need one rank only, such as reads, and for ranks that
    /// sleep until events.
    Counted,
    /// Both ranks poll, on one CPU each, with the host's clock.
    Timed,
    /// The same on softdev of this host, where the other tool runs under `rdmascope exec`.
    Native,
    /// Sockets over the loopback of this host; both ranks sleep until data arrives.
    Sockets,
    /// The same on one CPU whose clock counts instructions: the time that a message takes in both
    /// ranks and in the kernel.
    SocketsCounted,
    /// MPI between two CPUs of this host, by each MPI's own transport.
    Mpi,
}

impl Part {
    pub(super) const ALL: [Self; 6] =
        [Self::Counted, Self::Timed, Self::Native, Self::SocketsCounted, Self::Sockets, Self::Mpi];

    /// Whether `--device` selects the device.
    pub(super) fn is_of_device(self) -> bool {
        matches!(self, Self::Counted | Self::Timed)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Timed => "timed",
            Self::Native => "native",
            Self::Sockets => "sockets",
            Self::SocketsCounted => "sockets-counted",
            Self::Mpi => "mpi",
        }
    }

    /// Whether the clock counts instructions.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Counted | Self::SocketsCounted)
    }

    /// Whether the part runs in a virtual machine.
    pub(super) fn is_booted(self) -> bool {
        self.is_counted() || self == Self::Timed
    }

    /// Whether sockets carry the messages.
    pub(super) fn is_of_sockets(self) -> bool {
        matches!(self, Self::Sockets | Self::SocketsCounted)
    }

    /// The CPUs of the client (rdmascope's rank 0) and the server (rank 1).
    pub(super) fn cpus(self) -> [&'static str; 2] {
        match self {
            Self::Counted | Self::SocketsCounted => ["0", "0"],
            Self::Timed | Self::Native | Self::Sockets | Self::Mpi => ["0", "1"],
        }
    }
}

/// A test of another tool with one size, and the equivalent benchmark of rdmascope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) part: Part,
    pub(super) tool: Tool,
    /// The tool's name of the test.
    pub(super) test: &'static str,
    /// The service of the queue pairs, or the MPI.
    pub(super) service: &'static str,
    pub(super) quantity: Quantity,
    /// Whether both ranks sleep until events.
    pub(super) has_events: bool,
    /// The arguments of rdmascope, such as `lat send`, for the equivalent benchmark.
    pub(super) ours: &'static [&'static str],
    pub(super) size_bytes: u64,
    pub(super) messages: u64,
}

impl Point {
    /// Whether the point is a latency on a clock that counts instructions: a histogram would add
    /// its own.
    pub(super) fn is_counted_latency(&self) -> bool {
        self.part == Part::SocketsCounted
            && matches!(self.quantity, Quantity::Latency | Quantity::MeanLatency)
    }
}

/// The number of messages of a point. An emulated machine moves some tens of megabytes per second,
/// so large messages are few. On softdev and MPI, rates need more messages.
fn messages(part: Part, size: u64, quantity: Quantity) -> u64 {
    match (quantity, size) {
        (Quantity::Rate, _) if part == Part::Mpi => 320_000,
        _ if part == Part::Mpi => 100_000,
        (Quantity::Rate, 0..8192) if part == Part::Native => 500_000,
        (Quantity::Rate, _) if part == Part::Native => 20_000,
        (_, 0..8192) if part == Part::Native => 50_000,
        (..) if part == Part::Native => 10_000,
        (Quantity::Latency | Quantity::MeanLatency, _) if part == Part::SocketsCounted => 20_000,
        (Quantity::Latency | Quantity::MeanLatency | Quantity::MeanOfRanks, 0..8192) => 2000,
        (Quantity::Latency | Quantity::MeanLatency | Quantity::MeanOfRanks, _) => 300,
        (Quantity::Rate | Quantity::Cost, 0..8192) => 3000,
        (Quantity::Rate | Quantity::Cost, _) => 300,
    }
}

/// A test: tool, name, service, quantity, whether both ranks sleep until events, and the arguments
/// of rdmascope.
type Test = (Tool, &'static str, &'static str, Quantity, bool, &'static [&'static str]);

/// The tests of a part.
fn tests(part: Part) -> Vec<Test> {
    use Quantity::{Cost, Latency, MeanLatency, Rate};
    use Tool::{Iperf3, Perftest, Qperf, Sockperf};
    // qperf creates no address handles with global routes, so on Ethernet only its RC tests run,
    // through RDMA CM. It prints only means. On one CPU, most of its connections are rejected.
    match part {
        Part::Mpi => ["openmpi", "mpich"].into_iter().flat_map(tests_of_mpi).collect(),
        Part::Counted => vec![
            (Perftest, "ib_send_lat", "RC", Latency, true, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UC", Latency, true, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UD", Latency, true, &["lat", "send"]),
            (Perftest, "ib_read_lat", "RC", Latency, false, &["lat", "read"]),
            (Perftest, "ib_atomic_lat", "RC", Latency, false, &["lat", "atomic"]),
            (Perftest, "ib_send_bw", "RC", Rate, true, &["bw", "send"]),
            (Perftest, "ib_send_bw", "UC", Rate, true, &["bw", "send"]),
            (Perftest, "ib_send_bw", "UD", Rate, true, &["bw", "send"]),
            (Perftest, "ib_write_bw", "RC", Rate, false, &["bw", "write"]),
            (Perftest, "ib_read_bw", "RC", Rate, false, &["bw", "read"]),
        ],
        Part::Native => vec![
            (Perftest, "ib_send_lat", "RC", Latency, false, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UC", Latency, false, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UD", Latency, false, &["lat", "send"]),
            (Perftest, "ib_write_lat", "RC", Latency, false, &["lat", "write"]),
            (Perftest, "ib_read_lat", "RC", Latency, false, &["lat", "read"]),
            (Perftest, "ib_atomic_lat", "RC", Latency, false, &["lat", "atomic"]),
            (Perftest, "ib_send_bw", "RC", Rate, false, &["bw", "send"]),
            (Perftest, "ib_write_bw", "RC", Rate, false, &["bw", "write"]),
            (Perftest, "ib_read_bw", "RC", Rate, false, &["bw", "read"]),
        ],
        Part::Sockets | Part::SocketsCounted => vec![
            (Sockperf, "sockperf tcp", "", Latency, false, &["lat", "tcp"]),
            (Sockperf, "sockperf udp", "", Latency, false, &["lat", "udp"]),
            (Qperf, "tcp_lat", "", MeanLatency, false, &["lat", "tcp"]),
            (Qperf, "udp_lat", "", MeanLatency, false, &["lat", "udp"]),
            (Iperf3, "iperf3 tcp", "", Rate, false, &["bw", "tcp"]),
            (Iperf3, "iperf3 tcp CPU", "", Cost, false, &["bw", "tcp"]),
            (Iperf3, "iperf3 udp", "", Rate, false, &["bw", "udp"]),
            (Iperf3, "iperf3 udp CPU", "", Cost, false, &["bw", "udp"]),
        ],
        Part::Timed => vec![
            (Perftest, "ib_send_lat", "RC", Latency, false, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UC", Latency, false, &["lat", "send"]),
            (Perftest, "ib_send_lat", "UD", Latency, false, &["lat", "send"]),
            (Perftest, "ib_write_lat", "RC", Latency, false, &["lat", "write"]),
            (Perftest, "ib_write_lat", "UC", Latency, false, &["lat", "write"]),
            (Perftest, "ib_send_bw", "RC", Rate, false, &["bw", "send"]),
            // Without acknowledgements, rdmascope's target confirms that all messages have arrived.
            (Perftest, "ib_write_bw", "UC", Rate, false, &["bw", "write"]),
            (Qperf, "rc_lat", "RC", MeanLatency, false, &["lat", "send", "-R"]),
            (Qperf, "rc_rdma_write_poll_lat", "RC", MeanLatency, false, &["lat", "write", "-R"]),
            (Qperf, "rc_rdma_read_lat", "RC", MeanLatency, false, &["lat", "read", "-R"]),
            (Qperf, "rc_bw", "RC", Rate, false, &["bw", "send", "-R"]),
            (Qperf, "rc_rdma_write_bw", "RC", Rate, false, &["bw", "write", "-R"]),
            (Qperf, "rc_rdma_read_bw", "RC", Rate, false, &["bw", "read", "-R"]),
        ],
    }
}

/// The tests of an MPI. The OSU Micro-Benchmarks have barriers between round trips of pairs,
/// between windows and before each collective operation. The Intel MPI Benchmarks have a barrier
/// after each collective operation (`-sync on`, the default), outside of the time; rdmascope by
/// default has one before each operation.
fn tests_of_mpi(mpi: &'static str) -> Vec<Test> {
    use Quantity::{MeanLatency, MeanOfRanks, Rate};
    use Tool::{Imb, Linked, Osu};
    const LATENCY: &[&str] = &["lat", "mpi"];
    const PAIRS: &[&str] = &["pairs", "mpi", "--pairs", "1"];
    const FLOOD: &[&str] = &["bw", "mpi", "--tx-depth", "64"];
    const PAIRS_FLOOD: &[&str] = &["pairs", "mpi", "--pairs", "1", "--stream", "--tx-depth", "64"];
    const ALLGATHER: &[&str] = &["collective", "allgather", "--ranks", "2"];
    const ALLREDUCE: &[&str] = &["collective", "allreduce", "--ranks", "2"];
    vec![
        (Linked, "linked", mpi, MeanLatency, false, LATENCY),
        (Osu, "osu_latency", mpi, MeanLatency, false, LATENCY),
        (Imb, "IMB PingPong", mpi, MeanLatency, false, LATENCY),
        (Osu, "osu_multi_lat", mpi, MeanLatency, false, PAIRS),
        (Osu, "osu_bw", mpi, Rate, false, FLOOD),
        (Osu, "osu_mbw_mr", mpi, Rate, false, PAIRS_FLOOD),
        (Osu, "osu_allgather", mpi, MeanOfRanks, false, ALLGATHER),
        (Osu, "osu_allreduce", mpi, MeanOfRanks, false, ALLREDUCE),
        (Imb, "IMB Allreduce", mpi, MeanOfRanks, false, ALLREDUCE),
    ]
}

/// The sizes of a test in bytes. A datagram is one packet: at most 1024 B on an interface with an
/// MTU of 1500. An atomic has 8 B. A quick round only checks that every test prints numbers, for
/// which one size is enough.
fn sizes(amount: Amount, service: &str, ours: &[&str]) -> &'static [u64] {
    match (amount, service) {
        _ if ours.contains(&"atomic") => &[8],
        (Amount::Full, "mpich" | "openmpi") => &[8, 4096],
        (Amount::Quick, "mpich" | "openmpi") => &[8],
        // Streams of UDP: a datagram that fits one Ethernet frame, and one that fits one frame of
        // the loopback.
        (Amount::Full, "") if *ours == ["bw", "udp"] => &[1452, 16384],
        (Amount::Quick, "") if *ours == ["bw", "udp"] => &[1452],
        // iperf3 writes 128 KiB at once.
        (Amount::Full, "") if *ours == ["bw", "tcp"] => &[16384, 131_072],
        (Amount::Quick, "") if *ours == ["bw", "tcp"] => &[131_072],
        (Amount::Full, "") => &[64, 1024, 16384],
        (Amount::Full, "UD") => &[2, 64, 512, 1024],
        (Amount::Full, _) => &[2, 64, 512, 1024, 4096, 16384, 65536],
        (Amount::Quick, _) => &[64],
    }
}

/// All points of the tests whose name contains `only`.
pub(super) fn points(part: Part, amount: Amount, only: &str) -> Vec<Point> {
    let mut points = Vec::new();
    for (tool, test, service, quantity, has_events, ours) in tests(part) {
        let is_quick = match (part, tool) {
            (Part::Native, _) => test.starts_with("ib_send"),
            (_, Tool::Imb | Tool::Linked | Tool::Osu) => true,
            (_, Tool::Iperf3 | Tool::Perftest | Tool::Sockperf) => true,
            (_, Tool::Qperf) => part.is_of_sockets() || ["rc_lat", "rc_bw"].contains(&test),
        };
        if (amount == Amount::Full || is_quick) && test.contains(only) {
            let of = sizes(amount, service, ours).iter().map(|&size_bytes| {
                let messages = messages(part, size_bytes, quantity);
                Point { part, tool, test, service, quantity, has_events, ours, size_bytes, messages }
            });
            points.extend(of);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_their_services() {
        for amount in [Amount::Full, Amount::Quick] {
            let points = points(Part::Counted, amount, "");
            let of = |service: &'static str| points.iter().filter(move |point| point.service == service);
            assert!(of("UD").all(|point| point.size_bytes <= 1024));
            let largest = if amount == Amount::Full { 65536 } else { 64 };
            assert_eq!(of("RC").map(|point| point.size_bytes).max(), Some(largest));
            let mut atomics = points.iter().filter(|point| point.test == "ib_atomic_lat");
            assert_eq!((atomics.next().unwrap().size_bytes, atomics.next().is_none()), (8, true));
        }
        assert!(points(Part::Native, Amount::Full, "").iter().all(|point| point.messages >= 10_000));
        let writes = points(Part::Timed, Amount::Full, "write_lat");
        assert!(writes.len() == 14 && writes.iter().all(|point| point.test == "ib_write_lat"));
    }

    #[test]
    fn ends_that_share_a_cpu_do_not_both_poll() {
        for point in points(Part::Counted, Amount::Full, "") {
            let is_alone =
                ["read", "write", "atomic"].contains(&point.ours[1]) && point.ours[..2] != ["lat", "write"];
            assert!(point.has_events || is_alone, "{point:?}");
        }
    }
}
