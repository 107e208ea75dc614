//! The flags of `rdmascope open-loop`.

use bench::axis;
use bench::plan::Settings;
use bench::point::Load;
use clap::{Args, Subcommand};
use measure::units;

use super::fan_out::counts;
use super::words::words;
use super::{AllRanks, Atomic, Pushed, SocketRanks, Sockets};

/// Below the help of `rdmascope open-loop`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope open-loop send             2 B, 10,000 in a second for a second
  rdmascope open-loop send --rate 1k,10k,100k,1M
                                       until the device cannot keep up
  rdmascope open-loop send --loaders 0,1,4 --load incast
                                       while others write to who answers
  rdmascope open-loop read --loaders 0..3 --load outcast --load-size 1MiB -D 5
                                       while others read from who asks
  rdmascope open-loop send --loaders 2 --hosts n1,n2,n3,n4 --via 'ssh {host}'
                                       a rank on each host
  rdmascope run load                   latency over rate and load, with a report";

#[derive(Args, Debug)]
pub(crate) struct OpenLoop {
    #[command(subcommand)]
    pub(crate) operation: OpenLoopOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpenLoopOperation {
    /// Send to a posted receive, and back.
    #[command(after_help = EXAMPLES)]
    Send(Pushed<OpenLoopFlags>),
    /// RDMA Write with immediate data, and back.
    #[command(after_help = EXAMPLES)]
    Write(OpenLoopFlags),
    /// RDMA Read.
    #[command(after_help = EXAMPLES)]
    Read(OpenLoopFlags),
    /// Atomic operation on eight bytes.
    #[command(after_help = EXAMPLES)]
    Atomic(Atomic<OpenLoopFlags>),
    #[command(flatten)]
    Sockets(Sockets<OpenLoopFlags<SocketRanks>>),
}

#[derive(Args, Debug)]
pub(crate) struct OpenLoopFlags<R: Args = AllRanks> {
    /// Messages that are due in a second, such as 500, 10k or 2M, up to 50M; several with commas. They last a second where
    /// neither -n nor -D says how many.
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, value_delimiter = ',')]
    #[arg(default_value = "10k")]
    pub(crate) rate: Vec<u64>,
    /// How many ranks load the device meanwhile, each with a flood over RC: one number, several with commas, or a range.
    #[arg(long, value_name = "N", value_parser = loaders, default_value = "0")]
    pub(crate) loaders: Loaders,
    /// Where their load goes.
    #[arg(long, value_name = "WHERE", default_value = "incast", value_parser = words::<Load>())]
    pub(crate) load: Load,
    /// Size of their messages, of which each has 128 under way.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, default_value = "64KiB")]
    pub(crate) load_size: u64,
    #[command(flatten)]
    pub(crate) all: R,
}

impl<R: Args> OpenLoopFlags<R> {
    /// Adds these to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        let Loaders(loaders) = &self.loaders;
        let settings = settings
            .axis(axis::LOADERS.values(loaders.clone()))
            .axis(axis::RATE_HZ.values(self.rate.clone()));
        if loaders.iter().all(|loaders| *loaders == 0) {
            return settings;
        }
        settings.axis(axis::LOAD.value(self.load)).axis(axis::LOAD_BYTES.value(self.load_size))
    }
}

/// The numbers of loaders that are measured.
#[derive(Clone, Debug)]
pub(crate) struct Loaders(pub(crate) Vec<u32>);

fn loaders(text: &str) -> Result<Loaders, String> {
    counts(text, axis::LOADERS).map(Loaders)
}
