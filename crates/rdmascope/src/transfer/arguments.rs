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
use crate::launch::is_loopback;
use crate::server_args::{CLIENT_WAIT_S, given_key, key_of_client};

/// Below the help.
const HELP: &str = "\
Examples:
  rdmascope transfer results --to /mnt/backup
                                       a tree, from one directory to another
  rdmascope transfer a.img b.img --to /data --hosts node1,node2 --via 'ssh {host}'
                                       from node1 to node2
  rdmascope transfer results --to /mnt/backup --resume
                                       what is there already is not sent again
  rdmascope transfer --listen 0.0.0.0 --to /data
                                       on node7: waits, and prints the key
  rdmascope transfer results --peer node7 --key KEY
                                       on another host: sends to node7
  rdmascope transfer results --to /mnt/backup --over tcp --streams 2

What arrives:
  Files with their permissions and times, directories, symbolic links as links;
  holes of sparse files stay holes. Pipes, sockets and devices are skipped, and
  that is said. DIR/. stands for what is in DIR. Each file is written under a
  hidden name and gets its own when its checksum agrees: whatever has its name
  is whole. A file that cannot be read or written is a sentence, the others
  arrive, and the exit status is 1.

Exit status:
  0  all has arrived
  1  something has not
  2  wrong usage";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct TransferArguments {
    /// Files and directories to send, with all that is in them.
    #[arg(value_name = "SOURCE", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) sources: Vec<PathBuf>,
    /// Directory that they arrive in; it is made where it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// What carries them: verbs or tcp [default: verbs where a device reaches the other end].
    #[arg(long, value_name = "CARRIER", value_parser = ["verbs", "tcp"])]
    pub(crate) over: Option<String>,
    /// Send only what is not there with the same size and time, and of a long file only what is
    /// missing since a transfer was interrupted.
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, compare the contents of files that are there with the same size, whatever
    /// their times: both ends read them.
    #[arg(long, requires = "resume")]
    pub(crate) checksum_all: bool,
    /// What each file is verified with before it gets its name: xxh3, blake3 or none.
    #[arg(long, value_name = "CHECKSUM", default_value = "xxh3", value_parser = words::<Checksum>())]
    pub(crate) checksum: Checksum,
    /// Have files on their disk before they get their names, for whoever fears a power failure.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Read and write files past the page cache (O_DIRECT), where their file systems can do that.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Over TCP, have the kernel hand files to the connection (sendfile): nothing reads them here,
    /// so that it goes with --checksum none.
    #[arg(long, conflicts_with = "direct")]
    pub(crate) sendfile: bool,
    /// Bytes that are read, sent and written at a time.
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = block)]
    pub(crate) block: u32,
    /// Blocks under way on each queue pair [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) depth: Option<u32>,
    /// Queue pairs, or TCP connections, that blocks take in turn.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) streams: u32,
    /// Register memory anew for each block, to see what it costs.
    #[arg(long)]
    pub(crate) no_registration_cache: bool,
    /// Make a connection for each file, to see what it costs.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_persistent_session: bool,
    /// What the link is to be like, where the device can imitate one, such as `4X DDR`.
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<String>,
    /// Print each file.
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// End a transfer that takes longer than this [default: 30 days].
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Wait for whoever has the key that is printed, and receive what it sends into --to; on this
    /// address, such as 0.0.0.0 for all of this host [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1")]
    #[arg(conflicts_with_all = ["peer", "hosts", "via"], requires = "to")]
    pub(crate) listen: Option<String>,
    /// Send to the host that waits with --listen.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["hosts", "via"])]
    pub(crate) peer: Option<String>,
    /// Key that it printed, or RDMASCOPE_KEY in the environment, which other users of this host
    /// cannot see.
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// TCP port on which it waits.
    #[arg(short = 'p', long, default_value_t = PORT)]
    pub(crate) port: u16,
    /// Seconds to wait for the other end [default: 30 with --peer, 600 with --listen].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wait: Option<u32>,
    #[command(flatten)]
    pub(crate) placement: PlanPlacement,
}

/// The size of a block.
fn block(text: &str) -> Result<u32, String> {
    let bytes = units::parse_size(text).map_err(|error| error.to_string())?;
    let found = u32::try_from(bytes).ok().filter(|_| is_block(bytes));
    found.ok_or_else(|| "a block has 64KiB to 64MiB, and a multiple of 4KiB".to_owned())
}

impl TransferArguments {
    /// What carries the files.
    pub(crate) fn carrier(&self) -> Carrier {
        match self.over.as_deref() {
            Some("tcp") => Carrier::Tcp,
            Some(_) => Carrier::Verbs,
            // The software device reaches as far as this host.
            None if !self.is_between_hosts() || has_network_device() => Carrier::Verbs,
            None => Carrier::Tcp,
        }
    }

    fn is_between_hosts(&self) -> bool {
        let is_far = |host: &String| !is_loopback(host);
        !self.placement.placement.location.hosts.is_empty() || self.peer.as_ref().is_some_and(is_far)
    }

    /// The host that waits for files, if it was started by hand.
    pub(crate) fn peer(&self) -> anyhow::Result<Option<Peer>> {
        let Some(host) = &self.peer else { return Ok(None) };
        let key = key_of_client(given_key(self.key.as_deref())?, host)?;
        let wait = Duration::from_secs(self.wait.unwrap_or(CLIENT_WAIT_S).into());
        Ok(Some(Peer { host: host.clone(), port: self.port, key, wait }))
    }
}
