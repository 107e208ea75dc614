//! What the OSU benchmarks and the Intel MPI Benchmarks (IMB) have and we do not, and what to do
//! instead.

/// Benchmarks of which we have no equal, and what is near.
pub(super) const NEAR: [(&str, &str); 6] = [
    ("Biband", "its two ends answer each other's windows together: near is rdmascope bw mpi --bidirectional"),
    ("Exchange", "it exchanges with both neighbours of a ring: near is rdmascope halo mpi --grid 1xN"),
    (
        "PingPing",
        "both ranks send at once and receive then: near is rdmascope bw mpi --bidirectional --tx-depth 1",
    ),
    ("Sendrecv", "it shifts messages around a ring: near is rdmascope halo sendrecv --grid 1xN"),
    (
        "osu_latency_persistent",
        "rdmascope has it as an axis: give rdmascope osu_latency --mpi-call persistent",
    ),
    (
        "osu_put_bibw",
        "it has two fences for a window and ours one: near is rdmascope osu_put_bw --bidirectional --mpi-sync fence",
    ),
];

/// What both suites have and we do not, by what its flags are called: `-L` or `--long`, whether it
/// has a value, and what to do.
pub(super) type Refused = (Option<char>, &'static str, bool, &'static str);

pub(super) const OSU_REFUSED: [Refused; 20] = [
    (Some('D'), "ddt", true, "messages are bytes without gaps: leave it out"),
    (Some('G'), "graph", true, "--out DIR writes a report with figures"),
    (Some('I'), "session", false, "MPI is initialised by MPI_Init_thread: leave it out"),
    (Some('M'), "mem-limit", true, "end the sizes with -m MIN:MAX"),
    (Some('N'), "nhbr", true, "rdmascope halo neighbour measures neighbourhoods"),
    (Some('P'), "papi", true, "run it beneath perf stat"),
    (Some('R'), "print-rate", true, "the rate of messages is always a column: leave it out"),
    (Some('V'), "vary-window", true, "--tx-depth 1,16,64 measures several windows in turn"),
    (Some('a'), "array-size", true, "caches stay as the calls leave them: leave it out"),
    (
        Some('b'),
        "buffer-num",
        true,
        "each message of a window has memory of its own, as with multiple: leave it out",
    ),
    (
        Some('c'),
        "validation",
        false,
        "contents of puts, gets and collectives are always verified, those of sends never: leave it out",
    ),
    (Some('d'), "accelerator", true, "messages are in the memory of the host: leave it out"),
    (Some('f'), "full", false, "minimum and maximum are always columns: leave it out"),
    (Some('k'), "root-rank", true, "the root is rank 0: leave it out"),
    (
        Some('l'),
        "in-place",
        false,
        "what is sent and what is received have memory of their own: leave it out",
    ),
    (Some('r'), "cuda-target", true, "messages are in the memory of the host: leave it out"),
    (Some('t'), "num-test-calls", true, "--mpi-tests N does that within a nonblocking collective"),
    (
        Some('u'),
        "validation-warmup",
        true,
        "contents are verified once, after the last iteration: leave it out",
    ),
    (Some('v'), "version", false, "rdmascope --version prints it"),
    (Some('z'), "tail-lat", false, "t_99 and t_99.9 are always columns: leave it out"),
];

pub(super) const IMB_REFUSED: [Refused; 23] = [
    (None, "npmin", true, "give the numbers of ranks themselves: --ranks 2,4"),
    (None, "multi", true, "rdmascope osu_multi_lat --pairs N measures several pairs at once"),
    (None, "msglen", true, "--size takes a list such as 8,100,4096"),
    (None, "msgsize", true, "--size takes a list such as 8,100,4096"),
    (None, "mem", true, "end the sizes with -msglog MIN:MAX"),
    (None, "time", true, "--duration SECONDS measures for a time, instead of -iter"),
    (None, "iter_policy", true, "every size has as many iterations as -iter says: leave it out"),
    (None, "off_cache", true, "caches stay as the calls leave them: leave it out"),
    (None, "warm_up", true, "--warmup N says how many calls come before the first that counts"),
    (None, "sync", true, "--start says how the ranks begin each call"),
    (None, "imb_barrier", true, "--start own_barrier begins each call after a barrier of ours"),
    (None, "map", true, "--mpi-map places the ranks"),
    (None, "window_size", true, "it has no windows: leave it out"),
    (None, "data_type", true, "messages are bytes: leave it out"),
    (None, "red_data_type", true, "--datatype float, double or int32 says what is reduced"),
    (None, "contig_type", true, "messages are bytes without gaps: leave it out"),
    (None, "root_shift", true, "the root is rank 0: leave it out"),
    (None, "msg_pause", true, "sizes follow each other at once: leave it out"),
    (None, "aggregate_mode", true, "each put or get is completed by itself: leave it out"),
    (None, "mem_alloc_type", true, "messages are in the memory of the host: leave it out"),
    (None, "thread_level", true, "one thread of each rank calls MPI: leave it out"),
    (None, "include", true, "each benchmark is a command of its own: rdmascope Allreduce"),
    (None, "exclude", true, "each benchmark is a command of its own: rdmascope Allreduce"),
];

/// What else to do where the benchmark has but two ranks.
pub(super) const IMB_OF_TWO: [(&str, &str); 3] = [
    ("imb_barrier", "no barrier comes between its messages: leave it out"),
    ("npmin", "it has two ranks: leave it out"),
    ("sync", "no barrier comes between its messages: leave it out"),
];
/// The same where it has pairs.
pub(super) const IMB_OF_PAIRS: [(&str, &str); 2] = [
    ("multi", "--pairs N measures several pairs at once"),
    ("npmin", "give the numbers of pairs: --pairs 1,2"),
];
/// The same where all ranks are a group.
pub(super) const IMB_OF_ALL: [(&str, &str); 1] = [("multi", "all ranks are one group: leave it out")];
