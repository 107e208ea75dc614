//! The table of all axes, by name. The doc comment of a row is also its help.

use measure::conditions::IpoibMode;

use super::key::Key;
use super::kind::Kind;
use super::row::{AxisRow, Flag, Shown, Walk};
use crate::point::{
    Algorithm, Blocks, Carrier, Checksum, Choice, Collective, CollectiveCall, Element, Family, Filling, Flow,
    Grid, HaloMethod, Injection, LinkLayer, Load, Memory, Mesh, MpiCall, MpiMap, MpiOperation, MpiSync,
    MpiTransport, Notify, Operation, Place, Poll, Protocol, QueuePoll, Reduction, Service, Setup, Signal,
    Sink, Stamp, Start, Step, Timer, Tool, Traffic, VALUES_MAX,
};

/// Defines the key of each axis with its row, and the list of all rows.
macro_rules! axes {
    ($($(#[doc = $documentation:literal])+ $key:ident: $value:ty = $row:expr;)+) => {
        $(
            $(#[doc = $documentation])+
            pub const $key: Key<$value> = {
                static ROW: AxisRow = $row.documented(concat!($($documentation),+));
                Key::new(&ROW)
            };
        )+

        /// Every axis.
        pub static ROWS: [&AxisRow; NAMES.len()] = [$($key.row),+];

        /// The names of all axes, which plans, records and exports share.
        pub const NAMES: [&str; [$(stringify!($key)),+].len()] = [$($key.row.name),+];
    };
}

/// An axis of all endpoints.
const ANY: fn(Carrier) -> bool = |_| true;
/// An axis of the endpoints that carry files.
const TRANSFERS: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || carrier == Carrier::Tcp;
/// An axis of the endpoints that post or send several messages by one call.
const LISTS: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || carrier.is_datagram();
/// An axis of the endpoints that use a network link.
const LINKS: fn(Carrier) -> bool = |carrier| carrier.is_internet() || carrier.is_verbs();
/// An axis of the endpoints that may use an RDMA device.
const DEVICES: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || LAUNCHED(carrier);
/// An axis of ranks that a launcher of MPI starts.
const LAUNCHED: fn(Carrier) -> bool = |carrier| carrier.is_mpi() || carrier.is_program();
/// An axis of TCP.
const TCP: fn(Carrier) -> bool = |carrier| carrier == Carrier::Tcp;
/// An axis of UDP.
const UDP: fn(Carrier) -> bool = |carrier| carrier == Carrier::Udp;
/// An axis of the endpoints that may delay small segments.
const SEGMENTS: fn(Carrier) -> bool = |carrier| matches!(carrier, Carrier::Sctp | Carrier::Tcp);
/// An axis of the endpoints that other tools measure too.
const TOOLS: fn(Carrier) -> bool = |carrier| matches!(carrier, Carrier::Tcp | Carrier::Udp);

/// The help of `--inline-size`.
const UP_TO: &str = "Send messages of up to this size inline [default: 0, none]";

/// A row with the usual properties.
const fn row(name: &'static str, kind: Kind) -> AxisRow {
    AxisRow::new(name, kind)
}

/// A row whose values are the words of a type.
const fn words<T: Choice>(name: &'static str) -> AxisRow {
    AxisRow::new(name, Kind::choice::<T>())
}

axes! {
    /// Algorithm of a collective operation over verbs; `"usual"` is recursive doubling for
    /// allreduce, and dissemination for barrier and allgather.
    ALGORITHM: Option<Algorithm> = words::<Algorithm>("algorithm").or("usual")
        .flags(&[Flag::of("algorithm", "ALGORITHM")]);
    /// The application to run: the name of an `[[application]]` of the plan.
    APPLICATION: String = row("application", Kind::Text).on(Carrier::is_program)
        .shown(Shown::Row);
    /// Calls between two time stamps; `"step"` is a number that suits the step.
    BATCH: Option<u32> = row("batch", Kind::Whole).or("step").least(1)
        .shown(Shown::Column)
        .flags(&[Flag::of("batch", "N")]);
    /// Block size of a transfer, in bytes: what is read, sent and written at a time.
    BLOCK_BYTES: u32 = row("block_bytes", Kind::Bytes).on(TRANSFERS).of("B").least(1)
        .shown(Shown::Row);
    /// Lengths of the ranks' blocks in collective operations that take a length for each rank.
    BLOCKS: Blocks = words::<Blocks>("blocks").on(Carrier::is_mpi)
        .flags(&[Flag::of("blocks", "LENGTHS")]);
    /// Number of send buffers, used in turn, and of receive buffers; `"page"` is as many as fit in
    /// a page, at least one.
    BUFFERS: Option<u32> = row("buffers", Kind::Whole).or("page").least(1)
        // The pools of Potter 2018 have some thousand buffers. This is more than any queue holds.
        .most(1 << 20, "no pool is larger")
        .flags(&[Flag::of("buffers", "N")]);
    /// Messages posted without waiting for the peer: the n of PRTT(n, d, s); `"all"` is all
    /// messages of the point.
    BURST: Option<u32> = row("burst", Kind::Whole).or("all").on(ANY).least(1)
        .flags(&[Flag::of("burst", "N")]);
    /// For how long the kernel polls the adapter before a receiver sleeps (SO_BUSY_POLL); `"off"`
    /// keeps the system's setting.
    BUSY_POLL_US: Option<u32> = row("busy_poll_us", Kind::Micros).or("off").of("us")
        .on(Carrier::is_internet)
        .most(1_000_000, "give a unit, as in 50us")
        .flags(&[Flag::of("busy-poll", "TIME")]);
    /// Checksum that verifies each file of a transfer before the file gets its name.
    CHECKSUM: Checksum = words::<Checksum>("checksum").on(TRANSFERS)
        .shown(Shown::Row);
    /// The collective operation.
    COLLECTIVE: Collective = words::<Collective>("collective").on(ANY);
    /// How a collective operation is called: by one blocking call, or by a nonblocking call and
    /// MPI_Wait, with or without a computation in between.
    COLLECTIVE_CALL: CollectiveCall = words::<CollectiveCall>("collective_call").on(Carrier::is_mpi)
        .flags(&[Flag::of("collective-call", "CALL")]);
    /// TCP's congestion control; `"system"` is the system's default.
    CONGESTION: Option<String> = row("congestion", Kind::Text).or("system").on(TCP)
        .flags(&[Flag::of("congestion", "NAME").letter('C')]);
    /// Data type of the elements of a reduction.
    DATATYPE: Element = words::<Element>("datatype").on(ANY)
        .flags(&[Flag::of("datatype", "TYPE").letter('T')]);
    /// Direction of a stream.
    DIRECTION: Flow = words::<Flow>("direction").on(ANY).of_floods()
        .flags(&[Flag::sets("bidirectional", "bi", "Both directions at once").letter('b')]);
    /// What carries the messages. A point has only the axes that apply to its endpoint.
    ENDPOINT: Carrier = words::<Carrier>("endpoint").on(ANY).walked(Walk::Outer);
    /// The environment of the measurement, which is reverted afterwards: `as_is`, `optimised`,
    /// `event`, `loaded`, or an environment of the plan.
    ENVIRONMENT: String = row("environment", Kind::Text).on(ANY).walked(Walk::Outermost)
        .flags(&[Flag::of("environment", "NAME")]);
    /// IP version.
    FAMILY: Family = words::<Family>("family").on(Carrier::is_internet)
        .flags(&[Flag::sets("ipv6", "ipv6", "IPv6 instead of IPv4").letter('6')]);
    /// What a transfer writes to.
    FILE_SINK: Place = words::<Place>("file_sink").on(TRANSFERS)
        .shown(Shown::Row);
    /// What a transfer reads from.
    FILE_SOURCE: Place = words::<Place>("file_source").on(TRANSFERS)
        .shown(Shown::Row);
    /// Number of files of a transfer, all of the same size.
    FILES: u64 = row("files", Kind::Count).on(TRANSFERS).least(1)
        .most(100_000_000, "no directory should have more")
        .shown(Shown::Row);
    /// Rows and columns of the torus of ranks, such as `4x2`.
    GRID: Grid = row("grid", Kind::Grid).on(ANY)
        .shown(Shown::Row)
        .flags(&[Flag::of("grid", "GRID")]);
    /// How a rank exchanges its four sides with its neighbours over MPI. Over verbs it is always an
    /// RDMA Write of each side, and the neighbour polls its last bytes.
    HALO_METHOD: HaloMethod = words::<HaloMethod>("halo_method").on(Carrier::is_mpi);
    /// Delay in each call of one rank, for tests: `rank=1,before=100us` makes rank 1 late,
    /// `rank=1,within=100us` makes it slow; `"none"` is no delay.
    INJECT: Option<Injection> = row("inject", Kind::Delay).or("none").on(ANY)
        .flags(&[Flag::of("inject", "DELAY")]);
    /// Whether the payload is copied into the work request at post time. It is off unless a plan
    /// sets it, because the limit differs between devices and would put a step into the curve. In
    /// collectives and halo exchanges, messages of up to the size plus eight bytes are inline.
    INLINE: bool = row("inline", Kind::Flag)
        .flags(&[Flag::up_to("inline-size", "SIZE", UP_TO).letter('I').alias(&["inline_size"])]);
    /// Length in bytes up to which samples of a pipeline are copied into the work request at post
    /// time; 0 is never.
    INLINE_MAX_BYTES: u32 = row("inline_max_bytes", Kind::Bytes).of("B")
        .flags(&[Flag::of("inline-size", "SIZE").letter('I')]);
    /// Mode of the IPoIB interfaces that carry the messages; `"found"` takes any link and changes
    /// no mode.
    IPOIB_MODE: Option<IpoibMode> = words::<IpoibMode>("ipoib_mode").or("found")
        .on(Carrier::is_internet)
        .flags(&[Flag::of("ipoib-mode", "MODE")]);
    /// Link model, for devices that can apply one, such as `4X FDR` or `40Gb/s,latency=700ns`, also
    /// with `back`, `fetch`, `gap`, `mtu` and `header`; `"none"` applies no model. MPI takes one
    /// over verbs only.
    LINK: Option<String> = row("link", Kind::Link).or("none").on(DEVICES)
        .flags(&[Flag::of("link", "LINK")]);
    /// Link layer that the messages must use; `"any"` accepts either.
    LINK_LAYER: Option<LinkLayer> = words::<LinkLayer>("link_layer").or("any").on(LINKS);
    /// Where the load goes: between other ranks, into rank 1's memory, or out of rank 0's memory.
    LOAD: Load = words::<Load>("load").on(ANY)
        .shown(Shown::Row)
        .flags(&[Flag::of("load", "WHERE")]);
    /// Payload of a message of the load, in bytes.
    LOAD_BYTES: u64 = row("load_bytes", Kind::Size).on(ANY).of("B")
        .shown(Shown::Row)
        .flags(&[Flag::of("load-size", "SIZE")]);
    /// Number of ranks that load the device during the measurement; 0 for none.
    LOADERS: u32 = row("loaders", Kind::Count).on(ANY)
        // More processes than one machine can run. A typo must not start more.
        .most(512, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("loaders", "N")]);
    /// Memory that messages are sent from and received into.
    MEMORY: Memory = words::<Memory>("memory")
        .flags(&[Flag::of("memory", "KIND")]);
    /// Which ranks are connected with each other: all, or ranks that exchange messages.
    MESH: Mesh = words::<Mesh>("mesh").on(ANY)
        .flags(&[Flag::sets("full-mesh", "full", "Connect all ranks with all others")]);
    /// Mode of the application: the name of a `[[mode]]` of the plan, which sets environment
    /// variables for the application, or `"plain"` for none.
    MODE: Option<String> = row("mode", Kind::Text).or("plain").on(Carrier::is_program)
        .shown(Shown::Row);
    /// MPI calls that send and receive a message.
    MPI_CALL: MpiCall = words::<MpiCall>("mpi_call").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-call", "CALL")]);
    /// How the launcher of MPI places the ranks on the hosts.
    MPI_MAP: MpiMap = words::<MpiMap>("mpi_map").on(LAUNCHED).walked(Walk::Outermost)
        .flags(&[Flag::of("mpi-map", "MAP")]);
    /// What carries a message over MPI: a send, or a one-sided put or get.
    MPI_OPERATION: MpiOperation = words::<MpiOperation>("mpi_operation").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-operation", "OPERATION")]);
    /// Whether to measure more ranks than CPUs even if the ranks of this MPI do not yield the CPU
    /// while they wait. Other ranks then wait milliseconds for a CPU.
    MPI_OVERSUBSCRIBE: bool = row("mpi_oversubscribe", Kind::Flag).on(LAUNCHED)
        .flags(&[Flag::of("mpi-oversubscribe", "BOOL")]);
    /// MPI call that completes a put or a get, or a window of them in a stream.
    MPI_SYNC: MpiSync = words::<MpiSync>("mpi_sync").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-sync", "SYNC")]);
    /// Calls of MPI_Test during the computation that overlaps with a collective call. They let the
    /// MPI library make progress.
    MPI_TESTS: u32 = row("mpi_tests", Kind::Whole).on(Carrier::is_mpi)
        .most(1 << 20, "a computation cannot have more parts")
        .flags(&[Flag::of("mpi-tests", "N")]);
    /// Transport that MPI is told to use.
    MPI_TRANSPORT: MpiTransport = words::<MpiTransport>("mpi_transport").on(LAUNCHED)
        .walked(Walk::Outermost)
        .flags(&[Flag::of("mpi-transport", "TRANSPORT")]);
    /// Path MTU in bytes; `"active"` is the largest that both ports allow.
    MTU_BYTES: Option<u32> = row("mtu_bytes", Kind::Bytes).or("active").of("B")
        .flags(&[Flag::of("mtu", "BYTES").letter('m')]);
    /// Whether small segments are sent at once (TCP_NODELAY, SCTP_NODELAY).
    NO_DELAY: bool = row("no_delay", Kind::Flag).on(SEGMENTS)
        .flags(&[Flag::of("no-delay", "BOOL")]);
    /// How a rank learns that data has arrived; `"usual"` is by a completion if there is one.
    NOTIFY: Option<Notify> = words::<Notify>("notify").or("usual")
        .flags(&[Flag::of("notify", "HOW")]);
    /// Whether datagrams sent by one call pass the network stack as one (UDP_SEGMENT, UDP_GRO).
    OFFLOAD: bool = row("offload", Kind::Flag).on(UDP).of_floods()
        .flags(&[Flag::sets("offload", "true", "Pass the datagrams of a call through the stack as one (UDP_SEGMENT, UDP_GRO)")]);
    /// Operation of a reduction.
    OP: Reduction = words::<Reduction>("op").on(ANY)
        .flags(&[Flag::of("op", "OP")]);
    /// Operation that carries a message.
    OPERATION: Operation = words::<Operation>("operation")
        .flags(&[Flag::of("operation", "OPERATION")]);
    /// Outstanding RDMA Reads or atomics of a queue pair; `"max"` is as many as both devices allow.
    OUTSTANDING_READS: Option<u32> = row("outstanding_reads", Kind::Whole).or("max").least(1)
        .flags(&[Flag::of("outs", "N").letter('o')]);
    /// Largest sending rate of a connection (SO_MAX_PACING_RATE), to model a slower link; `"none"`
    /// sets no limit.
    PACING_RATE: Option<String> = row("pacing_rate", Kind::BitRate).or("none").on(TCP)
        .flags(&[Flag::of("pacing-rate", "RATE")]);
    /// Number of pairs of ranks that exchange messages at the same time.
    PAIRS: u32 = row("pairs", Kind::Count).on(ANY).least(1)
        // More processes than one machine can run. A typo must not start more.
        .most(512, "each is two processes")
        .shown(Shown::Row)
        .flags(&[Flag::of("pairs", "N")]);
    /// Least time from one post to the next. In PRTT(n, d, s) it is d, counted from the end of a
    /// post.
    PAUSE_NS: u64 = row("pause_ns", Kind::Pause).on(ANY).of("ns")
        .flags(&[Flag::of("pause", "TIME")]);
    /// Number of peers that one rank exchanges messages with at once: the n of 1:n.
    PEERS: u32 = row("peers", Kind::Count).on(ANY).least(1)
        // More processes than one machine can run. A typo must not start more.
        .most(1023, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("peers", "N")]);
    /// Whether one connection carries all files of a transfer; otherwise each file has its own.
    PERSISTENT_SESSION: bool = row("persistent_session", Kind::Flag).on(TRANSFERS)
        .shown(Shown::Row);
    /// How a rank waits for completions or messages.
    POLL: Poll = words::<Poll>("poll").on(ANY)
        .flags(&[
            Flag::of("poll", "MODE"),
            Flag::sets("events", "event", "Sleep for completions or messages instead of polling")
                .letter('e'),
            Flag::sets("busy", "busy", "Poll for completions or messages instead of sleeping"),
        ]);
    /// Messages that are posted or sent by one call.
    POST_LIST: u32 = row("post_list", Kind::Whole).on(LISTS).of_floods().least(1)
        .flags(&[Flag::of("post_list", "N").letter('l').alias(&["post-list"])]);
    /// Protocol of the sockets of a message library.
    PROTOCOL: Protocol = words::<Protocol>("protocol").on(Carrier::has_protocols)
        .flags(&[Flag::of("protocol", "PROTOCOL")]);
    /// Number of queue pairs, which messages take in turn.
    QUEUE_PAIRS: u32 = row("queue_pairs", Kind::Whole).least(1)
        .flags(&[Flag::of("qp", "N").letter('q')]);
    /// Number of ranks.
    RANKS: u32 = row("ranks", Kind::Count).on(ANY).least(1)
        // More processes than one machine can run. A typo must not start more.
        .most(1024, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("ranks", "N")]);
    /// Messages or samples that are due per second.
    RATE_HZ: u64 = row("rate_hz", Kind::Rate).on(ANY).of("/s")
        .shown(Shown::Row)
        .flags(&[Flag::of("rate", "RATE")]);
    /// Whether memory is registered once for all blocks of a transfer; otherwise it is registered
    /// again for each block.
    REGISTRATION_CACHE: bool = row("registration_cache", Kind::Flag)
        .shown(Shown::Row);
    /// Whether the kernel sends the blocks of long files itself (sendfile(2)); otherwise they are
    /// read and written. Files of less than four blocks are always packed with others. With
    /// sendfile there is no checksum.
    SENDFILE: bool = row("sendfile", Kind::Flag).on(TCP)
        .shown(Shown::Row);
    /// File format in which both ranks keep their samples.
    SINK: Sink = words::<Sink>("sink").on(ANY)
        .flags(&[Flag::of("sink", "FORMAT")]);
    /// Depth of the receive queue.
    RX_DEPTH: u32 = row("rx_depth", Kind::Whole)
        .flags(&[Flag::of("rx-depth", "N").letter('r')]);
    /// Number of receives that are kept posted; `"depth"` is as many as the queue holds.
    RX_FILL: Option<u32> = row("rx_fill", Kind::Whole).or("depth").least(1)
        .flags(&[Flag::of("rx-fill", "N")]);
    /// When the receiver fills its receive queue.
    RX_FILLED: Filling = words::<Filling>("rx_filled")
        .flags(&[Flag::of("rx-filled", "WHEN")]);
    /// How a rank waits for the completion of a send; `"poll"` is the value of the axis `poll`.
    SEND_POLL: Option<QueuePoll> = words::<QueuePoll>("send_poll").or("poll")
        .flags(&[Flag::of("send-poll", "MODE")]);
    /// Transport service.
    SERVICE: Service = words::<Service>("service")
        .flags(&[Flag::of("connection", "SERVICE").letter('c')]);
    /// How queue pairs are connected.
    SETUP: Setup = words::<Setup>("setup")
        .flags(&[
            Flag::sets("rdma_cm", "rdma_cm", "Connect with RDMA CM").letter('R').alias(&["rdma-cm"]),
        ]);
    /// Scatter/gather elements of a message.
    SGE: u32 = row("sge", Kind::Whole).least(1)
        .flags(&[Flag::of("sge", "N")]);
    /// Values of 8 B on each side of a rank's block; 0 for empty messages.
    SIDE_VALUES: u32 = row("side_values", Kind::Count).on(ANY)
        // MPI sends no message of more than 2 GiB.
        .most(1 << 24, "a side would be longer than 128 MiB")
        .shown(Shown::Row)
        .flags(&[Flag::of("values", "N").alias(&["side-values"])]);
    /// Signal that the generator samples.
    SIGNAL: Signal = words::<Signal>("signal").on(ANY)
        .flags(&[Flag::of("signal", "SIGNAL")]);
    /// Interval of signalled sends: every Nth send asks for a completion; `"half"` is half of the
    /// send queue's depth.
    SIGNAL_INTERVAL: Option<u32> = row("signal_interval", Kind::Whole).or("half").least(1)
        .flags(&[Flag::of("cq-mod", "N").letter('Q')]);
    /// Signal rate of the link; `"native"` is the link's own rate.
    SIGNAL_RATE: Option<String> = row("signal_rate", Kind::SignalRate).or("native");
    /// Payload of a message in bytes; 0 over verbs and MPI only.
    SIZE_BYTES: u64 = row("size_bytes", Kind::Size).on(ANY).of("B").walked(Walk::Innermost)
        .shown(Shown::Row)
        .flags(&[Flag::of("size", "SIZE").letter('s')]);
    /// Send and receive buffer of a socket, in bytes; `"auto"` lets the kernel choose and grow it.
    SOCKET_BUFFER_BYTES: Option<u32> = row("socket_buffer_bytes", Kind::Bytes).or("auto").of("B")
        .on(Carrier::is_socket)
        .flags(&[Flag::of("socket-buffer", "SIZE")]);
    /// Time stamp that the message itself carries.
    STAMP: Stamp = words::<Stamp>("stamp")
        .flags(&[Flag::of("stamp", "INSTANT")]);
    /// How the ranks start each call together.
    START: Start = words::<Start>("start").on(ANY)
        .flags(&[Flag::of("start", "HOW")]);
    /// Call that is timed. Default: every verbs call. The steps of RDMA CM run only when they are
    /// named.
    STEP: Step = words::<Step>("step")
        .shown(Shown::Row)
        .flags(&[Flag::of("step", "STEP")]);
    /// Number of connections, or sockets, which messages take in turn.
    STREAMS: u32 = row("streams", Kind::Whole).on(Carrier::is_socket).of_floods()
        // A typo must not make more.
        .most(1024, "one thread serves them all")
        .flags(&[Flag::of("streams", "N").letter('P')]);
    /// Clock by which the next sample is due.
    TIMER: Timer = words::<Timer>("timer").on(ANY)
        .flags(&[Flag::of("timer", "TIMER")]);
    /// Program that measures the point; `"rdmascope"` is this program.
    TOOL: Option<Tool> = words::<Tool>("tool").or("rdmascope").on(TOOLS);
    /// What the pairs do.
    TRAFFIC: Traffic = words::<Traffic>("traffic").on(ANY)
        .flags(&[Flag::sets("stream", "stream", "Throughput of all pairs at once, instead of latency")]);
    /// Depth of the send queue. Over MPI, the number of messages in a window.
    TX_DEPTH: u32 = row("tx_depth", Kind::Whole).on(|carrier| carrier.is_verbs() || carrier.is_mpi())
        .flags(&[Flag::of("tx-depth", "N").letter('t')]);
    /// Number of values in a sample. A sample has 24 B, and 8 B for each value.
    VALUES: u32 = row("values", Kind::Count).on(ANY).least(1)
        .most(VALUES_MAX as u64, "a sample holds no more")
        .shown(Shown::Row)
        .flags(&[Flag::of("values", "N")]);
    /// The n of a dissemination over verbs: how many ranks each rank writes to in a round.
    WAYS: u32 = row("ways", Kind::Count).least(1)
        // More messages than one adapter sends at once. A typo must not ask for more.
        .most(64, "a round should be short")
        .shown(Shown::Row)
        .flags(&[Flag::of("ways", "N")]);
    /// Whether the kernel sends from the program's memory without a copy (MSG_ZEROCOPY).
    ZERO_COPY: bool = row("zero_copy", Kind::Flag).on(TCP).of_floods()
        .flags(&[Flag::sets("zero-copy", "true", "Send from the program's memory without a copy (MSG_ZEROCOPY)")]);
}
