//! Benchmarks and options of the OSU benchmarks, the Intel MPI Benchmarks (IMB) and perftest that
//! rdmascope does not have, and what to do instead.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::failure::Usage;

/// A benchmark of perftest, and the command that measures the same.
macro_rules! perftest {
    ($name:literal, $ours:literal) => {
        (
            $name,
            concat!(
                "rdmascope ",
                $ours,
                " measures the same and takes its options; add the name of the server, or --local"
            ),
        )
    };
}

/// Benchmarks that rdmascope does not have, and the command that comes closest.
pub(super) const NEAR: [(&str, &str); 14] = [
    perftest!("ib_atomic_bw", "bw atomic"),
    perftest!("ib_atomic_lat", "lat atomic"),
    perftest!("ib_read_bw", "bw read"),
    perftest!("ib_read_lat", "lat read"),
    perftest!("ib_send_bw", "bw send"),
    perftest!("ib_send_lat", "lat send"),
    perftest!("ib_write_bw", "bw write"),
    perftest!("ib_write_lat", "lat write"),
    (
        "Biband",
        "its two ranks answer each other's windows together; the closest is rdmascope bw mpi --bidirectional",
    ),
    (
        "Exchange",
        "it exchanges messages with both neighbours of a ring; the closest is rdmascope halo mpi --grid 1xN",
    ),
    (
        "PingPing",
        "both ranks first send and then receive; the closest is rdmascope bw mpi --bidirectional --tx-depth 1",
    ),
    ("Sendrecv", "it shifts messages around a ring; the closest is rdmascope halo sendrecv --grid 1xN"),
    ("osu_latency_persistent", "it is an axis in rdmascope; use rdmascope osu_latency --mpi-call persistent"),
    (
        "osu_put_bibw",
        "it has two fences for each window, rdmascope one; the closest is rdmascope osu_put_bw --bidirectional --mpi-sync \
         fence",
    ),
];

/// An option that rdmascope does not have: its letter, its long name, whether it has a value, and
/// what to do instead.
pub(super) type Refused = (Option<char>, &'static str, bool, &'static str);

/// Returns hidden flags for options that are refused, with the reason, once they are given.
pub(super) fn args(refused: impl Iterator<Item = &'static Refused>) -> impl Iterator<Item = Arg> {
    refused.map(|(letter, long, has_value, instead)| {
        let arg = Arg::new(*long).long(*long).short(*letter).hide(true).help(*instead);
        match has_value {
            true => arg.num_args(0..=1).action(ArgAction::Append),
            false => arg.num_args(0..=1).require_equals(true).action(ArgAction::Append),
        }
    })
}

/// Returns the first of the options that is given.
pub(super) fn given(
    mut refused: impl Iterator<Item = &'static Refused>,
    flags: &ArgMatches,
) -> Option<&'static Refused> {
    refused.find(|(_, long, ..)| flags.value_source(long) == Some(ValueSource::CommandLine))
}

/// Adds the options of perftest that a benchmark of verbs accepts without an effect, or refuses, as
/// hidden flags. Their letters mean what they mean in perftest, and not an axis of other endpoints.
pub(super) fn with_perftest(command: Command) -> Command {
    let letters: Vec<char> = PERFTEST_REFUSED.iter().filter_map(|(letter, ..)| *letter).collect();
    let command = command.mut_args(|arg| match arg.get_short() {
        Some(letter) if arg.is_hide_set() && letters.contains(&letter) => arg.short(None),
        _ => arg,
    });
    let ignored = PERFTEST_IGNORED
        .map(|(letter, long)| Arg::new(long).long(long).short(letter).hide(true).action(ArgAction::SetTrue));
    command.args(ignored).args(args(PERFTEST_REFUSED.iter()))
}

/// Returns why an option of perftest among the flags of a benchmark is refused.
pub(crate) fn perftest_refusal(flags: &ArgMatches) -> Option<Usage> {
    let (letter, long, _, instead) = given(PERFTEST_REFUSED.iter(), flags)?;
    let flag = letter.map_or_else(|| format!("--{long}"), |letter| format!("-{letter} (--{long})"));
    Some(Usage(format!("perftest's {flag} is not supported: {instead}")))
}

/// A benchmark never warns of the governor of the CPUs, and has no peak bandwidth.
const PERFTEST_IGNORED: [(char, &str); 2] = [('F', "CPU-freq"), ('N', "noPeak")];

pub(super) const PERFTEST_REFUSED: [Refused; 47] = [
    (None, "csv", false, "--out DIR keeps the record, and rdmascope export DIR writes CSV"),
    (Some('C'), "report-cycles", false, "times are in us: leave it out"),
    (
        Some('H'),
        "report-histogram",
        false,
        "--out DIR keeps the samples of latencies and writes a report with histograms",
    ),
    (Some('L'), "hop_limit", true, "the hop limit cannot be set: leave it out"),
    (Some('M'), "MGID", true, "rdmascope fan-out multicast measures multicast"),
    (Some('O'), "dualport", false, "measure one port after the other: -i 1, then -i 2"),
    (Some('T'), "tos", true, "--tclass sets the traffic class"),
    (
        Some('U'),
        "report-unsorted",
        false,
        "--out DIR keeps the samples of latencies in the order of the messages",
    ),
    (Some('V'), "version", false, "use rdmascope --version"),
    (Some('W'), "report-counters", true, "--out DIR records how the counters of the ports changed"),
    (Some('X'), "vector", true, "the completion vector cannot be set: leave it out"),
    (Some('f'), "margin", true, "--warmup N sets how many messages are not measured"),
    (Some('g'), "mcg", false, "rdmascope fan-out multicast measures multicast"),
    (Some('u'), "qp-timeout", true, "the timeout is always 14, perftest's default: leave it out"),
    (Some('w'), "limit_bw", true, "--expect 'throughput >= 10 Gb/s' checks a limit"),
    (Some('y'), "limit_msgrate", true, "--expect 'message_rate >= 2 Mmsg/s' checks a limit"),
    (Some('z'), "com_rdma_cm", false, "both programs talk over TCP: leave it out"),
    (None, "burst_size", true, "rdmascope open-loop send sends at a set rate"),
    (None, "cpu_util", false, "--out DIR records the CPU time of both ranks"),
    (None, "disable_pcie_relaxed", false, "the device's default stays: leave it out"),
    (None, "dlid", true, "the LID is that of the peer: leave it out"),
    (None, "dont_xchg_versions", false, "versions are always compared: leave it out"),
    (None, "force-link", true, "the link layer is that of the port: leave it out"),
    (None, "inline_recv", true, "receives are never inline: leave it out"),
    (None, "latency_gap", true, "rdmascope one-way send --pause waits between messages"),
    (None, "mmap", true, "messages are in the memory of --memory: leave it out"),
    (None, "mmap-offset", true, "messages are in the memory of --memory: leave it out"),
    (None, "mr_per_qp", false, "the number of memory regions cannot be set: leave it out"),
    (None, "odp", false, "memory is always pinned: leave it out"),
    (None, "output", true, "--out DIR writes all numbers as JSON"),
    (None, "perform_warm_up", false, "a tenth of the messages warms up: leave it out, or use --warmup N"),
    (None, "rate_limit", true, "rdmascope open-loop send --rate sends at a set rate"),
    (None, "rate_limit_type", true, "rdmascope open-loop send --rate sends at a set rate"),
    (None, "rate_units", true, "rdmascope open-loop send --rate sends at a set rate"),
    (None, "recv_post_list", true, "the length of lists of receives cannot be set: leave it out"),
    (None, "report-both", false, "both directions and their total have columns: leave it out"),
    (None, "report-per-port", false, "measure one port after the other: -i 1, then -i 2"),
    (None, "retry_count", true, "the retry count is always 7, perftest's default: leave it out"),
    (None, "reversed", false, "exchange the hosts"),
    (None, "run_infinitely", false, "-D TIME sets how long it runs"),
    (None, "source_ip", true, "the routing table chooses the address: leave it out"),
    (None, "typical_pkt_size", true, "rdmascope open-loop send --rate sends at a set rate"),
    (None, "use-srq", false, "each queue pair has its own receive queue: leave it out"),
    (None, "use_cuda", true, "messages are in the memory of --memory: leave it out"),
    (None, "use_hugepages", false, "messages are in pages of the usual size: leave it out"),
    (None, "use_old_post_send", false, "messages are always posted with ibv_post_send: leave it out"),
    (None, "wait_destroy", true, "resources are destroyed at once: leave it out"),
];

pub(super) const OSU_REFUSED: [Refused; 20] = [
    (Some('D'), "ddt", true, "messages are contiguous bytes: leave it out"),
    (Some('G'), "graph", true, "--out DIR writes a report with figures"),
    (Some('I'), "session", false, "MPI is initialised by MPI_Init_thread: leave it out"),
    (Some('M'), "mem-limit", true, "limit the sizes with -m MIN:MAX"),
    (Some('N'), "nhbr", true, "rdmascope halo neighbour measures neighbourhood collectives"),
    (Some('P'), "papi", true, "run rdmascope under perf stat"),
    (Some('R'), "print-rate", true, "the message rate is always a column: leave it out"),
    (Some('V'), "vary-window", true, "--tx-depth 1,16,64 measures several windows in turn"),
    (Some('a'), "array-size", true, "rdmascope does not clear caches: leave it out"),
    (
        Some('b'),
        "buffer-num",
        true,
        "each message of a window has its own buffer, as with -b multiple: leave it out",
    ),
    (
        Some('c'),
        "validation",
        false,
        "puts, gets and collectives are always verified, sends never: leave it out",
    ),
    (Some('d'), "accelerator", true, "messages are in host memory: leave it out"),
    (Some('f'), "full", false, "minimum and maximum are always columns: leave it out"),
    (Some('k'), "root-rank", true, "the root is rank 0: leave it out"),
    (Some('l'), "in-place", false, "send and receive buffers are always separate: leave it out"),
    (Some('r'), "cuda-target", true, "messages are in host memory: leave it out"),
    (Some('t'), "num-test-calls", true, "--mpi-tests N sets that for nonblocking collectives"),
    (
        Some('u'),
        "validation-warmup",
        true,
        "contents are verified once, after the last iteration: leave it out",
    ),
    (Some('v'), "version", false, "use rdmascope --version"),
    (Some('z'), "tail-lat", false, "t_99 and t_99.9 are always columns: leave it out"),
];

pub(super) const IMB_REFUSED: [Refused; 23] = [
    (None, "npmin", true, "list the numbers of ranks: --ranks 2,4"),
    (None, "multi", true, "rdmascope osu_multi_lat --pairs N measures several pairs at once"),
    (None, "msglen", true, "--size takes a list such as 8,100,4096"),
    (None, "msgsize", true, "--size takes a list such as 8,100,4096"),
    (None, "mem", true, "limit the sizes with -msglog MIN:MAX"),
    (None, "time", true, "--duration SECONDS, instead of -iter, sets the time for each size"),
    (None, "iter_policy", true, "every size has the iterations of -iter: leave it out"),
    (None, "off_cache", true, "rdmascope does not clear caches: leave it out"),
    (None, "warm_up", true, "--warmup N sets the number of warm-up calls"),
    (None, "sync", true, "--start sets how the ranks start each call"),
    (None, "imb_barrier", true, "--start own_barrier starts each call after a barrier of rdmascope"),
    (None, "map", true, "--mpi-map places the ranks"),
    (None, "window_size", true, "it has no windows: leave it out"),
    (None, "data_type", true, "messages are bytes: leave it out"),
    (None, "red_data_type", true, "--datatype float, double or int32 sets the type that is reduced"),
    (None, "contig_type", true, "messages are contiguous bytes: leave it out"),
    (None, "root_shift", true, "the root is rank 0: leave it out"),
    (None, "msg_pause", true, "sizes follow each other without a pause: leave it out"),
    (None, "aggregate_mode", true, "each put or get is completed separately: leave it out"),
    (None, "mem_alloc_type", true, "messages are in host memory: leave it out"),
    (None, "thread_level", true, "one thread of each rank calls MPI: leave it out"),
    (None, "include", true, "each benchmark is a separate command, such as rdmascope Allreduce"),
    (None, "exclude", true, "each benchmark is a separate command, such as rdmascope Allreduce"),
];

/// What to do instead in benchmarks of two ranks, by option.
pub(super) const IMB_OF_TWO: [(&str, &str); 3] = [
    ("imb_barrier", "there is no barrier between its messages: leave it out"),
    ("npmin", "it has two ranks: leave it out"),
    ("sync", "there is no barrier between its messages: leave it out"),
];
/// The same for benchmarks of pairs.
pub(super) const IMB_OF_PAIRS: [(&str, &str); 2] = [
    ("multi", "--pairs N measures several pairs at once"),
    ("npmin", "list the numbers of pairs: --pairs 1,2"),
];
/// The same for collectives, in which all ranks are one group.
pub(super) const IMB_OF_ALL: [(&str, &str); 1] = [("multi", "all ranks are one group: leave it out")];
