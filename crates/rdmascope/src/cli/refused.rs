//! Benchmarks and options of the OSU benchmarks and the Intel MPI Benchmarks (IMB) that rdmascope
//! does not have, and what to do instead.

/// Benchmarks that rdmascope does not have, and the command that comes closest.
pub(super) const NEAR: [(&str, &str); 6] = [
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
