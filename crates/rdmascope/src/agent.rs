//! `rdmascope agent`: the process of a rank, which measures.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use bench::process::agent;
use bench::process::key::Key;
use bench::process::launcher::{KEY_VARIABLE, TOKEN_VARIABLE, dial_back};
use bench::worker::{LocalWorker, MpiOptions, SocketOptions, UcxLog};
use clap::Args;
use conditions::{Arranger, Host, Leave};
use measure::clock::{Clock, Skew};
use verbs::LinkModel;

use crate::backends::providers;
use crate::cli::{NetFlags, PortFlags};
use crate::{failure, launch, restart};

#[derive(Args, Debug, Default)]
pub(crate) struct AgentArguments {
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// No point needs a device.
    #[arg(long)]
    pub(crate) no_device: bool,
    /// Do not calibrate the clock, which takes a while: no point needs exact times.
    #[arg(long)]
    pub(crate) plain_clock: bool,
    /// Some point connects by RDMA CM.
    #[arg(long)]
    pub(crate) rdma_cm: bool,
    #[command(flatten)]
    pub(crate) net: NetFlags,
    #[arg(long)]
    pub(crate) cpu: Option<u32>,
    /// Address on which the coordinator listens, if an MPI launcher has started this agent.
    #[arg(long)]
    pub(crate) connect: Option<SocketAddr>,
    /// Command of the launcher, for errors.
    #[arg(long, requires = "connect")]
    pub(crate) launcher: Option<String>,
    /// CPUs that the ranks of this host use in turn.
    #[arg(long, requires = "connect")]
    pub(crate) cpus: Option<String>,
    #[arg(long, requires = "connect")]
    pub(crate) mpi_library: Option<String>,
    /// Link of the software device for points that name none, for tests.
    #[arg(long)]
    pub(crate) link: Option<LinkModel>,
    /// Error of the clock, for tests.
    #[arg(long)]
    pub(crate) clock_skew: Option<Skew>,
    #[command(flatten)]
    pub(crate) host: HostArguments,
    #[command(flatten)]
    pub(crate) port: PortFlags,
}

/// The host whose environment is changed; for tests, a file tree other than `/`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostArguments {
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) host_root: Option<PathBuf>,
}

impl HostArguments {
    /// Returns the host.
    pub(crate) fn host(&self) -> Host {
        self.host_root.as_deref().map_or_else(Host::here, Host::new)
    }
}

/// Serves the coordinator until it disconnects, on standard input and output or, with `--connect`,
/// by a connection to it.
pub(crate) fn serve(arguments: AgentArguments) -> anyhow::Result<ExitCode> {
    if arguments.rdma_cm && !arguments.no_device {
        restart::reach_manager(arguments.device.as_deref(), arguments.port.options());
    }
    if let Some(coordinator) = arguments.connect {
        return dial_back(arguments, coordinator);
    }
    let (input, output) = agent::take_stdio()?;
    let leave = with_guard(&arguments.host)?;
    agent::serve(input, output, worker(arguments, leave)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Connects to the coordinator and serves it, as one of the ranks that a launcher has started.
fn dial_back(mut arguments: AgentArguments, coordinator: SocketAddr) -> anyhow::Result<ExitCode> {
    // The standard input that a launcher provides may never end.
    drop(agent::take_stdio()?);
    let key = std::env::var(KEY_VARIABLE).unwrap_or_default();
    let key: Key = key.parse().with_context(|| {
        format!("{KEY_VARIABLE} of the coordinator is not in the environment of this rank: let the launcher export it")
    })?;
    for name in [KEY_VARIABLE, TOKEN_VARIABLE] {
        // SAFETY: this process has no other thread yet, which could read the environment.
        unsafe { std::env::remove_var(name) };
    }
    let cpus = arguments.cpus.take().unwrap_or_else(|| launch::EACH.to_owned());
    arguments.cpu = match dial_back::local_rank() {
        Some(rank) => launch::cpu_of(rank, &cpus)?,
        None => None,
    };
    let log = UcxLog::create().context("cannot make a file in memory for the log of UCX")?.map(Arc::new);
    for (name, value) in log.iter().flat_map(|log| log.variables()) {
        // SAFETY: this process has no other thread yet, which could read the environment.
        unsafe { std::env::set_var(name, value) };
    }
    let launcher = arguments.launcher.take();
    let options = MpiOptions { launcher, library: arguments.mpi_library.take(), log };
    let leave = with_guard(&arguments.host)?;
    let worker = worker(arguments, leave)?.with_mpi(options);
    match dial_back::serve(coordinator, key, worker) {
        // Without the coordinator, no error can be reported.
        Err(bench::Error::ClientLost { .. }) => Ok(ExitCode::FAILURE),
        served => Ok(served.map(|()| ExitCode::SUCCESS)?),
    }
}

/// Returns the worker that measures on this thread. `leave` says whether it may change the host.
pub(crate) fn worker(arguments: AgentArguments, leave: Leave) -> anyhow::Result<LocalWorker> {
    // Pinned before anything is allocated, so that memory is near the CPU.
    if let Some(cpu) = arguments.cpu {
        conditions::pin(&[cpu]).with_context(|| {
            format!("cannot pin the agent to CPU {cpu}: choose one that is allowed (see taskset -p $$)")
        })?;
    }
    let pinned = arguments.cpu.map(|cpu| vec![cpu]);
    let arranger =
        Arranger::new(arguments.host.host(), leave, |line| eprintln!("{}", failure::harmless(line)));
    let clock = if arguments.plain_clock { Clock::monotonic() } else { Clock::calibrate() };
    let worker = LocalWorker::new(
        clock,
        if arguments.no_device { &[] } else { providers() },
        arguments.device,
        arguments.port.options(),
        pinned,
        arguments.clock_skew,
    );
    let NetFlags { net, data_port } = arguments.net;
    let sockets = SocketOptions { net: net.unwrap_or_default(), port: data_port };
    let worker = worker.arranged_by(arranger).with_sockets(sockets).over_link(arguments.link);
    Ok(worker.telling(|line| eprintln!("{line}")))
}

/// Returns the permission to change the host, with this program as the guard.
pub(crate) fn with_guard(host: &HostArguments) -> anyhow::Result<Leave> {
    let program = std::env::current_exe().context("cannot find the executable of this program")?;
    let mut guard = vec![program.to_string_lossy().into_owned(), "guard".to_owned()];
    if let Some(root) = &host.host_root {
        guard.extend(["--host-root".to_owned(), root.display().to_string()]);
    }
    Ok(Leave::Host(guard))
}

/// Reverts the changes of an agent on the host when the agent ends.
pub(crate) fn guard(host: &HostArguments) -> anyhow::Result<ExitCode> {
    let (input, output) = agent::take_stdio()?;
    conditions::guard(host.host(), input, output)?;
    Ok(ExitCode::SUCCESS)
}
