//! `rdmascope agent`: the end that measures.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bench::process::agent;
use bench::worker::{LocalWorker, SocketOptions};
use clap::Args;
use conditions::{Arranger, Host, Leave};
use measure::clock::Skew;

use crate::backends::providers;
use crate::cli::{NetFlags, PortFlags};
use crate::failure;

#[derive(Args, Debug, Default)]
pub(crate) struct AgentArguments {
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// No point needs one.
    #[arg(long)]
    pub(crate) no_device: bool,
    #[command(flatten)]
    pub(crate) net: NetFlags,
    #[arg(long)]
    pub(crate) cpu: Option<u32>,
    /// How wrong its clock is, for tests.
    #[arg(long)]
    pub(crate) clock_skew: Option<Skew>,
    #[command(flatten)]
    pub(crate) host: HostArguments,
    #[command(flatten)]
    pub(crate) port: PortFlags,
}

/// The host whose environment is arranged: another tree of files than `/` for tests.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostArguments {
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) host_root: Option<PathBuf>,
}

impl HostArguments {
    /// The host.
    pub(crate) fn host(&self) -> Host {
        self.host_root.as_deref().map_or_else(Host::here, Host::new)
    }
}

/// Serves the coordinator at standard input and output until it goes.
pub(crate) fn serve(arguments: AgentArguments) -> anyhow::Result<ExitCode> {
    let (input, output) = agent::take_stdio()?;
    let leave = with_guard(&arguments.host)?;
    agent::serve(input, output, worker(arguments, leave)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What measures on this thread from now on, and may change as much for it.
pub(crate) fn worker(arguments: AgentArguments, leave: Leave) -> anyhow::Result<LocalWorker> {
    // Pinned before anything is allocated, so that memory is where the CPU is.
    if let Some(cpu) = arguments.cpu {
        conditions::pin(&[cpu]).with_context(|| {
            format!("cannot pin the agent to CPU {cpu}: choose one that is allowed (see taskset -p $$)")
        })?;
    }
    let pinned = arguments.cpu.map(|cpu| vec![cpu]);
    let arranger =
        Arranger::new(arguments.host.host(), leave, |line| eprintln!("{}", failure::harmless(line)));
    let worker = LocalWorker::new(
        if arguments.no_device { &[] } else { providers() },
        arguments.device,
        arguments.port.options(),
        pinned,
        arguments.clock_skew,
    );
    let NetFlags { net, data_port } = arguments.net;
    let sockets = SocketOptions { net: net.unwrap_or_default(), port: data_port };
    Ok(worker.arranged_by(arranger).with_sockets(sockets))
}

/// Leave to change the host, with this program as guard.
pub(crate) fn with_guard(host: &HostArguments) -> anyhow::Result<Leave> {
    let program = std::env::current_exe().context("cannot find the executable of this program")?;
    let mut guard = vec![program.to_string_lossy().into_owned(), "guard".to_owned()];
    if let Some(root) = &host.host_root {
        guard.extend(["--host-root".to_owned(), root.display().to_string()]);
    }
    Ok(Leave::Host(guard))
}

/// Guards what an agent changes on the host until it is gone.
pub(crate) fn guard(host: &HostArguments) -> anyhow::Result<ExitCode> {
    let (input, output) = agent::take_stdio()?;
    conditions::guard(host.host(), input, output)?;
    Ok(ExitCode::SUCCESS)
}
