//! A transfer in the place of endpoints: rank 0 sends, rank 1 receives.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use measure::clock::{Clock, Deadline};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Checksum;
use super::link::renewed::{Makes, Renewed};
use super::link::tcp::{TcpInlet, TcpOutlet};
use super::link::verbs::{Another, Unconnected, VerbsAddress, VerbsInlet, VerbsOutlet, Wanted};
use super::link::{BLOCK_BYTES_MIN, Inlet, Outlet, Patience, is_block, is_ring};
use super::scratch;
use super::sink::{Receipt, Target, receive};
use super::source::{Sending, What, send};
use super::told::EndTold;
use super::watch::{News, Telling, Watch};
use crate::Error;
use crate::axis;
use crate::cpu;
use crate::endpoint::kind::{ConnectedEndpoints, EndpointKind, PreparedEndpoints, Site};
use crate::fault::{PointError, out_of_order, unreadable};
use crate::host_counters::{Counted, Ways};
use crate::point::{Pattern, Place, PointSpec};
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;
use crate::scratch::ScratchDirectory;
use crate::socket_endpoint::{Listening, Reachable, connect_bare, token};
use crate::verbs_endpoint::{Open, Unconnected as Endpoint};

/// The rank of the source. The other rank is the sink.
const SOURCE: u32 = 0;

/// The address of a rank.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Address {
    Tcp {
        reachable: Reachable,
        /// The port that the sink listens on.
        port: u16,
        block_bytes: u64,
    },
    Verbs(VerbsAddress),
}

/// The part of a rank's address for its peer alone.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Way {
    /// The number that a TCP connection sends first.
    token: u64,
}

/// A rank that is not connected.
struct Waiting {
    rank: u32,
    link: Bare,
    block_bytes: usize,
    depth: usize,
    streams: usize,
    /// Whether all files take one connection.
    persists: bool,
    /// Whether the kernel sends files over TCP connections (sendfile(2)).
    splices: bool,
    /// The highest rate of a TCP connection, in bit/s.
    pacing_bits_per_s: Option<u64>,
    end: End,
    scratch: Option<ScratchDirectory>,
    tell: fn(&str),
    clock: Clock,
    /// The time to prepare, in ns.
    session_ns: f64,
}

/// An unconnected link.
enum Bare {
    Tcp(Reachable, Option<Listening>),
    Verbs(Box<Unconnected>, Another),
}

/// The task of a rank.
enum End {
    Sends(Sending, Telling),
    Receives(Box<Receipt>),
}

/// Makes the files or the directory of a rank, and its unconnected link.
///
/// # Errors
/// Why the point cannot be measured here.
pub(crate) fn prepare(site: &mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError> {
    let spec = site.spec;
    let clock = site.rank_clock.clock;
    bounded(spec)?;
    if site.rank > 1 {
        return Err(out_of_order("transfer files"));
    }
    let (end, scratch) = if site.rank == SOURCE { sends(spec)? } else { receives(spec)? };
    let begin = clock.now();
    let message = &spec.message;
    let block_bytes = axis::BLOCK_BYTES.at(&spec.axes).unwrap_or(BLOCK_BYTES_MIN) as usize;
    let depth = message.tx_depth.max(1) as usize;
    let (link, streams) = if message.endpoint.is_verbs() {
        <Endpoint as EndpointKind>::arrange(site)?;
        let open: &Open = site.device.open()?;
        let wanted = Wanted {
            is_source: site.rank == SOURCE,
            pairs: message.queue_pairs.max(1) as usize,
            block_bytes,
            depth,
            keeps_registrations: axis::REGISTRATION_CACHE.at(&spec.axes).unwrap_or(true),
        };
        let link = Unconnected::new(&open.context, &open.port, wanted, clock)?;
        let another = Another {
            context: open.context.clone(),
            port: Arc::clone(&open.port),
            wanted,
            clock,
            patience: patience(site.rank),
        };
        (Bare::Verbs(Box::new(link), another), wanted.pairs)
    } else {
        let reachable = Reachable::own(&site.sockets.net, message.socket.family, message.link_layer)?;
        let listens = site.rank != SOURCE;
        let listening = listens.then(|| Listening::new(site.sockets, message.socket.family)).transpose()?;
        (Bare::Tcp(reachable, listening), message.socket.streams.max(1) as usize)
    };
    let session_ns = clock.ns_f64(clock.now().since(begin));
    Ok(Box::new(Waiting {
        rank: site.rank,
        link,
        block_bytes,
        depth,
        streams,
        persists: axis::PERSISTENT_SESSION.at(&spec.axes).unwrap_or(true),
        splices: axis::SENDFILE.at(&spec.axes).unwrap_or(false),
        pacing_bits_per_s: message.socket.pacing_bits_per_s,
        end,
        scratch,
        tell: site.tell,
        clock,
        session_ns,
    }))
}

/// Whether a point makes files at a rank, besides the user's own files.
pub(crate) fn makes_files(spec: &PointSpec) -> bool {
    let is_memory = |place: Option<Place>| place == Some(Place::Memory);
    let both = [axis::FILE_SOURCE.at(&spec.axes), axis::FILE_SINK.at(&spec.axes)];
    spec.pattern == Pattern::TRANSFER && spec.is_measurement() && !both.into_iter().all(is_memory)
}

/// Refuses sizes that no plan asks for: a server that was started by hand receives its points from
/// another program.
fn bounded(spec: &PointSpec) -> Result<(), PointError> {
    let bytes = u64::from(axis::BLOCK_BYTES.at(&spec.axes).unwrap_or(BLOCK_BYTES_MIN));
    let message = &spec.message;
    let connections = if message.endpoint.is_verbs() { message.queue_pairs } else { message.socket.streams };
    let blocks = u64::from(message.tx_depth.max(1)) * u64::from(connections.max(1));
    if !is_block(bytes) || !is_ring(blocks, blocks.saturating_mul(bytes)) {
        let words = format!("a transfer cannot have {blocks} blocks of {bytes} bytes");
        return Err(PointError::NotMeasured(words));
    }
    Ok(())
}

/// Returns the task of the source: it sends existing trees, files that are made for the point, or
/// memory.
fn sends(spec: &PointSpec) -> Result<(End, Option<ScratchDirectory>), PointError> {
    let checksum = axis::CHECKSUM.at(&spec.axes).unwrap_or(Checksum::Xxh3);
    let place = axis::FILE_SOURCE.at(&spec.axes).unwrap_or(Place::File);
    let is_direct = place == Place::Direct;
    if let Some(asked) = &spec.transfer {
        let sources = asked.sources.iter().map(PathBuf::from).collect();
        let sending = Sending { what: What::Paths(sources), checksum, is_direct, resumes: asked.resumes };
        return Ok((End::Sends(sending, asked.telling), None));
    }
    let files = axis::FILES.at(&spec.axes).unwrap_or(1);
    let bytes = spec.message.size_bytes;
    if place == Place::Memory {
        let what = What::Memory { files, bytes };
        let sending = Sending { what, checksum, is_direct, resumes: false };
        return Ok((End::Sends(sending, Telling::default()), None));
    }
    let scratch = scratch::directory(spec.sink_dir.as_deref())?;
    scratch::fill(scratch.path(), files, bytes)?;
    let what = What::Paths(vec![contents_of(scratch.path())]);
    let sending = Sending { what, checksum, is_direct, resumes: false };
    Ok((End::Sends(sending, Telling::default()), Some(scratch)))
}

/// Returns the path that stands for the contents of a directory.
fn contents_of(directory: &Path) -> PathBuf {
    let mut path = directory.as_os_str().to_owned().into_vec();
    path.extend(b"/.");
    OsString::from_vec(path).into()
}

/// Returns the task of the sink: it receives into a directory of the user, into one that is made
/// for the point, or into memory.
fn receives(spec: &PointSpec) -> Result<(End, Option<ScratchDirectory>), PointError> {
    let checksum = axis::CHECKSUM.at(&spec.axes).unwrap_or(Checksum::Xxh3);
    let place = axis::FILE_SINK.at(&spec.axes).unwrap_or(Place::File);
    let is_direct = place == Place::Direct;
    let (path, scratch) = match &spec.transfer {
        Some(asked) => {
            let to = asked.to.as_ref().ok_or_else(|| out_of_order("receive files"))?;
            (Some(PathBuf::from(to)), None)
        }
        None if place == Place::Memory => (None, None),
        None => {
            let scratch = scratch::directory(spec.sink_dir.as_deref())?;
            (Some(scratch.path().to_owned()), Some(scratch))
        }
    };
    let session = token()?;
    let open = |path: PathBuf| {
        Target::open(&path, session).map_err(|error| {
            let what = format!("cannot write files to {}: {}", path.display(), words(&error));
            PointError::Failed(what)
        })
    };
    let target = path.map(open).transpose()?;
    let compares = spec.transfer.as_ref().is_some_and(|asked| asked.compares);
    let syncs = spec.transfer.as_ref().is_some_and(|asked| asked.syncs);
    Ok((End::Receives(Box::new(Receipt { target, checksum, is_direct, compares, syncs })), scratch))
}

/// Returns how long a rank waits for its peer. The point's time limit comes with the run.
fn patience(rank: u32) -> Patience {
    Patience {
        deadline: Deadline::after(Duration::MAX),
        peer: if rank == SOURCE { "the sink" } else { "the source" },
    }
}

/// Returns an error of the system in words.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "its parent directory does not exist".to_owned(),
        io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

impl PreparedEndpoints for Waiting {
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        let (address, token) = match &self.link {
            Bare::Verbs(link, ..) => (Address::Verbs(link.address()?), 0),
            Bare::Tcp(reachable, listening) => {
                let port = listening.as_ref().map_or(0, |listening| listening.port);
                let block_bytes = self.block_bytes as u64;
                let token = listening.as_ref().map_or(0, |listening| listening.token);
                (Address::Tcp { reachable: reachable.clone(), port, block_bytes }, token)
            }
        };
        let address = serde_json::to_value(address).map_err(unreadable)?;
        let way = serde_json::to_value(Way { token }).map_err(unreadable)?;
        let ways = (0..ranks).map(|rank| if rank == self.rank { Value::Null } else { way.clone() });
        Ok(Prepared { address, ways: ways.collect() })
    }

    fn connect(self: Box<Self>, ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError> {
        let Self { rank, link, block_bytes, depth, streams, persists, end, .. } = *self;
        let Self { splices, pacing_bits_per_s, scratch, tell, clock, session_ns, .. } = *self;
        let begin = clock.now();
        let other = ranks.get(1 - rank as usize).ok_or_else(|| out_of_order("connect"))?;
        let address = Address::deserialize(&other.address).map_err(unreadable)?;
        let mut told = EndTold::default();
        let patience = patience(rank);
        let mut interface = None;
        let wire = match (link, address) {
            (Bare::Verbs(link, another), Address::Verbs(address)) => {
                if let Some(shrunk) = link.shrunk() {
                    told.notes.insert("blocks".to_owned(), shrunk.to_owned());
                }
                let link = link.connect(&another.port, &address, another.patience)?;
                match rank {
                    SOURCE => {
                        Wire::out(Box::new(VerbsOutlet::new(link)), persists, clock, another.of_source())
                    }
                    _ => Wire::into(Box::new(VerbsInlet(link)), persists, clock, another.of_sink()),
                }
            }
            (Bare::Tcp(own, listening), Address::Tcp { reachable, port, block_bytes: theirs }) => {
                let (near, far) = own.route(&reachable)?;
                interface = Some(near.interface.clone());
                let bytes = usize::try_from(theirs).unwrap_or(usize::MAX).min(block_bytes);
                match listening {
                    Some(listening) => {
                        let accept = move || -> Result<TcpInlet, Error> {
                            let connections = listening.accept(1 - rank, streams)?;
                            TcpInlet::new(connections, block_bytes, depth, patience)
                        };
                        let first = accept()?;
                        let another: Makes<dyn Inlet + Send> = Box::new(move |_| {
                            let mut inlet = accept()?;
                            inlet.answer(&[])?;
                            Ok(Box::new(inlet))
                        });
                        Wire::into(Box::new(first), persists, clock, another)
                    }
                    None => {
                        let way = Way::deserialize(&other.way).map_err(unreadable)?;
                        let ends = (rank, 1 - rank);
                        let reach = move || -> Result<TcpOutlet, Error> {
                            let connections = connect_bare(
                                (&near, &far),
                                (port, way.token),
                                ends,
                                (streams, pacing_bits_per_s),
                            )?;
                            TcpOutlet::new(connections, bytes, splices, patience)
                        };
                        let first = reach()?;
                        // The empty answer shows that the sink has accepted the connection. The
                        // source thus does not run ahead of a busy sink.
                        let another: Makes<dyn Outlet + Send> = Box::new(move |_| {
                            let mut outlet = reach()?;
                            outlet.answers(true)?;
                            Ok(Box::new(outlet))
                        });
                        Wire::out(Box::new(first), persists, clock, another)
                    }
                }
            }
            _ => return Err(out_of_order("connect")),
        };
        told.session_ns = session_ns + clock.ns_f64(clock.now().since(begin));
        let ways = Ways { interfaces: interface.into_iter().collect(), ports: Vec::new() };
        Ok(Box::new(Connected { wire: Some(wire), end, _scratch: scratch, told, ways, tell }))
    }
}

/// Returns the outcome of a transfer, for the user of the receiving host.
fn arrival(told: &Result<EndTold, Error>) -> News {
    match told {
        Ok(told) => {
            let counts = told.counts.clone();
            News::Arrived { files: counts.files, failures: counts.failures, error: counts.stopped }
        }
        Err(error) => News::Arrived { files: 0, failures: Vec::new(), error: Some(error.to_string()) },
    }
}

/// A connected rank.
struct Connected {
    /// Dropped after a failure, so that the peer notices it at once.
    wire: Option<Wire>,
    end: End,
    /// The files that were made for the point. Dropping it removes them.
    _scratch: Option<ScratchDirectory>,
    told: EndTold,
    ways: Ways,
    tell: fn(&str),
}

enum Wire {
    Out(Box<dyn Outlet>),
    In(Box<dyn Inlet>),
}

impl Wire {
    /// Returns the wire of a source. All files take `link` if it persists. Otherwise each later
    /// file takes a link from `makes`.
    fn out(
        link: Box<dyn Outlet + Send>,
        persists: bool,
        clock: Clock,
        makes: Makes<dyn Outlet + Send>,
    ) -> Self {
        Self::Out(if persists { link } else { Box::new(Renewed::new(link, makes, clock)) })
    }

    /// Returns the wire of a sink, with the same choice.
    fn into(
        link: Box<dyn Inlet + Send>,
        persists: bool,
        clock: Clock,
        makes: Makes<dyn Inlet + Send>,
    ) -> Self {
        Self::In(if persists { link } else { Box::new(Renewed::new(link, makes, clock)) })
    }
}

impl ConnectedEndpoints for Connected {
    fn measure(
        &mut self,
        spec: &PointSpec,
        _rank: u32,
        left: Duration,
        rank_clock: &RankClock,
    ) -> Result<Outcome, PointError> {
        let clock = rank_clock.clock;
        let before = Counted::now(&self.ways);
        let used_before = cpu::of_process();
        let told = match (&mut self.wire, &mut self.end) {
            (Some(Wire::Out(outlet)), End::Sends(sending, telling)) => {
                outlet.ends_at(Deadline::after(left));
                let paths = match &sending.what {
                    What::Paths(paths) => paths.as_slice(),
                    What::Memory { .. } => &[],
                };
                let watch = Watch::new(*telling, self.tell, clock, paths);
                send(&mut **outlet, sending, watch, clock)
            }
            (Some(Wire::In(inlet)), End::Receives(receipt)) => {
                inlet.ends_at(Deadline::after(left));
                receive(&mut **inlet, receipt, clock)
            }
            _ => return Err(out_of_order("transfer files")),
        };
        let used = cpu::of_process().zip(used_before);
        let host = Counted::now(&self.ways).since(&before);
        if told.is_err() {
            self.wire = None;
        }
        if spec.transfer.as_ref().is_some_and(|asked| asked.telling.arrival) {
            (self.tell)(&arrival(&told).line());
        }
        let told = told?;
        let (user_ns, system_ns) = used.map_or((0.0, 0.0), |(now, then)| (now.0 - then.0, now.1 - then.1));
        let mut notes = told.notes.clone();
        notes.extend(self.told.notes.clone());
        let told = EndTold { user_ns, system_ns, session_ns: self.told.session_ns, notes, ..told };
        let told = Some(serde_json::to_value(told).map_err(unreadable)?);
        Ok(Outcome { told, host, ..Outcome::default() })
    }
}
