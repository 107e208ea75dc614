//! The errors of this crate, except for bugs of rdmascope.
//!
//! Every message has one or two sentences: the place, the fault, the cause, and what to do about
//! it. `place` is a place in a plan: `plans/x.toml:12`, `--set iterations=0`, or `the flags` if the
//! plan was built in code. A `cause` is part of the message, so `source()` does not return it: a
//! chain of errors would print it twice.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The errors of plans and processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    // Reading a plan.
    #[error("cannot read the plan {}: {cause}", path.display())]
    PlanRead { path: PathBuf, cause: io::Error },
    #[error(
        "there is no plan {name:?}: no file has this name, and the plans that come with the program are {known}{hint}"
    )]
    PlanUnknown { name: String, known: String, hint: String },
    #[error("{place}: {words}")]
    Plan { place: String, words: String },

    // Measuring.
    #[error(transparent)]
    Verbs(#[from] verbs::Error),
    #[error(transparent)]
    Measure(#[from] measure::Error),
    #[error("{} could not be {what}: {status}: {advice}", numbered(*message))]
    Completion { message: Option<u64>, what: &'static str, status: verbs::WcStatus, advice: String },
    #[error("nothing {what} for {waited_s:.1} s, which is the point's time limit: {advice}")]
    Deadline { what: &'static str, waited_s: f64, advice: String },
    #[error(
        "{batches} batches of {step} took {waited_s:.1} s, which is the point's time limit: use fewer iterations or a \
         longer timeout"
    )]
    SlowCalls { step: &'static str, batches: u64, waited_s: f64 },
    #[error(
        "{call} brought a wrong result to rank {rank}: byte {byte} is {found}, but should be {expected}: do not use any \
         number of this library and device, and report the fault to its maintainers"
    )]
    WrongResult { call: &'static str, rank: u32, byte: usize, found: u8, expected: u8 },
    #[error(
        "{library} carries messages over {used}, but the point asks for {asked}: check its environment variables \
         (OMPI_MCA_*, UCX_*, MPIR_CVAR_*) and the options of the launcher, or choose another mpi_transport"
    )]
    OtherTransport { library: String, asked: &'static str, used: String },
    #[error("{words}")]
    Transfer { words: String },
    #[error("MPI failed: {reason}")]
    Mpi { reason: String },
    #[error(
        "MPI_COMM_WORLD has size {size}, but the point has {ranks} ranks: {library} ({path}) does not belong to the \
         launcher {launcher}: name the library of this launcher with --mpi-library, or another launcher with --mpi"
    )]
    NotOneWorld { ranks: u32, size: u32, launcher: String, library: String, path: String },
    #[error("{reason}")]
    Impossible { reason: String },
    #[error("nothing of this plan can be measured: {reason}")]
    NothingPossible { reason: String },
    #[error("there is no device named {name:?} here: this host has {known}{hint}")]
    NoDevice { name: String, known: String, hint: String },
    #[error("{device} has no port {port}: {}", ports_of(*ports))]
    NoPort { device: String, port: u8, ports: u8 },
    #[error(
        "port {port} of {device} has no GID {index} in use: the GIDs in use are {known} (see `rdmascope devices`)"
    )]
    NoGid { device: String, port: u8, index: u8, known: String },
    #[error("port {port} of {device} is {state}, not active: {remedy}")]
    PortNotActive { device: String, port: u8, state: String, remedy: &'static str },
    #[error(
        "port {port} of {device} has no GID: give its network interface an address (`ip addr add 192.0.2.1/24 dev DEV`)"
    )]
    NoUsableGid { device: String, port: u8 },
    #[error("{reason}")]
    Library { reason: String },
    #[error(
        "port {port} of {device} has no IP address that RDMA CM could use: give its network interface an address \
         (`ip addr add 192.0.2.1/24 dev DEV`)"
    )]
    NoAddress { device: String, port: u8 },
    #[error(
        "the GIDs of the two ranks cannot reach each other: {own} here, {theirs} at the other rank: choose GIDs of one \
         kind and address family with -x (see `rdmascope devices` on both hosts)"
    )]
    GidsApart { own: String, theirs: String },
    #[error("a point of another pattern was run as a pipeline: this is a bug, please report it")]
    NoPipeline,
    #[error("times between ranks have no error bound: {reason}")]
    Clocks { reason: String },
    #[error(
        "no sample arrived: {missed} of {steps} steps missed, {unsent} samples unsent or lost: measure more steps, or at a \
         lower rate"
    )]
    NoSamples { steps: u64, missed: u64, unsent: u64 },
    #[error("only {messages} messages arrived: there is nothing to measure")]
    TooFewMessages { messages: u64 },
    #[error(
        "the receiver cannot keep up with {rate_hz} messages per second: it answered {answered_hz:.0} per second \
         ({answered} in {seconds:.1} s)"
    )]
    NotKeptUp { rate_hz: u64, answered: u64, seconds: f64, answered_hz: f64 },
    #[error(
        "{answered} of {sent} messages were answered, then none for two seconds: a message was lost, which can happen \
         without acknowledgements: use RC, or a lower rate"
    )]
    NotAnswered { answered: u64, sent: u64 },
    #[error("cannot {what} {path}: {reason}: {advice}")]
    Socket { what: &'static str, path: String, reason: String, advice: String },
    #[error("nothing {what} for {waited_s:.1} s on {path}{said}: {advice}")]
    Silent { what: &'static str, path: String, waited_s: f64, said: String, advice: &'static str },
    #[error(
        "{carrier} does not reach {to}: {reason}: see `ip route get ADDRESS` and `nft list ruleset` on both hosts, or name \
         the network with --net"
    )]
    Unreachable { carrier: &'static str, to: String, reason: String },
    #[error(
        "the ranks have no addresses that reach each other: {own} here, {theirs} at the other rank: give their interfaces \
         addresses of one network (`ip address add ADDRESS/PREFIX dev DEV`)"
    )]
    NoCommonNet { own: String, theirs: String },
    #[error(
        "{port} is in use: end the program that uses it (`ss -lnptu`), or give another first port with --data-port"
    )]
    PortTaken { port: String },
    #[error("the peer's address cannot be read: {reason}")]
    PeerAddress { reason: String },
    #[error("the calibration between the ranks failed: {reason}")]
    Calibration { reason: String },
    #[error(
        "the ranks of this host cannot start together: {reason}: run all of them as the same user, outside of containers"
    )]
    Barrier { reason: String },
    #[error("cannot limit how long a rank sleeps: {call} failed: {reason}")]
    Alarm { call: &'static str, reason: String },

    // Processes.
    #[error("the command template {template:?} cannot be used: {reason}")]
    BadTemplate { template: String, reason: String },
    #[error(
        "cannot start the launcher {launcher:?}: {cause}: install an MPI (Debian: apt-get install openmpi-bin), or name the \
         launcher of this site with --mpi 'mpirun -np {{ranks}}'"
    )]
    NoLauncher { launcher: String, cause: io::Error },
    #[error("{program} {why}")]
    NotWrapped { program: String, why: &'static str },
    #[error("{launcher} {how} when {came} of {ranks} ranks had connected{said}")]
    LauncherEnded { launcher: String, how: String, came: usize, ranks: u32, said: String },
    #[error(
        "only {came} of {ranks} ranks of {launcher} have connected within {waited_s} s{said}: ranks on other hosts need an \
         address of this host (--mpi-listen), and slow hosts need more time (--start-timeout)"
    )]
    RanksMissing { launcher: String, came: usize, ranks: u32, waited_s: u64, said: String },
    #[error(
        "{template:?} {what}, but the point has ranks 0 to {}: write {{ranks}} in place of the number", ranks.saturating_sub(1)
    )]
    WrongRanks { template: String, what: String, ranks: u32 },
    #[error("cannot start the agent of rank {rank} with {command:?}: {cause}")]
    Spawn { rank: u32, command: String, cause: io::Error },
    #[error(
        "expected the greeting of rdmascope but read {line}: the command that starts an agent must run rdmascope and print \
         nothing itself"
    )]
    NoGreeting { line: String },
    #[error("{theirs} cannot work with {ours}: install the same version on both hosts")]
    OtherProtocol { theirs: String, ours: String },
    #[error("it does not know this key: copy the command that it printed last; every start has a new key")]
    WrongKey,
    #[error(
        "the key {reason}: a key has 26, letters a to z and digits 2 to 7; copy it from the output of the server"
    )]
    BadKey { reason: String },
    #[error("cannot find the host {host:?}: {reason}: check the name, or give an address")]
    UnknownHost { host: String, reason: String },
    #[error("cannot reach the server {server} within {waited_s} s: {reason}: {remedy}")]
    NoServer { server: String, waited_s: u64, reason: String, remedy: String },
    #[error(
        "this rank cannot reach its coordinator: {reason}: give an address that all hosts can reach with --mpi-listen"
    )]
    NoCoordinator { reason: String },
    #[error(
        "the program at {place} is no server of rdmascope: it sent {line}: give the server's port with -p"
    )]
    OtherProgram { place: String, line: String },
    #[error(
        "{why}: the run ends here, because {who} can only be started again by hand; the points that had ended are kept"
    )]
    CannotGoOn { why: String, who: String },
    #[error(
        "cannot listen on {address}: {cause}: end the program that listens there, or give another port with -p or another \
         address with --listen"
    )]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(
        "no client connected within {waited_s} s: start it with the command above, or wait longer with --wait"
    )]
    NoClient { waited_s: u64 },
    #[error("stopped by {signal} before a client connected")]
    StoppedWaiting { signal: String },
    #[error("the client {client} {how} before it had finished: {} been measured for it", points_had(*points))]
    ClientLost { client: SocketAddr, how: String, points: u64 },
    #[error(
        "stopped by {signal} before the client {client} had finished: {} been measured for it",
        points_had(*points)
    )]
    Stopped { signal: String, client: SocketAddr, points: u64 },
    #[error("the channel is broken: {reason}")]
    BrokenChannel { reason: String },
    #[error("the messages are broken: {reason}")]
    BrokenFrame { reason: String },
    #[error("{who} cannot be used: {cause}")]
    BadAgent { who: String, cause: Box<Self> },
    #[error("{who} {how} while {doing}{said}")]
    AgentEnded { who: String, how: String, doing: String, said: String },
    #[error("{who} gave no answer within {timeout_s} s while {doing}{said}")]
    AgentSilent { who: String, timeout_s: f64, doing: String, said: String },
    #[error("{who} answered \"{reply}\" out of turn while {doing}: this is a bug, please report it")]
    OutOfTurn { who: String, reply: String, doing: String },
    #[error("{who} cannot describe its host: {reason}")]
    NotDescribed { who: String, reason: String },
    #[error("cannot {what}: {cause}")]
    System { what: String, cause: io::Error },
    #[error("stopped by {signal}: the points that had ended are kept")]
    Interrupted { signal: String },
    #[error("cannot keep the result of point {point}: {cause}")]
    Sink { point: u64, cause: Box<dyn std::error::Error + Send + Sync> },
}

fn points_had(points: u64) -> String {
    if points == 1 { "1 point had".to_owned() } else { format!("{points} points had") }
}

/// Which ports a device has.
fn ports_of(ports: u8) -> String {
    if ports == 1 { "it has only port 1".to_owned() } else { format!("its ports are 1 to {ports}") }
}

fn numbered(message: Option<u64>) -> String {
    message.map_or("a message".to_owned(), |number| format!("message {number}"))
}

impl From<mpi::Error> for Error {
    fn from(error: mpi::Error) -> Self {
        Self::Mpi { reason: error.to_string() }
    }
}

impl Error {
    /// Whether it means that a point cannot be measured here, rather than that it failed.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::Clocks { .. }
                | Self::Impossible { .. }
                | Self::LauncherEnded { came: 0, .. }
                | Self::NoAddress { .. }
                | Self::NoLauncher { .. }
                | Self::NotKeptUp { .. }
        )
    }

    /// Whether starting the ranks again would give the same error.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Self::Impossible { .. } | Self::NoLauncher { .. })
    }

    /// Whether the fault is in the input (a plan, a flag, a name) rather than in a later event.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::BadKey { .. }
                | Self::BadTemplate { .. }
                | Self::NoDevice { .. }
                | Self::NoGid { .. }
                | Self::NoPort { .. }
                | Self::NotWrapped { .. }
                | Self::NothingPossible { .. }
                | Self::Plan { .. }
                | Self::PlanRead { .. }
                | Self::PlanUnknown { .. }
        )
    }

    /// Makes an error of the system for an attempt such as "make a socket".
    pub(crate) fn system<E: Into<io::Error>>(what: &str) -> impl Fn(E) -> Self + Copy {
        move |cause| Self::System { what: what.to_owned(), cause: cause.into() }
    }
}
