//! A point that another tool measures: rank 1 runs its server and rank 0 its client, between the
//! addresses that rdmascope's messages would use, each with the placement of its rank. The result
//! is what the client prints.

pub(crate) mod check;
mod run;
mod words;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use measure::record::{Direction, Reported, Throughput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::run::Program;
use self::words::{Found, Server};
use crate::Error;
use crate::endpoint::kind::{ConnectedEndpoints, PreparedEndpoints, Site};
use crate::fault::{PointError, out_of_order, unreadable};
use crate::host_counters::{Counted, Ways};
use crate::point::{Carrier, Length, PointSpec, Tool};
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;
use crate::socket_endpoint::Reachable;

/// How long a tool may take to print its version, and its server to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a rank tells the other.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Address {
    reachable: Reachable,
    /// The port of its server, if the rank runs one.
    port: u16,
}

/// A rank whose tool is installed and not started.
pub(crate) struct Unstarted {
    tool: Tool,
    carrier: Carrier,
    rank: u32,
    version: String,
    address: Address,
}

impl Unstarted {
    /// Finds the tool, an address and a port.
    pub(crate) fn new(tool: Tool, site: &Site<'_>) -> Result<Self, Error> {
        let spec = site.spec;
        let rank = site.rank;
        let options = site.sockets;
        let carrier = spec.message.endpoint;
        let name = tool.word();
        let least = tool.size_bytes_min(carrier);
        if spec.message.size_bytes < least {
            let reason = format!("{name} sends no messages shorter than {least} B over {}", carrier.name());
            return Err(Error::Impossible { reason });
        }
        let version = run::version(name, PATIENCE)?;
        let reachable = Reachable::own(&options.net, spec.message.socket.family, spec.message.link_layer)?;
        let port = match options.port {
            Some(port) => port,
            None => free_port()?,
        };
        Ok(Self { tool, carrier, rank, version, address: Address { reachable, port } })
    }
}

impl PreparedEndpoints for Unstarted {
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        let address = serde_json::to_value(&self.address).map_err(unreadable)?;
        Ok(Prepared { address, ways: vec![Value::Null; ranks as usize] })
    }

    /// Starts the server, at rank 1, and waits until it listens.
    fn connect(self: Box<Self>, ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError> {
        let Self { tool, carrier, rank, version, address } = *self;
        let other = ranks.get(1 - rank as usize).map_or(&Value::Null, |rank| &rank.address);
        let other = Address::deserialize(other).map_err(unreadable)?;
        let (own, theirs) = address.reachable.route(&other.reachable)?;
        let interface = own.interface.clone();
        if rank == 0 {
            let server = Server { tool, address: theirs.address, port: other.port };
            return Ok(Box::new(Measuring { server, version, interface, running: None }));
        }
        let server = Server { tool, address: own.address, port: address.port };
        let mut running = Program::start(&server.command(carrier))?;
        run::await_listening(&mut running, server.port, PATIENCE)?;
        Ok(Box::new(Measuring { server, version, interface, running: Some(running) }))
    }
}

/// A rank that runs the server or the client of a tool, until it is dropped.
struct Measuring {
    server: Server,
    version: String,
    /// The interface that its messages leave by.
    interface: String,
    /// The server, if this rank runs it.
    running: Option<Program>,
}

impl ConnectedEndpoints for Measuring {
    /// Measures as rank 0. At rank 1 the server runs on its own.
    fn measure(
        &mut self,
        spec: &PointSpec,
        _rank: u32,
        left: Duration,
        _timepiece: &RankClock,
    ) -> Result<Outcome, PointError> {
        if self.running.is_some() {
            return Ok(Outcome::default());
        }
        let Length::Duration(duration_s) = spec.length else { return Err(out_of_order("run")) };
        let words = self.server.client(spec, duration_s as u64);
        let ways = Ways { interfaces: vec![self.interface.clone()], ports: Vec::new() };
        let before = Counted::now(&ways);
        let printed = Program::start(&words)?.output(left)?;
        let host = Counted::now(&ways).since(&before);
        let command = words.join(" ");
        let name = self.server.tool.word();
        let found = words::read(self.server.tool, spec, &printed);
        let found = found.map_err(|what| PointError::Failed(format!("`{command}` printed {what}")))?;
        let (mean_ns, throughput) = match found {
            Found::HalfNs(ns) => (Some(ns), None),
            Found::BytesPerS(rate) => {
                let messages_per_s = rate / spec.message.size_bytes as f64;
                (None, Some(Throughput::of(messages_per_s, spec.message.size_bytes, Direction::Uni)))
            }
        };
        let is_number =
            mean_ns.or(throughput.as_ref().map(|t| t.bytes_per_s)).is_some_and(|number| number > 0.0);
        if !is_number {
            return Err(PointError::Failed(format!(
                "`{command}` measured nothing: no message of {name} arrived"
            )));
        }
        let reported = Some(Reported { program: self.version.clone(), command, mean_ns });
        Ok(Outcome { throughput, reported, host, ..Outcome::default() })
    }
}

/// Returns a port that is free for TCP and UDP now.
fn free_port() -> Result<u16, Error> {
    let failed = Error::system("find a free port");
    for _ in 0..PORTS_TRIED {
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let listener = TcpListener::bind(any).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address.port());
        }
    }
    Err(failed(std::io::ErrorKind::AddrInUse.into()))
}

/// How many ports that are free for TCP are tried for UDP.
const PORTS_TRIED: usize = 16;
