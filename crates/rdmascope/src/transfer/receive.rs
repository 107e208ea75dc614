//! The end that waits for files: it was started by hand, and names its own directory.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bench::point::News;
use bench::process::interrupt::Interrupt;
use bench::process::key::Key;
use bench::process::server::{PORT, Server};
use conditions::Leave;

use super::arguments::TransferArguments;
use crate::agent::{self, AgentArguments};
use crate::failure::{DID_NOT_FINISH, harmless};
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
    let placement = &arguments.placement.placement;
    let of_agent = AgentArguments {
        device: placement.device.clone(),
        port: placement.port,
        net: arguments.placement.net.of_server(address.ip()),
        plain_clock: true,
        ..AgentArguments::default()
    };
    let worker = agent::worker(of_agent, Leave::Nothing(NOTHING.to_owned()))?;
    let worker = worker.without_files().receiving_into(Some(to.clone().into_os_string())).telling(hear);
    let given = given_key(arguments.key.as_deref())?;
    let server = Server::listen(address, given.map_or_else(Key::generate, Ok)?)?;
    stdout::print(&banner(&server, listen, patience))?;
    let (_, client) = serve_client(server, worker, patience, interrupt)?;
    let files = FILES.load(Relaxed);
    let plural = if files == 1 { "file has" } else { "files have" };
    stdout::print(&format!("{files} {plural} arrived from the client {client}.\n"))?;
    Ok(ExitCode::from(if IS_WHOLE.load(Relaxed) { 0 } else { DID_NOT_FINISH }))
}

/// Files that have arrived, and whether that is all.
static FILES: AtomicU64 = AtomicU64::new(0);
static IS_WHOLE: AtomicBool = AtomicBool::new(false);

/// Hears what became of the transfer, and says what has not arrived.
fn hear(line: &str) {
    let Some(News::Arrived { files, failures, error }) = News::read(line) else {
        return eprintln!("{}", harmless(line));
    };
    for sentence in failures.iter().chain(&error) {
        eprintln!("rdmascope: {}", harmless(sentence));
    }
    FILES.store(files, Relaxed);
    IS_WHOLE.store(failures.is_empty() && error.is_none(), Relaxed);
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
