//! What can go wrong in this crate and is not our own bug.
//!
//! Every message is one sentence or two: where it is, what it is, why it cannot be so, and what to do. `place` is
//! where a plan says something: `plans/x.toml:12`, `--set iterations=0`, or `the plan` where it was built in code.
//! A `cause` is part of the message already, so it is not given again as `source()`: a chain would print it twice.

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
        "there is no plan {name:?}: no file has that name and the plans that come with the program are {known}{hint}"
    )]
    PlanUnknown { name: String, known: String, hint: String },
    #[error("{place}: this is not TOML: {message}")]
    Syntax { place: String, message: String },
    #[error("{place}: unknown key {key:?} in {table}{hint}")]
    UnknownKey { place: String, key: String, table: String, hint: String },
    #[error("{place}: {key} in {table} must be {expected}, not {found}")]
    WrongType { place: String, key: String, table: String, expected: String, found: String },
    #[error("{place}: {table} has no {key:?}: add {example}")]
    Missing { place: String, key: String, table: String, example: String },
    #[error("{place}: unknown {key} {value:?} in {table}{hint}")]
    UnknownValue { place: String, key: String, table: String, value: String, hint: String },
    #[error("{place}: {key} in {table}: {reason}")]
    BadValue { place: String, key: String, table: String, reason: String },
    #[error("{place}: scheduler in [[environment]]: {reason}")]
    BadScheduler { place: String, reason: String },
    #[error("{place}: the environment {name:?} cannot be defined: {reason}")]
    BadEnvironment { place: String, name: String, reason: String },
    #[error("{place}: the name {name:?} cannot be used: names are made of letters, digits, '-' and '_'")]
    BadName { place: String, name: String },
    #[error("{place}: {reason}: give KEY=VALUE or experiment.NAME.KEY=VALUE, e.g. iterations=100")]
    BadOverride { place: String, reason: String },

    // What a plan asks for.
    #[error("{place}: the plan has no experiment: add an [[experiment]] with a name and a pattern")]
    NoExperiment { place: String },
    #[error("{place}: a second experiment is named {name:?}: give every experiment a name of its own")]
    DuplicateExperiment { place: String, name: String },
    #[error(
        "{place}: the axis {axis} of experiment {experiment:?} is empty: give it a value or leave it out"
    )]
    EmptyAxis { place: String, axis: String, experiment: String },
    #[error(
        "{place}: the axis {axis} of experiment {experiment:?} has {value} twice: use repetitions to measure a point again"
    )]
    DuplicateValue { place: String, axis: String, experiment: String, value: String },
    #[error("{place}: size_bytes of experiment {experiment:?} has 0: a message has at least 1 byte")]
    ZeroSize { place: String, experiment: String },
    #[error(
        "{place}: mtu_bytes {mtu_bytes} of experiment {experiment:?} is no path MTU: it must be 256, 512, 1024, 2048 or 4096"
    )]
    BadMtu { place: String, experiment: String, mtu_bytes: u64 },
    #[error(
        "{place}: size_bytes {size_bytes} of experiment {experiment:?} is above its mtu_bytes {mtu_bytes}, and UD carries \
         a message in one packet: end the sizes at {mtu_bytes} or give UD an experiment of its own"
    )]
    DatagramTooLong { place: String, experiment: String, size_bytes: u64, mtu_bytes: u32 },
    #[error("{place}: {key} of experiment {experiment:?} is 0: a queue holds at least 1 request")]
    ZeroDepth { place: String, key: String, experiment: String },
    #[error("{place}: iterations of experiment {experiment:?} is 0: measure at least 1 message")]
    ZeroIterations { place: String, experiment: String },
    #[error(
        "{place}: {key} of experiment {experiment:?} is {value}, more than {max}: to measure for longer, give a duration"
    )]
    TooManyIterations { place: String, key: String, experiment: String, value: u64, max: u64 },
    #[error("{place}: {key} of experiment {experiment:?} is 0: it must be at least 1")]
    ZeroCount { place: String, key: String, experiment: String },
    #[error(
        "{place}: {key} of experiment {experiment:?} is {value}: it must be above zero and at most 30 days"
    )]
    BadLength { place: String, key: String, experiment: String, value: String },
    #[error("{place}: experiment {experiment:?} has both iterations and duration: keep one of them")]
    TwoLengths { place: String, experiment: String },
    #[error(
        "{place}: timeout of experiment {experiment:?} is {timeout_s} s, which its duration of {duration_s} s cannot fit in"
    )]
    ShortTimeout { place: String, experiment: String, timeout_s: f64, duration_s: f64 },
    #[error(
        "{place}: signal_interval {interval} of experiment {experiment:?} is above its tx_depth {tx_depth}: the send queue \
         would be full before a completion frees it, so lower signal_interval or raise tx_depth"
    )]
    IntervalAboveDepth { place: String, experiment: String, interval: u32, tx_depth: u32 },
    #[error(
        "{place}: post_list {list} of experiment {experiment:?} does not fit its signal_interval {interval} and tx_depth \
         {tx_depth}: together they may be tx_depth + 1 at most, or the send queue would be full before a completion frees it"
    )]
    ListAboveDepth { place: String, experiment: String, list: u32, interval: u32, tx_depth: u32 },
    #[error(
        "{place}: experiment {experiment:?} times every message by itself: post_list is for the pattern \"stream\""
    )]
    NotAList { place: String, experiment: String },
    #[error(
        "{place}: rx_fill {fill} of experiment {experiment:?} is above its rx_depth {rx_depth}: a queue cannot hold more \
         receives than it is deep"
    )]
    FillAboveDepth { place: String, experiment: String, fill: u32, rx_depth: u32 },
    #[error("{place}: {pairs} queue_pairs of experiment {experiment:?} are more than {max}")]
    TooManyQueuePairs { place: String, experiment: String, pairs: u32, max: u32 },
    #[error("{place}: experiment {experiment:?} asks for {what}, which cannot be: {why}")]
    Refused { place: String, experiment: String, what: String, why: String },
    #[error(
        "{place}: experiment {experiment:?} has the pattern {pattern:?} and so no direction \"bi\": use the pattern \"stream\""
    )]
    NotBidirectional { place: String, experiment: String, pattern: String },
    #[error("{place}: the plan asks for {points} points, more than {max}: shorten an axis or split the plan")]
    TooManyPoints { place: String, points: u64, max: u64 },

    // Figures, findings and the numbers beside them.
    #[error("{place}: the figure {title:?} cannot be read: {reason}")]
    BadFigure { place: String, title: String, reason: String },
    #[error("{place}: the figure {title:?} shows an unknown experiment {name:?}{hint}")]
    FigureExperiment { place: String, title: String, name: String, hint: String },
    #[error("{place}: the figure {title:?} uses an unknown axis {name:?}{hint}")]
    FigureAxis { place: String, title: String, name: String, hint: String },
    #[error("{place}: the figure {title:?} shows an unknown quantity {name:?}{hint}")]
    FigureQuantity { place: String, title: String, name: String, hint: String },
    #[error("{place}: the finding {claim:?} cannot be asked for: {reason}")]
    BadFinding { place: String, claim: String, reason: String },
    #[error("{place}: cannot read the reference {file:?} of the figure {title:?}: {reason}")]
    ReferenceRead { place: String, file: String, title: String, reason: String },
    #[error(
        "{file}:{line}: {found} cells where the heading has {expected}: give every row as many cells as the heading"
    )]
    RaggedReference { file: String, line: usize, found: usize, expected: usize },

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
        "{batches} batches of {step} took {waited_s:.1} s, which is the point's time limit: ask for fewer (iterations) or \
         give it a longer timeout"
    )]
    SlowCalls { step: &'static str, batches: u64, waited_s: f64 },
    #[error("{reason}")]
    Impossible { reason: String },
    #[error("nothing of this plan can be measured: {reason}")]
    NothingPossible { reason: String },
    #[error("there is no device named {name:?} here: this host has {known}")]
    NoDevice { name: String, known: String },
    #[error("{device} has no port {port}: its ports are 1 to {ports}")]
    NoPort { device: String, port: u8, ports: u8 },
    #[error(
        "port {port} of {device} has no GID {index} in use: those in use are {known} (see `rdmascope devices`)"
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
        "port {port} of {device} has no IP address that RDMA CM could use: give its network interface one \
         (`ip addr add 192.0.2.1/24 dev DEV`)"
    )]
    NoAddress { device: String, port: u8 },
    #[error(
        "the GIDs of the two ends cannot reach each other: {own} here, {theirs} there: choose entries of one kind and \
         address family with -x (see `rdmascope devices` at both ends)"
    )]
    GidsApart { own: String, theirs: String },
    #[error("a point that is no pipeline was run as one: this is a bug, please report it")]
    NoPipeline,
    #[error("one-way latencies have no bound: {reason}")]
    Clocks { reason: String },
    #[error(
        "no sample arrived: {missed} of {steps} steps missed, the samples of {unsent} not transmitted or lost: measure more \
         steps, or at a lower rate"
    )]
    NoSamples { steps: u64, missed: u64, unsent: u64 },
    #[error("only {messages} messages arrived: there is nothing to measure")]
    TooFewMessages { messages: u64 },
    #[error(
        "{rate_hz} messages in a second are more than are answered: {answered_hz:.0} in a second came back, {answered} \
         in {seconds:.1} s"
    )]
    NotKeptUp { rate_hz: u64, answered: u64, seconds: f64, answered_hz: f64 },
    #[error(
        "{answered} of {sent} messages were answered and then none for two seconds: one was lost, as without acknowledgements \
         it may be; use RC, or a lower rate"
    )]
    NotAnswered { answered: u64, sent: u64 },
    #[error("cannot {what} {path}: {reason}: {advice}")]
    Socket { what: &'static str, path: String, reason: String, advice: String },
    #[error("nothing {what} for {waited_s:.1} s on {path}{said}: {advice}")]
    Silent { what: &'static str, path: String, waited_s: f64, said: String, advice: &'static str },
    #[error(
        "{carrier} does not reach {to}: {reason}: see `ip route get ADDRESS` and `nft list ruleset` at both ends, or name the \
         network with --net"
    )]
    Unreachable { carrier: &'static str, to: String, reason: String },
    #[error(
        "the ranks have no addresses that reach each other: {own} here, {theirs} there: give their interfaces addresses of one \
         network (`ip address add ADDRESS/PREFIX dev DEV`)"
    )]
    NoCommonNet { own: String, theirs: String },
    #[error("{port} is taken: end what has it (`ss -lnptu`), or give another first port with --data-port")]
    PortTaken { port: String },
    #[error("the peer's address cannot be read: {reason}")]
    PeerAddress { reason: String },
    #[error("the cache-line calibration between the ranks failed: {reason}")]
    Calibration { reason: String },
    #[error(
        "the ranks of this host cannot begin together: {reason}; run all of them as the same user, outside of containers"
    )]
    Barrier { reason: String },
    #[error("sleeps cannot be limited: {call} failed: {reason}")]
    Alarm { call: &'static str, reason: String },

    // Processes.
    #[error("the command template {template:?} cannot be used: {reason}")]
    BadTemplate { template: String, reason: String },
    #[error("cannot start the agent of rank {rank} with {command:?}: {cause}")]
    Spawn { rank: u32, command: String, cause: io::Error },
    #[error(
        "expected the greeting of rdmascope but read {line}: whatever starts an agent must run rdmascope and print nothing itself"
    )]
    NoGreeting { line: String },
    #[error("{theirs} cannot work with {ours}: install the same version at both ends")]
    OtherProtocol { theirs: String, ours: String },
    #[error(
        "it does not know this key: copy the command that it printed when it started, for every start has a new key"
    )]
    WrongKey,
    #[error("the key {reason}: it has 26 letters from a to z and 2 to 7, as the server printed it")]
    BadKey { reason: String },
    #[error("cannot find the host {host:?}: {reason}: check the name, or give an address")]
    UnknownHost { host: String, reason: String },
    #[error("cannot reach the server {server} within {waited_s} s: {reason}: {remedy}")]
    NoServer { server: String, waited_s: u64, reason: String, remedy: String },
    #[error(
        "what answers at {place} is no server of rdmascope but says {line}: give the server's port with -p"
    )]
    OtherProgram { place: String, line: String },
    #[error(
        "{why}: the run ends here, for {who} can only be started again by hand; the points that had ended are kept"
    )]
    CannotGoOn { why: String, who: String },
    #[error(
        "cannot listen on {address}: {cause}: end what listens there, or give another port with -p or address with --listen"
    )]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(
        "no client came within {waited_s} s: start it with the command above, or wait longer with --wait"
    )]
    NoClient { waited_s: u64 },
    #[error("stopped by {signal} before a client came")]
    StoppedWaiting { signal: String },
    #[error("the client {client} {how} before it had finished: {points} points had been measured for it")]
    ClientLost { client: SocketAddr, how: String, points: u64 },
    #[error(
        "stopped by {signal} before the client {client} had finished: {points} points had been measured for it"
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

fn numbered(message: Option<u64>) -> String {
    message.map_or("a message".to_owned(), |number| format!("message {number}"))
}

impl Error {
    /// Whether it says of a point that it cannot be measured here, rather than that something went wrong.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Clocks { .. } | Self::Impossible { .. } | Self::NotKeptUp { .. })
    }

    /// Whether it lies in what was asked for (a plan, a flag, a name) rather than in what happened then.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::AgentEnded { .. }
                | Self::AgentSilent { .. }
                | Self::Alarm { .. }
                | Self::BadAgent { .. }
                | Self::BrokenChannel { .. }
                | Self::BrokenFrame { .. }
                | Self::Calibration { .. }
                | Self::CannotGoOn { .. }
                | Self::ClientLost { .. }
                | Self::Clocks { .. }
                | Self::Completion { .. }
                | Self::Deadline { .. }
                | Self::GidsApart { .. }
                | Self::Impossible { .. }
                | Self::Interrupted { .. }
                | Self::Listen { .. }
                | Self::Measure(_)
                | Self::NoClient { .. }
                | Self::NoGreeting { .. }
                | Self::Library { .. }
                | Self::NoAddress { .. }
                | Self::NoCommonNet { .. }
                | Self::NoUsableGid { .. }
                | Self::NoServer { .. }
                | Self::NotDescribed { .. }
                | Self::OtherProgram { .. }
                | Self::OtherProtocol { .. }
                | Self::OutOfTurn { .. }
                | Self::PeerAddress { .. }
                | Self::PortNotActive { .. }
                | Self::PortTaken { .. }
                | Self::Silent { .. }
                | Self::Socket { .. }
                | Self::Unreachable { .. }
                | Self::Sink { .. }
                | Self::SlowCalls { .. }
                | Self::Spawn { .. }
                | Self::Stopped { .. }
                | Self::StoppedWaiting { .. }
                | Self::System { .. }
                | Self::NotAnswered { .. }
                | Self::NoPipeline
                | Self::NoSamples { .. }
                | Self::NotKeptUp { .. }
                | Self::TooFewMessages { .. }
                | Self::UnknownHost { .. }
                | Self::Verbs(_)
                | Self::WrongKey
        )
    }
}
