//! The table of all axes, by name. What documents a row is its help as well.

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

/// An axis of any endpoint.
const ANY: fn(Carrier) -> bool = |_| true;
/// An axis of what files go over.
const TRANSFERS: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || carrier == Carrier::Tcp;
/// An axis of lists: of sends, or of datagrams.
const LISTS: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || carrier.is_datagram();
/// An axis of what goes over links.
const LINKS: fn(Carrier) -> bool = |carrier| carrier.is_internet() || carrier.is_verbs();
/// An axis of what a device may carry.
const DEVICES: fn(Carrier) -> bool = |carrier| carrier.is_verbs() || LAUNCHED(carrier);
/// An axis of ranks that a launcher of MPI starts.
const LAUNCHED: fn(Carrier) -> bool = |carrier| carrier.is_mpi() || carrier.is_program();
/// An axis of TCP.
const TCP: fn(Carrier) -> bool = |carrier| carrier == Carrier::Tcp;
/// An axis of UDP.
const UDP: fn(Carrier) -> bool = |carrier| carrier == Carrier::Udp;
/// An axis of what delays small segments.
const SEGMENTS: fn(Carrier) -> bool = |carrier| matches!(carrier, Carrier::Sctp | Carrier::Tcp);
/// An axis of what other programs measure too.
const TOOLS: fn(Carrier) -> bool = |carrier| matches!(carrier, Carrier::Tcp | Carrier::Udp);

/// Help of the flag that sends short messages inline.
const UP_TO: &str = "Send messages of up to this size inline [default: 0, none]";

/// A row, before what differs from the usual.
const fn row(name: &'static str, kind: Kind) -> AxisRow {
    AxisRow::new(name, kind)
}

/// A row whose values are the words of a type.
const fn words<T: Choice>(name: &'static str) -> AxisRow {
    AxisRow::new(name, Kind::choice::<T>())
}

axes! {
    /// How ranks do a collective operation over verbs; `"usual"` is recursive doubling of an
    /// allreduce, and dissemination of a barrier and an allgather.
    ALGORITHM: Option<Algorithm> = words::<Algorithm>("algorithm").or("usual")
        .flags(&[Flag::of("algorithm", "ALGORITHM")]);
    /// The application to run: the name of an `[[application]]` of the plan.
    APPLICATION: String = row("application", Kind::Text).on(Carrier::is_program)
        .shown(Shown::Row);
    /// Calls between two stamps; `"step"` is as many as suit the step.
    BATCH: Option<u32> = row("batch", Kind::Whole).or("step").least(1)
        .shown(Shown::Column)
        .flags(&[Flag::of("batch", "N")]);
    /// Bytes of a block of a transfer: what is read, sent and written at a time.
    BLOCK_BYTES: u32 = row("block_bytes", Kind::Bytes).on(TRANSFERS).of("B").least(1)
        .shown(Shown::Row);
    /// How long the blocks of ranks are in collective operations that take a length for each.
    BLOCKS: Blocks = words::<Blocks>("blocks").on(Carrier::is_mpi)
        .flags(&[Flag::of("blocks", "LENGTHS")]);
    /// Buffers that messages are sent from in turn, and as many that they arrive in; `"page"` is as
    /// many as fit in a page, at least one.
    BUFFERS: Option<u32> = row("buffers", Kind::Whole).or("page").least(1)
        // Pools of the thesis have some thousand; more than any queue holds.
        .most(1 << 20, "no pool is so large")
        .flags(&[Flag::of("buffers", "N")]);
    /// Messages that are posted without waiting for the peer, n of a parametrised round trip;
    /// `"all"` is all of the point.
    BURST: Option<u32> = row("burst", Kind::Whole).or("all").on(ANY).least(1)
        .flags(&[Flag::of("burst", "N")]);
    /// How long the kernel polls the adapter before a receiver sleeps, in microseconds
    /// (SO_BUSY_POLL); `"off"` is as the kernel has it.
    BUSY_POLL_US: Option<u32> = row("busy_poll_us", Kind::Whole).or("off").of("us")
        .on(Carrier::is_internet)
        .flags(&[Flag::of("busy-poll", "US")]);
    /// What each file of a transfer is verified with before it gets its name.
    CHECKSUM: Checksum = words::<Checksum>("checksum").on(TRANSFERS)
        .shown(Shown::Row);
    /// The collective operation.
    COLLECTIVE: Collective = words::<Collective>("collective").on(ANY);
    /// How a collective operation is called: by one call, by two, or by two with a calculation in
    /// between.
    COLLECTIVE_CALL: CollectiveCall = words::<CollectiveCall>("collective_call").on(Carrier::is_mpi)
        .flags(&[Flag::of("collective-call", "CALL")]);
    /// TCP's congestion control; `"system"` is the one of the system.
    CONGESTION: Option<String> = row("congestion", Kind::Text).or("system").on(TCP)
        .flags(&[Flag::of("congestion", "NAME").letter('C')]);
    /// What the elements of a vector are that is reduced.
    DATATYPE: Element = words::<Element>("datatype").on(ANY)
        .flags(&[Flag::of("datatype", "TYPE").letter('T')]);
    /// Which way a stream flows.
    DIRECTION: Flow = words::<Flow>("direction").on(ANY).of_floods()
        .flags(&[Flag::sets("bidirectional", "bi", "Both directions at once").letter('b')]);
    /// What carries the messages. Axes that are not for it are no part of its points.
    ENDPOINT: Carrier = words::<Carrier>("endpoint").on(ANY).walked(Walk::Outer);
    /// The environment of the measurement, which is taken back afterwards: `as_is`, `optimised`,
    /// `event`, `loaded`, or an environment of the plan.
    ENVIRONMENT: String = row("environment", Kind::Text).on(ANY).walked(Walk::Outermost)
        .flags(&[Flag::of("environment", "NAME")]);
    /// The version of IP.
    FAMILY: Family = words::<Family>("family").on(Carrier::is_internet)
        .flags(&[Flag::sets("ipv6", "ipv6", "IPv6 instead of IPv4").letter('6')]);
    /// Where the files of a transfer go to.
    FILE_SINK: Place = words::<Place>("file_sink").on(TRANSFERS)
        .shown(Shown::Row);
    /// Where the files of a transfer come from.
    FILE_SOURCE: Place = words::<Place>("file_source").on(TRANSFERS)
        .shown(Shown::Row);
    /// Files of a transfer, all of the same size.
    FILES: u64 = row("files", Kind::Count).on(TRANSFERS).least(1)
        .most(100_000_000, "no directory should have more")
        .shown(Shown::Row);
    /// Rows and columns of a torus of ranks, such as `4x2`.
    GRID: Grid = row("grid", Kind::Grid).on(ANY)
        .shown(Shown::Row)
        .flags(&[Flag::of("grid", "GRID")]);
    /// How a rank exchanges its four sides with its neighbours by MPI. Over verbs there is one way:
    /// an RDMA Write of each side, of which the neighbour polls the end.
    HALO_METHOD: HaloMethod = words::<HaloMethod>("halo_method").on(Carrier::is_mpi);
    /// A delay in each call of a rank, for tests: `rank=1,before=100us` makes it late,
    /// `rank=1,within=100us` makes it slow; `"none"` is no delay.
    INJECT: Option<Injection> = row("inject", Kind::Delay).or("none").on(ANY)
        .flags(&[Flag::of("inject", "DELAY")]);
    /// Whether the payload is copied into the work request at post time. Never assumed: it is off
    /// unless a plan asks for it, because a limit that differs between devices would silently put a
    /// step into the curve. Of what all ranks do together, messages are inline that are not longer
    /// than the size and eight bytes.
    INLINE: bool = row("inline", Kind::Flag)
        .flags(&[Flag::up_to("inline-size", "SIZE", UP_TO).letter('I')]);
    /// Up to which length samples of a pipeline are copied into the work request at post time, in
    /// bytes; 0 is never.
    INLINE_MAX_BYTES: u32 = row("inline_max_bytes", Kind::Bytes).of("B")
        .flags(&[Flag::of("inline-size", "SIZE").letter('I')]);
    /// Mode of the IPoIB interfaces that messages take; `"found"` is any link, as it is found.
    IPOIB_MODE: Option<IpoibMode> = words::<IpoibMode>("ipoib_mode").or("found")
        .on(Carrier::is_internet)
        .flags(&[Flag::of("ipoib-mode", "MODE")]);
    /// What the link is to be like, where a device can imitate one, such as `4X FDR` or
    /// `40Gb/s,latency=700ns`, also with `back`, `fetch`, `gap`, `mtu` and `header`; `"none"`
    /// leaves it as it is. MPI has one over verbs alone.
    LINK: Option<String> = row("link", Kind::Link).or("none").on(DEVICES)
        .flags(&[Flag::of("link", "LINK")]);
    /// What messages must go over; `"any"` is whatever is there.
    LINK_LAYER: Option<LinkLayer> = words::<LinkLayer>("link_layer").or("any").on(LINKS);
    /// Where the load of other ranks goes.
    LOAD: Load = words::<Load>("load").on(ANY)
        .shown(Shown::Row)
        .flags(&[Flag::of("load", "WHERE")]);
    /// Payload of the messages of a load, in bytes.
    LOAD_BYTES: u64 = row("load_bytes", Kind::Size).on(ANY).of("B")
        .shown(Shown::Row)
        .flags(&[Flag::of("load-size", "SIZE")]);
    /// Ranks that load the device meanwhile; 0 for none.
    LOADERS: u32 = row("loaders", Kind::Count).on(ANY)
        // More than one machine can run as processes, and more than a slip of the pen should start.
        .most(512, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("loaders", "N")]);
    /// Memory that messages come from and go to.
    MEMORY: Memory = words::<Memory>("memory")
        .flags(&[Flag::of("memory", "KIND")]);
    /// Which ranks are connected beside those that talk to each other.
    MESH: Mesh = words::<Mesh>("mesh").on(ANY)
        .flags(&[Flag::sets("full-mesh", "full", "Connect all ranks with all others")]);
    /// The mode in which an application runs: the name of a `[[mode]]` of the plan, whose
    /// environment variables it gets, or `"plain"` for none of those.
    MODE: Option<String> = row("mode", Kind::Text).or("plain").on(Carrier::is_program)
        .shown(Shown::Row);
    /// Which calls of MPI send and receive a message.
    MPI_CALL: MpiCall = words::<MpiCall>("mpi_call").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-call", "CALL")]);
    /// On which hosts the launcher of MPI places the ranks.
    MPI_MAP: MpiMap = words::<MpiMap>("mpi_map").on(LAUNCHED).walked(Walk::Outermost)
        .flags(&[Flag::of("mpi-map", "MAP")]);
    /// What carries a message of MPI: a send, or a put or a get of one rank.
    MPI_OPERATION: MpiOperation = words::<MpiOperation>("mpi_operation").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-operation", "OPERATION")]);
    /// Whether more ranks than CPUs are measured although those of this MPI keep their CPU while
    /// they wait, and the others wait milliseconds for a turn.
    MPI_OVERSUBSCRIBE: bool = row("mpi_oversubscribe", Kind::Flag).on(LAUNCHED)
        .flags(&[Flag::of("mpi-oversubscribe", "BOOL")]);
    /// Which call completes a put or a get of MPI, or a window of them in a flood.
    MPI_SYNC: MpiSync = words::<MpiSync>("mpi_sync").on(Carrier::is_mpi)
        .flags(&[Flag::of("mpi-sync", "SYNC")]);
    /// How often a calculation that overlaps with a collective call lets the library go on: calls
    /// of MPI_Test.
    MPI_TESTS: u32 = row("mpi_tests", Kind::Whole).on(Carrier::is_mpi)
        .most(1 << 20, "no calculation has so many parts")
        .flags(&[Flag::of("mpi-tests", "N")]);
    /// What MPI is told to carry messages over.
    MPI_TRANSPORT: MpiTransport = words::<MpiTransport>("mpi_transport").on(LAUNCHED)
        .walked(Walk::Outermost)
        .flags(&[Flag::of("mpi-transport", "TRANSPORT")]);
    /// Path MTU in bytes; `"active"` is the largest that both ports have.
    MTU_BYTES: Option<u32> = row("mtu_bytes", Kind::Bytes).or("active").of("B")
        .flags(&[Flag::of("mtu", "BYTES").letter('m')]);
    /// Whether TCP sends small segments at once.
    NO_DELAY: bool = row("no_delay", Kind::Flag).on(SEGMENTS)
        .flags(&[Flag::of("no-delay", "BOOL")]);
    /// How it is learnt that bytes have come; `"usual"` is by a completion where there is one.
    NOTIFY: Option<Notify> = words::<Notify>("notify").or("usual")
        .flags(&[Flag::of("notify", "HOW")]);
    /// Whether datagrams of a list go through the stack as one (UDP_SEGMENT, UDP_GRO).
    OFFLOAD: bool = row("offload", Kind::Flag).on(UDP).of_floods()
        .flags(&[Flag::sets("offload", "true", "Send the datagrams of a list through the stack as one (UDP_SEGMENT, UDP_GRO)")]);
    /// What is computed of the elements of vectors.
    OP: Reduction = words::<Reduction>("op").on(ANY)
        .flags(&[Flag::of("op", "OP")]);
    /// Operation that carries the message.
    OPERATION: Operation = words::<Operation>("operation")
        .flags(&[Flag::of("operation", "OPERATION")]);
    /// RDMA Reads or atomics of a queue pair under way; `"max"` is what both devices allow.
    OUTSTANDING_READS: Option<u32> = row("outstanding_reads", Kind::Whole).or("max").least(1)
        .flags(&[Flag::of("outs", "N").letter('o')]);
    /// The most that a connection sends (SO_MAX_PACING_RATE): a link of that rate, where there is
    /// a faster one; `"none"` limits nothing.
    PACING_RATE: Option<String> = row("pacing_rate", Kind::BitRate).or("none").on(TCP)
        .flags(&[Flag::of("pacing-rate", "RATE")]);
    /// Pairs of ranks that do the same at the same time.
    PAIRS: u32 = row("pairs", Kind::Count).on(ANY).least(1)
        // More than one machine can run as processes, and more than a slip of the pen should start.
        .most(512, "each is two processes")
        .shown(Shown::Row)
        .flags(&[Flag::of("pairs", "N")]);
    /// Least time from one post to the next, or d of a parametrised round trip: from the end of a
    /// post.
    PAUSE_NS: u64 = row("pause_ns", Kind::Pause).on(ANY).of("ns")
        .flags(&[Flag::of("pause", "TIME")]);
    /// The n of 1:n: how many others one rank talks to at once.
    PEERS: u32 = row("peers", Kind::Count).on(ANY).least(1)
        // More than one machine can run as processes, and more than a slip of the pen should start.
        .most(1023, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("peers", "N")]);
    /// Whether all files of a transfer go over one connection; otherwise each has its own.
    PERSISTENT_SESSION: bool = row("persistent_session", Kind::Flag).on(TRANSFERS)
        .shown(Shown::Row);
    /// How a completion is waited for.
    POLL: Poll = words::<Poll>("poll").on(ANY)
        .flags(&[
            Flag::of("poll", "MODE"),
            Flag::sets("events", "event", "Sleep for completions or messages instead of polling")
                .letter('e'),
            Flag::sets("busy", "busy", "Poll for completions or messages instead of sleeping"),
        ]);
    /// Sends that the device is told of at once.
    POST_LIST: u32 = row("post_list", Kind::Whole).on(LISTS).of_floods().least(1)
        .flags(&[Flag::of("post_list", "N").letter('l').alias(&["post-list"])]);
    /// What sockets of a message library are to each other.
    PROTOCOL: Protocol = words::<Protocol>("protocol").on(Carrier::has_protocols)
        .flags(&[Flag::of("protocol", "PROTOCOL")]);
    /// Queue pairs that messages take in turn.
    QUEUE_PAIRS: u32 = row("queue_pairs", Kind::Whole).least(1)
        .flags(&[Flag::of("qp", "N").letter('q')]);
    /// Ranks that do something together.
    RANKS: u32 = row("ranks", Kind::Count).on(ANY).least(1)
        // More than one machine can run as processes, and more than a slip of the pen should start.
        .most(1024, "each is a process")
        .shown(Shown::Row)
        .flags(&[Flag::of("ranks", "N")]);
    /// Messages that are due in a second.
    RATE_HZ: u64 = row("rate_hz", Kind::Rate).on(ANY).of("/s")
        .shown(Shown::Row)
        .flags(&[Flag::of("rate", "RATE")]);
    /// Whether memory that is registered serves every block of a transfer; otherwise it is
    /// registered anew for each.
    REGISTRATION_CACHE: bool = row("registration_cache", Kind::Flag)
        .shown(Shown::Row);
    /// Whether the kernel hands the blocks of long files to connections (sendfile(2)); otherwise
    /// they are read and written. Files of less than four blocks are packed with others in any
    /// case. No checksum can be computed of what only the kernel sees.
    SENDFILE: bool = row("sendfile", Kind::Flag).on(TCP)
        .shown(Shown::Row);
    /// Where samples are kept at both ends.
    SINK: Sink = words::<Sink>("sink").on(ANY)
        .flags(&[Flag::of("sink", "FORMAT")]);
    /// Receive-queue depth.
    RX_DEPTH: u32 = row("rx_depth", Kind::Whole)
        .flags(&[Flag::of("rx-depth", "N").letter('r')]);
    /// Receives that are kept posted; `"depth"` is as many as the queue holds.
    RX_FILL: Option<u32> = row("rx_fill", Kind::Whole).or("depth").least(1)
        .flags(&[Flag::of("rx-fill", "N")]);
    /// When the receives are posted that are kept posted.
    RX_FILLED: Filling = words::<Filling>("rx_filled")
        .flags(&[Flag::of("rx-filled", "WHEN")]);
    /// How the completion of a send is waited for; `"poll"` is as the axis of that name says.
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
    /// Elements that a message is gathered from and scattered to.
    SGE: u32 = row("sge", Kind::Whole).least(1)
        .flags(&[Flag::of("sge", "N")]);
    /// Values of 8 B on each side of a rank's block; 0 for empty messages.
    SIDE_VALUES: u32 = row("side_values", Kind::Count).on(ANY)
        // More than 2 GiB are no message of MPI.
        .most(1 << 24, "a side would be longer than 128 MiB")
        .shown(Shown::Row)
        .flags(&[Flag::of("values", "N").alias(&["side-values"])]);
    /// What the values of samples are.
    SIGNAL: Signal = words::<Signal>("signal").on(ANY)
        .flags(&[Flag::of("signal", "SIGNAL")]);
    /// Every how many sends one asks for a completion; `"half"` is half of the send queue's depth.
    SIGNAL_INTERVAL: Option<u32> = row("signal_interval", Kind::Whole).or("half").least(1)
        .flags(&[Flag::of("cq-mod", "N").letter('Q')]);
    /// Signal rate of the link; `"native"` is the link's own.
    SIGNAL_RATE: Option<String> = row("signal_rate", Kind::SignalRate).or("native");
    /// Payload of a message in bytes; 0 over verbs and MPI only.
    SIZE_BYTES: u64 = row("size_bytes", Kind::Size).on(ANY).of("B").walked(Walk::Innermost)
        .shown(Shown::Row)
        .flags(&[Flag::of("size", "SIZE").letter('s')]);
    /// Send and receive buffer of a socket, in bytes; `"auto"` is as the kernel makes and grows it.
    SOCKET_BUFFER_BYTES: Option<u32> = row("socket_buffer_bytes", Kind::Bytes).or("auto").of("B")
        .on(Carrier::is_socket)
        .flags(&[Flag::of("socket-buffer", "SIZE")]);
    /// Which instant the message itself carries.
    STAMP: Stamp = words::<Stamp>("stamp")
        .flags(&[Flag::of("stamp", "INSTANT")]);
    /// How the ranks begin each call together.
    START: Start = words::<Start>("start").on(ANY)
        .flags(&[Flag::of("start", "HOW")]);
    /// The call that is timed by itself. Default: every verbs call. The steps of RDMA CM run only
    /// when they are named.
    STEP: Step = words::<Step>("step")
        .shown(Shown::Row)
        .flags(&[Flag::of("step", "STEP")]);
    /// Connections that messages take in turn.
    STREAMS: u32 = row("streams", Kind::Whole).on(Carrier::is_socket).of_floods()
        // More than a slip of the pen should make.
        .most(1024, "one thread serves them all")
        .flags(&[Flag::of("streams", "N").letter('P')]);
    /// Clock that says when the next sample is due.
    TIMER: Timer = words::<Timer>("timer").on(ANY)
        .flags(&[Flag::of("timer", "TIMER")]);
    /// Who measures; `"rdmascope"` is this program.
    TOOL: Option<Tool> = words::<Tool>("tool").or("rdmascope").on(TOOLS);
    /// What several pairs do.
    TRAFFIC: Traffic = words::<Traffic>("traffic").on(ANY)
        .flags(&[Flag::sets("stream", "stream", "Throughput of all pairs at once, instead of latency")]);
    /// Send-queue depth; of MPI, the messages of a window.
    TX_DEPTH: u32 = row("tx_depth", Kind::Whole).on(|carrier| carrier.is_verbs() || carrier.is_mpi())
        .flags(&[Flag::of("tx-depth", "N").letter('t')]);
    /// Values of a sample, which has 8 B for each beside 24 B of its own.
    VALUES: u32 = row("values", Kind::Count).on(ANY).least(1)
        .most(VALUES_MAX as u64, "a sample has no more")
        .shown(Shown::Row)
        .flags(&[Flag::of("values", "N")]);
    /// The n of a dissemination over verbs: how many ranks each writes to in a round.
    WAYS: u32 = row("ways", Kind::Count).least(1)
        // More than one adapter sends at once, and more than a slip of the pen should ask for.
        .most(64, "a round is to be short")
        .shown(Shown::Row)
        .flags(&[Flag::of("ways", "N")]);
    /// Whether the kernel refers to what is sent instead of copying it (MSG_ZEROCOPY).
    ZERO_COPY: bool = row("zero_copy", Kind::Flag).on(TCP).of_floods()
        .flags(&[Flag::sets("zero-copy", "true", "Send from the program's memory without a copy (MSG_ZEROCOPY)")]);
}
