//! The flags of `rdmascope pairs`.

use bench::axis;
use bench::plan::Settings;
use bench::point::Traffic;
use clap::{Args, Subcommand};

use super::fan_out::counts;
use super::{AllRanks, Atomic, Pushed, SocketRanks, Sockets};

/// Below the help of `rdmascope pairs`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope pairs write                2 B over RC, of 1, 2, 4 and 8 pairs
  rdmascope pairs read --pairs 1..4 -s 1..1KiB
                                       over message size
  rdmascope pairs write --stream -s 64KiB
                                       what all pairs carry together
  rdmascope pairs send --hosts n1,n2 --via 'ssh {host}'
                                       one end of each pair on either host
  rdmascope run sur-2007               the evaluation that this is from";

#[derive(Args, Debug)]
pub(crate) struct Pairs {
    #[command(subcommand)]
    pub(crate) operation: PairsOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PairsOperation {
    /// Send to a posted receive: half a round trip.
    #[command(after_help = EXAMPLES)]
    Send(Pushed<PairsFlags>),
    /// RDMA Write to a peer that polls its memory: half a round trip.
    #[command(after_help = EXAMPLES)]
    Write(Pushed<PairsFlags>),
    /// RDMA Read: the whole time.
    #[command(after_help = EXAMPLES)]
    Read(PairsFlags),
    /// Atomic operation on eight bytes: the whole time.
    #[command(after_help = EXAMPLES)]
    Atomic(Atomic<PairsFlags>),
    #[command(flatten)]
    Sockets(Sockets<PairsFlags<SocketRanks>>),
}

#[derive(Args, Debug)]
pub(crate) struct PairsFlags<R: Args = AllRanks> {
    /// How many pairs do the same at the same time: one number, several with commas, or a range.
    #[arg(long, value_name = "N", value_parser = pairs, default_value = "1,2,4,8")]
    pub(crate) pairs: PairCounts,
    /// Throughput of all pairs in the time that all are at it, instead of latency.
    #[arg(long)]
    pub(crate) stream: bool,
    #[command(flatten)]
    pub(crate) all: R,
}

impl<R: Args> PairsFlags<R> {
    /// Adds these to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        let traffic = if self.stream { Traffic::Stream } else { Traffic::PingPong };
        settings.axis(axis::TRAFFIC.value(traffic)).axis(axis::PAIRS.values(self.pairs.0.clone()))
    }
}

/// The numbers of pairs that are measured.
#[derive(Clone, Debug)]
pub(crate) struct PairCounts(pub(crate) Vec<u32>);

fn pairs(text: &str) -> Result<PairCounts, String> {
    counts(text, axis::PAIRS).map(PairCounts)
}
