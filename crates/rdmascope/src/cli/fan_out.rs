//! The flags of `rdmascope fan-out`.

use bench::axis::{self, Key};
use bench::plan::Settings;
use bench::point::{Mesh, Notify};
use clap::{Args, Subcommand};
use measure::units;

use super::words::words;
use super::{AllRanks, Atomic, Pushed, SocketRanks, Sockets};

/// Below the help of `rdmascope fan-out`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope fan-out send               1 B over RC, to 1 up to 15 others at once
  rdmascope fan-out send --peers 15 -s 1..1MiB -c UC
                                       over message size
  rdmascope fan-out write --peers 1,15 -s 1KiB
                                       the receivers poll their memory
  rdmascope fan-out read --notify memory
                                       from n, and then n from one
  rdmascope fan-out multicast -s 1KiB  one packet out, n datagrams back
  rdmascope fan-out send --hosts n1,n2,n3,n4 --via 'ssh {host}' --peers 1..3
                                       a rank on each host
  rdmascope run hoefler-2006           the evaluation that this is from";

#[derive(Args, Debug)]
pub(crate) struct FanOut {
    #[command(subcommand)]
    pub(crate) operation: FanOutOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FanOutOperation {
    /// Send to n posted receives: half the time until all have sent back.
    #[command(after_help = EXAMPLES)]
    Send(Pushed<FanOutFlags>),
    /// RDMA Write to n, each of whom polls its memory: half the time until all have written back.
    #[command(after_help = EXAMPLES)]
    Write(Pushed<FanOutFlags>),
    /// RDMA Read from n at once, the whole time; then n read from one, and each takes its own time.
    #[command(after_help = EXAMPLES)]
    Read(FanOutRead),
    /// Atomic operation on eight bytes at n, in the two stages of reads.
    #[command(after_help = EXAMPLES)]
    Atomic(Atomic<FanOutFlags>),
    /// One datagram to a group of n: half the time until all have sent back.
    #[command(after_help = EXAMPLES)]
    Multicast(FanOutFlags),
    #[command(flatten)]
    Sockets(Sockets<FanOutFlags<SocketRanks>>),
}

#[derive(Args, Debug)]
pub(crate) struct FanOutRead {
    /// How a rank learns that its data is there; memory relies on its being placed in order.
    #[arg(long, value_name = "HOW", default_value = "completion", value_parser = words::<Notify>())]
    pub(crate) notify: Notify,
    #[command(flatten)]
    pub(crate) flags: FanOutFlags,
}

#[derive(Args, Debug)]
pub(crate) struct FanOutFlags<R: Args = AllRanks> {
    /// How many others one rank talks to at once: one number, several with commas, or a range.
    #[arg(long, value_name = "N", value_parser = peers, default_value = "1..15")]
    pub(crate) peers: Peers,
    /// Connect all ranks with all, though only one talks to the others.
    #[arg(long)]
    pub(crate) full_mesh: bool,
    #[command(flatten)]
    pub(crate) all: R,
}

impl<R: Args> FanOutFlags<R> {
    /// Adds these to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        let settings = settings.axis(axis::PEERS.values(self.peers.0.clone()));
        if self.full_mesh { settings.axis(axis::MESH.value(Mesh::Full)) } else { settings }
    }
}

/// The n of 1:n that are measured.
#[derive(Clone, Debug)]
pub(crate) struct Peers(pub(crate) Vec<u32>);

fn peers(text: &str) -> Result<Peers, String> {
    counts(text, axis::PEERS).map(Peers)
}

/// Numbers that an axis has: one, several with commas, or ranges.
pub(super) fn counts(text: &str, axis: Key<u32>) -> Result<Vec<u32>, String> {
    let min = axis.row.least;
    let max = axis.row.most.map_or(u64::MAX, |bound| bound.most);
    let all: Option<Vec<_>> = text.split(',').map(units::parse_counts).collect();
    let all =
        all.map(|all| all.concat()).filter(|all| all.iter().all(|n| (min..=max).contains(&u64::from(*n))));
    all.ok_or_else(|| format!("give numbers from {min} to {max} such as 15, 1,7,15 or 1..15"))
}
