//! The receiver, `rdmascope transfer --listen`: waits for files and writes them to its own `--to`.

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
use crate::server_args::{SERVER_WAIT, given_key, listening_address};
use crate::stdout;

/// A client with the key may send files, and do nothing else.
const NOTHING: &str = "a receiver of files does not let its client change this host";

/// Waits for a client with the key, and receives its files.
pub(super) fn wait(arguments: &TransferArguments) -> anyhow::Result<ExitCode> {
    let (Some(listen), Some(to)) = (&arguments.listen, &arguments.to) else { return Ok(ExitCode::FAILURE) };
    let address = listening_address(listen, arguments.port)?;
    let patience = arguments.wait.unwrap_or(SERVER_WAIT);
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

/// Files that have arrived, and whether all have.
static FILES: AtomicU64 = AtomicU64::new(0);
static IS_WHOLE: AtomicBool = AtomicBool::new(false);

/// Reads a line of the worker: the result of the transfer. Prints what has not arrived.
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

/// Returns the first lines that the receiver prints, with the client's command.
fn banner(server: &Server, listen: &str, patience: Duration) -> String {
    let address = server.address();
    let option = if address.port() == PORT { String::new() } else { format!(" -p {}", address.port()) };
    format!(
        "Waiting {} s on {}, TCP port {}, for the sender:\nrdmascope transfer FILES --peer {}{option} --key {}\n",
        patience.as_secs(),
        address.ip(),
        address.port(),
        host_of(Some(listen), address),
        server.key()
    )
}
