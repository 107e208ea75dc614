//! The comparisons: rows of items that do the same, and the goals of each row's first item.

use super::ours::Experiment;
use super::ucx::Test;
use super::value::Unit;

/// How an item is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Rdmascope(Experiment),
    /// A measurement of `baseline`.
    Baseline(&'static str),
    Ucx(Test),
    Fabric,
    /// A test of `pingpong.c` over Open MPI's shared memory.
    Mpi(&'static str),
    /// The same test over UCX's RC transport on softdev.
    MpiOnSoftdev(&'static str),
}

/// A program or library that is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) name: &'static str,
    pub(super) way: Way,
}

/// The denominator of a goal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Against {
    /// The core-to-core latency.
    Line,
    /// Another item of the row.
    Item(&'static str),
    /// One, in the row's unit: the goal is absolute.
    Nothing,
}

/// The bound of a goal's ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
    Above(f64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) against: Against,
    pub(super) bound: Bound,
}

/// Items that are compared; the first one runs on softdev.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) items: Vec<Item>,
    pub(super) goals: Vec<Goal>,
}

const SEND: Item = Item {
    name: "rdmascope lat send",
    way: Way::Rdmascope(Experiment {
        pattern: "ping-pong",
        operation: "send",
        messages: 50_000,
        inline: false,
    }),
};
const MIB: u64 = 1 << 20;
/// A stream of 1 MiB messages that `baseline` copies by non-temporal stores.
const STREAMING: &str = "raw non-temporal copy";

/// A test of ucx_perftest. Its shared-memory transports posix and sysv are equally fast; with cma
/// in addition, large messages are copied once instead of twice.
const fn ucx(name: &'static str, test: Test) -> Item {
    Item { name, way: Way::Ucx(test) }
}

const fn test(name: &'static str, transports: Option<&'static str>, size_bytes: u64, messages: u64) -> Test {
    Test { name, transports, size_bytes, messages, on_softdev: false }
}

/// The latency of UCX's upper layer over softdev.
const fn on_softdev(name: &'static str, transports: &'static str, size_bytes: u64) -> Item {
    ucx(name, Test { on_softdev: true, ..test("tag_lat", Some(transports), size_bytes, 50_000) })
}

/// A rendezvous: the receiver asks the kernel to fetch the message.
const AM_BW: Item = ucx("UCX am_bw (UCP posix,cma)", test("ucp_am_bw", Some("posix,cma,self"), MIB, 200));

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    vec![send(), write(), stream(), unread(), rate(), eager(), tag(), tag_large(), ranks(), ranks_large()]
}

fn send() -> Row {
    let peers = vec![
        ucx("UCX am_lat (UCT posix)", test("am_lat", None, 8, 50_000)),
        ucx("UCX tag_lat (UCP posix)", test("tag_lat", Some("posix,self"), 8, 50_000)),
        Item { name: "libfabric fi_pingpong shm", way: Way::Fabric },
        Item { name: "Open MPI send/recv", way: Way::Mpi("lat") },
    ];
    let title = "RC Send 8 B: half a round trip";
    let mut row = row("send", title, Unit::Latency, SEND, peers, Bound::Below(1.0));
    row.goals.insert(0, Goal { against: Against::Line, bound: Bound::AtMost(1.5) });
    row.items.extend([
        Item { name: "raw: a line per direction", way: Way::Baseline("lanes") },
        Item { name: "the same, 40 ns to answer", way: Way::Baseline("worked-lanes") },
        Item { name: "raw: one line, 40 ns to answer", way: Way::Baseline("worked-line") },
    ]);
    row
}

/// RDMA Write. UCX's short put copies the payload when it is called, as an inline write does.
fn write() -> Row {
    let experiment = Experiment { pattern: "ping-pong", operation: "write", messages: 100_000, inline: true };
    let ours = Item { name: "rdmascope lat write -I 8", way: Way::Rdmascope(experiment) };
    let gathered = Way::Rdmascope(Experiment { inline: false, ..experiment });
    let put = ucx("UCX put_lat (UCT posix)", test("put_lat", None, 8, 100_000));
    let title = "RC RDMA Write 8 B: half a round trip between ranks that poll their memory";
    let mut row = row("write", title, Unit::Latency, ours, vec![put], Bound::AtMost(1.0));
    row.items.push(Item { name: "the same, not inline", way: gathered });
    row.items.push(SEND);
    row.goals.push(Goal { against: Against::Item(SEND.name), bound: Bound::Below(1.0) });
    row
}

fn stream() -> Row {
    let ours = Item { name: "softdev RDMA Write", way: Way::Baseline("write") };
    let peers = vec![
        AM_BW,
        ucx("UCX tag_bw (UCP posix,cma)", test("tag_bw", Some("posix,cma,self"), MIB, 200)),
        Item { name: "Open MPI isend/irecv", way: Way::Mpi("stream") },
    ];
    let title = "1 MiB messages that their receiver reads (the receivers of UCX's tests do not read them)";
    let mut row = row("stream", title, Unit::Bandwidth, ours, peers, Bound::Above(1.0));
    row.items.push(Item { name: STREAMING, way: Way::Baseline("streaming") });
    row.items.push(Item { name: "raw memcpy", way: Way::Baseline("cached") });
    row.goals.insert(0, Goal { against: Against::Item(STREAMING), bound: Bound::AtLeast(0.9) });
    row
}

/// The bandwidth of a write as tools define it. It has no goals, because the receiver does not read
/// the data.
fn unread() -> Row {
    let items = vec![
        Item { name: "softdev RDMA Write", way: Way::Baseline("write-unread") },
        Item { name: STREAMING, way: Way::Baseline("streaming-unread") },
        Item { name: "raw memcpy", way: Way::Baseline("cached-unread") },
        AM_BW,
        ucx("UCX put_bw (UCT posix)", test("put_bw", None, MIB, 400)),
        ucx("UCX ucp_put_bw (UCP posix,cma)", test("ucp_put_bw", Some("posix,cma,self"), MIB, 400)),
    ];
    let title =
        "1 MiB messages that no receiver reads: no goal (UCX writes to one buffer, softdev and raw to four)";
    Row { name: "unread", title, unit: Unit::Bandwidth, items, goals: Vec::new() }
}

fn rate() -> Row {
    let experiment = Experiment { pattern: "stream", operation: "send", messages: 300_000, inline: false };
    let ours = Item { name: "rdmascope bw send", way: Way::Rdmascope(experiment) };
    let items = vec![
        ours,
        ucx("UCX am_bw (UCT posix)", test("am_bw", None, 8, 300_000)),
        ucx("UCX tag_bw (UCP posix)", test("tag_bw", Some("posix,self"), 8, 200_000)),
        Item { name: "Open MPI isend/irecv", way: Way::Mpi("rate") },
    ];
    let goals = vec![Goal { against: Against::Nothing, bound: Bound::Above(1e7) }];
    Row { name: "rate", title: "RC Send 8 B in one direction, no lists", unit: Unit::Rate, items, goals }
}

/// UCX's eager messages through a shared receive queue over RC: a message that UCX copies costs
/// little more than an inline message or a message over UD.
fn eager() -> Row {
    let inline = on_softdev("the same, 8 B", "rc,self", 8);
    let datagrams = on_softdev("the same over UD", "ud,self", 128);
    let items = vec![
        on_softdev("UCX tag_lat (UCP rc on softdev)", "rc,self", 128),
        inline,
        datagrams,
        ucx("UCX tag_lat (UCP posix)", test("tag_lat", Some("posix,self"), 128, 50_000)),
    ];
    let goals = [(inline.name, 2.5), (datagrams.name, 1.5)]
        .map(|(name, most)| Goal { against: Against::Item(name), bound: Bound::AtMost(most) });
    let title = "UCX's eager messages of 128 B over softdev: half a round trip";
    Row { name: "eager", title, unit: Unit::Latency, items, goals: goals.into() }
}

/// The cost of softdev's verbs for a program of UCX, compared with UCX's own shared memory.
fn tag() -> Row {
    let ours = on_softdev("UCX tag_lat (UCP rc on softdev)", "rc,self", 8);
    let peers = vec![ucx("UCX tag_lat (UCP posix)", test("tag_lat", Some("posix,self"), 8, 50_000))];
    let title = "UCX's messages of 8 B over softdev: half a round trip";
    row("tag", title, Unit::Latency, ours, peers, Bound::AtMost(1.3))
}

/// The same for large messages, compared with both of UCX's configurations.
fn tag_large() -> Row {
    let on = Test { on_softdev: true, ..test("tag_bw", Some("rc,self"), MIB, 200) };
    let peers = vec![
        ucx("UCX tag_bw (UCP posix)", test("tag_bw", Some("posix,self"), MIB, 200)),
        ucx("UCX tag_bw (UCP posix,cma)", test("tag_bw", Some("posix,cma,self"), MIB, 200)),
    ];
    let ours = ucx("UCX tag_bw (UCP rc on softdev)", on);
    let title = "UCX's messages of 1 MiB over softdev";
    row("tag-large", title, Unit::Bandwidth, ours, peers, Bound::AtLeast(0.9))
}

/// The cost of softdev for ranks of Open MPI, which has its own shared memory: no goal.
fn ranks() -> Row {
    let items = vec![
        Item { name: "Open MPI (UCX rc on softdev)", way: Way::MpiOnSoftdev("lat") },
        Item { name: "Open MPI send/recv", way: Way::Mpi("lat") },
    ];
    let title = "Open MPI's messages of 8 B over softdev: half a round trip";
    Row { name: "ranks", title, unit: Unit::Latency, items, goals: Vec::new() }
}

fn ranks_large() -> Row {
    let items = vec![
        Item { name: "Open MPI (UCX rc on softdev)", way: Way::MpiOnSoftdev("stream") },
        Item { name: "Open MPI isend/irecv", way: Way::Mpi("stream") },
    ];
    let title = "Open MPI's messages of 1 MiB over softdev, read by their receiver";
    Row { name: "ranks-large", title, unit: Unit::Bandwidth, items, goals: Vec::new() }
}

/// A row with the same goal for all peers.
fn row(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    ours: Item,
    peers: Vec<Item>,
    bound: Bound,
) -> Row {
    let goals = peers.iter().map(|peer| Goal { against: Against::Item(peer.name), bound }).collect();
    Row { name, title, unit, items: [vec![ours], peers].concat(), goals }
}

impl Way {
    /// The programs that a measurement needs, and the packages that have them.
    pub(super) fn needs(&self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Rdmascope(_) | Self::Baseline(_) => (&[], ""),
            Self::Ucx(_) => (&["ucx_perftest"], "ucx-utils"),
            Self::Fabric => (&["fi_pingpong"], "libfabric-bin"),
            Self::Mpi(_) | Self::MpiOnSoftdev(_) => (&["mpirun", "mpicc"], "openmpi-bin libopenmpi-dev"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_name_what_is_there() {
        for row in rows() {
            let is_there = |name| row.items[1..].iter().any(|item| item.name == name);
            for goal in &row.goals {
                let Against::Item(name) = goal.against else { continue };
                assert!(is_there(name), "{}: {name}", row.name);
            }
            let is_ours = |way| {
                matches!(
                    way,
                    Way::Rdmascope(_)
                        | Way::Baseline(_)
                        | Way::Ucx(Test { on_softdev: true, .. })
                        | Way::MpiOnSoftdev(_)
                )
            };
            assert!(is_ours(row.items[0].way), "{}", row.name);
        }
        // Every peer of a latency has a goal, and so has the core-to-core latency.
        let send = send();
        let is_raw = |item: &&Item| matches!(item.way, Way::Baseline(_));
        assert_eq!(send.goals.len() + send.items.iter().filter(is_raw).count(), send.items.len());
    }
}
