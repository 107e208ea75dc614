//! The end that waits for files: it was started by hand, and names its own directory.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench::process::interrupt::Interrupt;
use bench::process::key::Key;
use bench::process::server::{PORT, Server};
use bench::worker::Net;
use conditions::Leave;

use super::arguments::TransferArguments;
use crate::agent::{self, AgentArguments};
use crate::server::{host_of, serve_client};
use crate::server_args::{SERVER_WAIT_S, given_key, listening_address};
use crate::stdout;

/// Whoever has the key may send files here, and no more.
const NOTHING: &str = "whoever receives files does not let its client change this host";

/// Waits for whoever has the key, and receives what it sends.
pub(super) fn wait(arguments: &TransferArguments) -> anyhow::Result<ExitCode> {
    let (Some(listen), Some(to)) = (&arguments.listen, &arguments.to) else { return Ok(ExitCode::FAILURE) };
    let address = listening_address(listen, arguments.port)?;
    let patience = Duration::from_secs(arguments.wait.unwrap_or(SERVER_WAIT_S).into());
    let interrupt = Arc::new(Interrupt::install()?);
    let mut net = arguments.placement.net.clone();
    if address.ip().is_loopback() && net.net.is_none() {
        net.net = Some(Net::Loopback);
    }
    let placement = &arguments.placement.placement;
    let of_agent = AgentArguments {
        device: placement.device.clone(),
        port: placement.port,
        net,
        ..AgentArguments::default()
    };
    let worker = agent::worker(of_agent, Leave::Nothing(NOTHING.to_owned()))?;
    let worker = worker.without_files().receiving_into(Some(to.clone().into_os_string()));
    let given = given_key(arguments.key.as_deref())?;
    let server = Server::listen(address, given.map_or_else(Key::generate, Ok)?)?;
    stdout::print(&banner(&server, listen, patience))?;
    let (transfers, client) = serve_client(server, worker, patience, interrupt)?;
    let what = if transfers == 0 { "Nothing has" } else { "A transfer has" };
    stdout::print(&format!("{what} come from the client {client}.\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The client's command.
fn banner(server: &Server, listen: &str, patience: Duration) -> String {
    let address = server.address();
    let option = if address.port() == PORT { String::new() } else { format!(" -p {}", address.port()) };
    format!(
        "Waiting {} s on {}, TCP port {}, for whoever sends files:\nrdmascope transfer FILES --peer {}{option} --key {}\n",
        patience.as_secs(),
        address.ip(),
        address.port(),
        host_of(Some(listen), address),
        server.key()
    )
}
