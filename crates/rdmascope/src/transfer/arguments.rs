//! The flags of `rdmascope transfer`.

use std::path::PathBuf;
use std::time::Duration;

use bench::point::{Carrier, Checksum};
use bench::process::dial::Peer;
use bench::process::server::PORT;
use bench::transfer::is_block;
use clap::Args;
use measure::units;

use crate::backends::has_network_device;
use crate::cli::PlanPlacement;
use crate::cli::axes::words;
use crate::cli::count::count;
use crate::cli::time::time;
use crate::launch::is_loopback;
use crate::server_args::{CLIENT_WAIT, given_key, key_of_client};

/// Below the help.
const HELP: &str = "\
Examples:
  rdmascope transfer results --to /mnt/backup
                                       a tree to another directory of this host
  rdmascope transfer a.img --to /data --hosts node1,node2 --via 'ssh {host}'
                                       from node1 to node2
  rdmascope transfer results --to /mnt/backup --resume
                                       only files that are missing or incomplete
  rdmascope transfer --listen 0.0.0.0 --to /data
                                       on node7: receives, and prints the key
  rdmascope transfer results --peer node7 --key KEY
                                       on another host: sends to node7
  rdmascope transfer results --to /mnt/backup --over tcp --streams 2
  rdmascope transfer results --to /mnt/backup --expect 'throughput >= 100 MB/s'

What arrives:
  Files arrive with their permissions and times, symbolic links as links. Holes
  of sparse files stay holes. Pipes, sockets and devices are skipped with a
  message. DIR/. stands for the contents of DIR. Each file is written under a
  hidden name and renamed when its checksum agrees, so that a file with its
  final name is complete. If a file cannot be read or written, a message says
  why, the other files arrive, and the exit status is 1.

Exit status:
  0  everything has arrived
  1  something has not arrived
  2  wrong usage
  3  everything has arrived, and an expectation is not met";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct TransferArguments {
    /// Files to send, and directories with their contents.
    #[arg(value_name = "SOURCE", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) sources: Vec<PathBuf>,
    /// Directory for the files; it is made if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// What carries the files: verbs or tcp [default: verbs if a device reaches the other host].
    #[arg(long, value_name = "CARRIER", value_parser = ["verbs", "tcp"])]
    pub(crate) over: Option<String>,
    /// Skip files that are there with the same size and time. Of a long file whose transfer was
    /// interrupted, send only the missing part.
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, compare files of the same size by their contents, not by their times: both
    /// hosts read them.
    #[arg(long, requires = "resume")]
    pub(crate) checksum_all: bool,
    /// Checksum that verifies each file before it gets its name: xxh3, blake3 or none.
    #[arg(long, value_name = "CHECKSUM", default_value = "xxh3", value_parser = words::<Checksum>())]
    pub(crate) checksum: Checksum,
    /// Write each file to its disk before it gets its name, for the case of a power failure.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Read and write files past the page cache (O_DIRECT), where their file systems can do that.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Over TCP, let the kernel send files (sendfile). rdmascope does not read them, so this needs
    /// --checksum none.
    #[arg(long, conflicts_with = "direct")]
    pub(crate) sendfile: bool,
    /// Bytes that are read, sent and written at a time.
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = block)]
    pub(crate) block: u32,
    /// Outstanding blocks of each queue pair [default: 8].
    #[arg(long, value_name = "N", value_parser = count(1..=1024_u32))]
    pub(crate) depth: Option<u32>,
    /// Number of queue pairs or TCP connections, which blocks use in turn.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=64_u32))]
    pub(crate) streams: u32,
    /// Register memory anew for each block, to see the cost of registration.
    #[arg(long)]
    pub(crate) no_registration_cache: bool,
    /// Make a connection for each file, to see the cost of connections.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_persistent_session: bool,
    /// Link to model, such as `4X DDR`, if the device can model a link.
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<String>,
    /// Print each file.
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// A bound on a number of the transfer, such as 'throughput >= 1 GB/s'. The exit status is 3 if
    /// it is not met.
    #[arg(long, value_name = "BOUND", conflicts_with = "listen")]
    pub(crate) expect: Vec<String>,
    /// End a transfer that takes longer than this [default: 30 days].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Print a key, wait for a client that has it, and receive its files into --to. Listens on this
    /// address, such as 0.0.0.0 for all addresses of this host [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    #[arg(conflicts_with_all = ["peer", "hosts", "via"], requires = "to")]
    pub(crate) listen: Option<String>,
    /// Send to this host, which waits with --listen.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["hosts", "via"])]
    pub(crate) peer: Option<String>,
    /// Key that the receiver printed. RDMASCOPE_KEY in the environment may have it instead, which
    /// other users of this host cannot see.
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// TCP port of the receiver.
    #[arg(short = 'p', long, default_value_t = PORT)]
    pub(crate) port: u16,
    /// Time to wait for the other host, such as 60 or 5min [default: 30s with --peer, 10min with
    /// --listen].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) placement: PlanPlacement,
}

/// Parses the size of a block.
fn block(text: &str) -> Result<u32, String> {
    let bytes = units::parse_size(text).map_err(|error| error.to_string())?;
    let found = u32::try_from(bytes).ok().filter(|_| is_block(bytes));
    found.ok_or_else(|| "give 64KiB to 64MiB, a multiple of 4KiB".to_owned())
}

impl TransferArguments {
    /// Returns what carries the files.
    pub(crate) fn carrier(&self) -> Carrier {
        match self.over.as_deref() {
            Some("tcp") => Carrier::Tcp,
            Some(_) => Carrier::Verbs,
            // The software device reaches only this host.
            None if !self.is_between_hosts() || has_network_device() => Carrier::Verbs,
            None => Carrier::Tcp,
        }
    }

    fn is_between_hosts(&self) -> bool {
        let is_far = |host: &String| !is_loopback(host);
        !self.placement.placement.location.hosts.is_empty() || self.peer.as_ref().is_some_and(is_far)
    }

    /// Returns the host of `--peer`, which waits for files.
    pub(crate) fn peer(&self) -> anyhow::Result<Option<Peer>> {
        let Some(host) = &self.peer else { return Ok(None) };
        let key = key_of_client(given_key(self.key.as_deref())?, host)?;
        let wait = self.wait.unwrap_or(CLIENT_WAIT);
        Ok(Some(Peer { host: host.clone(), port: self.port, key, wait }))
    }
}
