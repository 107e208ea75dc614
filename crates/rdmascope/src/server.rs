//! The server: a command such as `rdmascope lat send` without a host, which waits for its client.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench::process::agent::{PointError, Worker};
use bench::process::interrupt::Interrupt;
use bench::process::key::Key;
use bench::process::server::{PORT, Server};
use bench::worker::{self, LocalWorker};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use conditions::Leave;

use crate::agent::{AgentArguments, HostArguments};
use crate::backends::providers;
use crate::cli::{Location, NetFlags, Placement, SocketPlacement};
use crate::server_args::ServerArgs;
use crate::{agent, banner, failure, launch, restart, stdout};

/// A server that waits for its client. It does not know the benchmark, which the client decides.
pub(crate) struct Waiting {
    /// The words of the command, such as `lat send`, which the client's command has, too.
    words: String,
    ends: ServerArgs,
    /// The device or the sockets that carry messages.
    placement: Either,
    /// Flags that were given and have no effect.
    idle: Vec<String>,
}

impl Waiting {
    /// Returns the server of a command line, if it starts one. `line` must have been parsed, so
    /// that its flags are known.
    pub(crate) fn asked_for(line: &Command, matches: &ArgMatches) -> Option<Self> {
        let mut command = line;
        let mut matches = matches;
        let mut words = Vec::new();
        while let Some((name, below)) = matches.subcommand() {
            command = command.find_subcommand(name)?;
            matches = below;
            words.push(name.to_owned());
        }
        // Only benchmarks have a server.
        if !(has(command, "local") && has(command, "listen")) {
            return None;
        }
        let ends = ServerArgs::from_arg_matches(matches).ok()?;
        let placement = Either::of(command, matches)?;
        let is_server = ends.host.is_none() && !ends.local && placement.location().via.is_none();
        let idle = idle(command, matches);
        is_server.then(|| Self { words: words.join(" "), ends, placement, idle })
    }

    /// Waits for the client, serves it, and prints how many points it measured.
    pub(crate) fn serve(self) -> anyhow::Result<ExitCode> {
        // Only the client knows whether points connect by RDMA CM.
        if let Either::Device(placement) = &self.placement {
            restart::reach_manager(placement.device.as_deref(), placement.port.options());
        }
        let cpu = launch::own_cpu(self.placement.location(), SERVER_RANK)?;
        let address = self.ends.address()?;
        let interrupt = Arc::new(Interrupt::install()?);
        // A missing device has the same error and exit status as in other commands.
        if let Either::Device(placement) = &self.placement {
            worker::check(providers(), placement.device.as_deref(), placement.port.options())?;
        }
        let host = HostArguments::default();
        let leave = match self.ends.allow_environment {
            true => agent::with_guard(&host)?,
            false => Leave::Nothing(NOT_ALLOWED.to_owned()),
        };
        let arguments = AgentArguments { cpu, host, ..self.placement.arguments(address.ip()) };
        let mut worker = agent::worker(arguments, leave)?.without_files();
        let given = self.ends.given_key()?;
        if given.is_some() {
            eprintln!("rdmascope: the key was given, not generated: use a key only once");
        }
        let server = Server::listen(address, given.map_or_else(Key::generate, Ok)?)?;
        let described = worker.describe(SERVER_RANK as u32).map_err(reason)?;
        let here = banner::rank(SERVER_RANK, described.device.as_ref(), Some(&described.environment));
        stdout::print(&self.banner(&server, &here))?;
        if !self.idle.is_empty() {
            eprintln!(
                "rdmascope: the client's settings apply; these options of this command have no effect: {}",
                self.idle.join(", ")
            );
        }
        let (points, client) = serve_client(server, worker, self.ends.server_wait(), interrupt)?;
        let were = if points == 1 { "was" } else { "were" };
        let points = measure::text::points(points);
        stdout::print(&format!("{points} {were} measured for the client {client}.\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the first lines that a server prints, with the client's command.
    fn banner(&self, server: &Server, here: &str) -> String {
        let address = server.address();
        let ip = address.ip();
        let port = address.port();
        let whom = if ip.is_loopback() { ", which only this host reaches (see --listen)" } else { "" };
        let option = if port == PORT { String::new() } else { format!(" -p {port}") };
        format!(
            "# rdmascope {version}: server of {words}\n{here}# listening on {ip}, TCP port {port}{whom}, for {wait} s\n\
             Waiting for client to connect...\n\
             rdmascope {words} {host}{option} --key {key}\n",
            version = env!("CARGO_PKG_VERSION"),
            words = self.words,
            wait = self.ends.server_wait().as_secs(),
            host = host_of(self.ends.listen.as_deref(), address),
            key = server.key(),
        )
    }
}

/// Waits for the client and serves it. Returns the number of points, and the client's address.
pub(crate) fn serve_client(
    server: Server,
    worker: LocalWorker,
    patience: Duration,
    interrupt: Arc<Interrupt>,
) -> anyhow::Result<(u64, SocketAddr)> {
    let mut told = |text: &str| eprintln!("rdmascope: {}", failure::harmless(text));
    let session = server.wait(patience, Some(&interrupt), &mut told)?;
    let client = session.address();
    // A script that has read the client's command may have closed the pipe: the server goes on.
    let _ = stdout::print(&format!("The client {client} has connected.\n"));
    let abandoned = |error: bench::Error| failure::told(&error.into());
    Ok((session.serve(worker, Some(interrupt), abandoned)?, client))
}

/// Returns the name or address by which a client reaches a server that listens on `address`.
pub(crate) fn host_of(listen: Option<&str>, address: SocketAddr) -> String {
    match (listen, address.ip()) {
        (_, IpAddr::V4(ip)) if !ip.is_unspecified() => ip.to_string(),
        // With its zone, for which the client may have another name.
        (Some(text), IpAddr::V6(ip)) if !ip.is_unspecified() => text.to_owned(),
        _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

/// What carries the messages of a server.
enum Either {
    Device(Placement),
    Sockets(SocketPlacement),
}

impl Either {
    /// Returns the device or the sockets of a command line.
    fn of(command: &Command, matches: &ArgMatches) -> Option<Self> {
        match has(command, "device") {
            true => Placement::from_arg_matches(matches).ok().map(Self::Device),
            false => SocketPlacement::from_arg_matches(matches).ok().map(Self::Sockets),
        }
    }

    fn location(&self) -> &Location {
        match self {
            Self::Device(placement) => &placement.location,
            Self::Sockets(placement) => &placement.location,
        }
    }

    /// Returns the arguments of an agent.
    fn arguments(&self, listens: IpAddr) -> AgentArguments {
        match self {
            Self::Device(Placement { device, port, .. }) => {
                AgentArguments { device: device.clone(), port: *port, ..AgentArguments::default() }
            }
            Self::Sockets(SocketPlacement { net, .. }) => {
                AgentArguments { no_device: true, net: net.of_server(listens), ..AgentArguments::default() }
            }
        }
    }
}

/// Whether a command has an argument. (Matches report an unknown argument in debug builds only.)
fn has(command: &Command, argument: &str) -> bool {
    command.get_arguments().any(|known| known.get_id() == argument)
}

/// Returns the flags of a command line that only a client may set, such as `--size`.
fn idle(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let placed = [
        Placement::augment_args(ServerArgs::augment_args(Command::new("own"))),
        NetFlags::augment_args(Command::new("own")),
    ];
    let is_own = |id: &clap::Id| {
        placed.iter().flat_map(Command::get_arguments).any(|argument| argument.get_id() == id)
    };
    let is_given = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let others =
        command.get_arguments().filter(|argument| !is_own(argument.get_id()) && is_given(argument.get_id()));
    others.filter_map(|argument| argument.get_long()).map(|long| format!("--{long}")).collect()
}

fn reason(error: PointError) -> anyhow::Error {
    let (PointError::Failed(text) | PointError::NotMeasured(text)) = error;
    anyhow::Error::msg(text)
}

/// The server's rank; the client has rank 0.
const SERVER_RANK: usize = 1;
/// A client with the key may measure here, but not change the host.
const NOT_ALLOWED: &str =
    "the server does not let its client change this host: start the server with --allow-environment";
