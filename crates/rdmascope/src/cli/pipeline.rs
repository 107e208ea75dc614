//! The flags of `rdmascope pipeline`.

use bench::axis;
use bench::plan::Settings;
use bench::point::{Family, Filling, Poll, Protocol, Service, Signal, Sink, Timer};
use clap::{Args, Subcommand};
use measure::conditions::Wanted;
use measure::units;

use super::fan_out::counts;
use super::words::{some_words, words};
use super::{Circumstances, Site, SocketPlacement, Sockets};

/// Below the help of `rdmascope pipeline`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope pipeline shmem --local     8 values, 10,000 times in a second
  rdmascope pipeline infiniband --local --rate 100,1k,10k,100k
                                       how late samples are over the rate
  rdmascope pipeline infiniband --local -c UD --rate 25k --values 1,8,64
  rdmascope pipeline udp --local --rate 10k --timer timerfd
                                       a generator that sleeps between steps
  rdmascope pipeline zeromq --local --rate 100,1k,10k --protocol pair
                                       the same over a message library
  rdmascope pipeline shmem --local --rate 1M --sink csv --sink-dir logs
                                       every sample of both ends in a file
  rdmascope pipeline infiniband --listen 0.0.0.0
                                       on node7: waits, and prints the key
  rdmascope pipeline infiniband node7 --key KEY --rate 100k -D 5
                                       on another host: with the clocks' bound
  rdmascope run potter-2018-nodes --quick
                                       rates, sizes and nodes, with a report";

#[derive(Args, Debug)]
pub(crate) struct Pipeline {
    #[command(subcommand)]
    pub(crate) node: PipelineNode,
}

/// What carries the samples.
#[derive(Debug, Subcommand)]
pub(crate) enum PipelineNode {
    /// Queue pairs of a verbs device: samples are written where they are sent from, and read where they arrive.
    #[command(after_help = EXAMPLES, aliases = ["verbs", "send"])]
    Infiniband(PipelineFlags),
    #[command(flatten)]
    Sockets(Sockets<PipelineSockets>),
    /// iceoryx2: shared memory by a middleware, where the program is built with its feature `iceoryx2`.
    #[command(after_help = EXAMPLES)]
    Iceoryx2(PipelineSockets),
    /// ZeroMQ over TCP, as it is installed.
    #[command(after_help = EXAMPLES)]
    Zeromq(PipelineLibrary),
    /// NNG over TCP, the successor of nanomsg, as it is installed.
    #[command(after_help = EXAMPLES)]
    Nng(PipelineLibrary),
    /// nanomsg over TCP, as it is installed.
    #[command(after_help = EXAMPLES)]
    Nanomsg(PipelineLibrary),
}

/// What is generated, and when.
#[derive(Args, Debug)]
pub(crate) struct Samples {
    /// Samples that are due in a second, such as 500, 10k or 1M; several with commas.
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, value_delimiter = ',')]
    #[arg(default_value = "10k")]
    pub(crate) rate: Vec<u64>,
    /// Values of a sample, 8 B each beside 24 B of its own, up to 64: one number, several with commas, or a range.
    #[arg(long, value_name = "N", value_parser = values, default_value = "8")]
    pub(crate) values: Values,
    /// What they are.
    #[arg(long, value_name = "SIGNAL", default_value = "random", value_parser = words::<Signal>())]
    pub(crate) signal: Signal,
    /// What tells when the next is due: `tsc` spins on the clock, `timerfd` sleeps for the kernel's timer.
    #[arg(long, value_name = "TIMER", default_value = "tsc", value_parser = words::<Timer>())]
    pub(crate) timer: Timer,
    /// Steps for each rate, with those of the warm-up at most 2,000,000, which are stamped in memory.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) iters: Option<u64>,
    /// Seconds for each rate, instead of a number of steps [default: 1].
    #[arg(
        short = 'D',
        long,
        value_name = "SECONDS",
        conflicts_with = "iters",
        allow_negative_numbers = true
    )]
    pub(crate) duration: Option<f64>,
    /// Steps before the first that counts [default: a tenth].
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u64>,
    /// Keep the samples of both ends in files, in a format of VILLASnode or as Parquet, written after the last sample
    /// [default: null].
    #[arg(long, value_name = "FORMAT", value_parser = words::<Sink>())]
    pub(crate) sink: Option<Sink>,
    /// Directory for these files, on the host of each end [default: they are removed once they are written].
    #[arg(long, value_name = "DIR", requires = "sink")]
    pub(crate) sink_dir: Option<String>,
    /// How who takes the samples waits for them [default: busy; of sockets event].
    #[arg(long, value_name = "MODE", value_parser = some_words::<Poll>(&["busy", "event"]))]
    pub(crate) poll: Option<Poll>,
}

impl Samples {
    /// Settings of a plan with these.
    pub(crate) fn settings(&self) -> Settings {
        let Values(values) = &self.values;
        let settings = Settings {
            iterations: self.iters,
            duration_s: self.duration,
            warmup: self.warmup,
            sink_dir: self.sink_dir.clone(),
            ..Settings::default()
        };
        let settings = settings
            .axis(axis::RATE_HZ.values(self.rate.clone()))
            .axis(axis::VALUES.values(values.clone()))
            .axis(axis::SIGNAL.value(self.signal))
            .axis(axis::TIMER.value(self.timer))
            .axis(axis::SINK.value(self.sink.unwrap_or(Sink::Null)));
        self.poll.into_iter().fold(settings, |settings, poll| settings.axis(axis::POLL.value(poll)))
    }
}

/// A pipeline over a verbs device.
#[derive(Args, Debug)]
pub(crate) struct PipelineFlags {
    #[command(flatten)]
    pub(crate) samples: Samples,
    /// Transport service.
    #[arg(short = 'c', long, value_name = "SERVICE", default_value = "RC", ignore_case = true)]
    #[arg(value_parser = words::<Service>())]
    pub(crate) connection: Service,
    /// Copy samples of up to this size into the work request, but for those that ask for a completion.
    #[arg(short = 'I', long, value_name = "SIZE", value_parser = units::parse_size, default_value = "128")]
    pub(crate) inline_size: u64,
    /// Ask for a completion with every N-th inline sample [default: half of the send queue's depth].
    #[arg(short = 'Q', long, value_name = "N")]
    pub(crate) cq_mod: Option<u32>,
    /// Buffers that samples are sent from in turn, where they are not inline [default: as many as the send queue is deep].
    #[arg(long, value_name = "N")]
    pub(crate) buffers: Option<u32>,
    /// Receives that are kept posted [default: as many as the queue holds].
    #[arg(long, value_name = "N")]
    pub(crate) rx_fill: Option<u32>,
    /// When these are posted: `before` there are samples, or by who is `reading`, which takes none before all are posted.
    #[arg(long, value_name = "WHEN", default_value = "before", value_parser = words::<Filling>())]
    pub(crate) rx_filled: Filling,
    #[command(flatten)]
    pub(crate) circumstances: Circumstances,
    #[command(flatten)]
    pub(crate) site: Site,
}

impl PipelineFlags {
    /// Settings of a plan with these.
    pub(crate) fn settings(&self) -> Settings {
        let inline_max = u32::try_from(self.inline_size).unwrap_or(u32::MAX);
        let settings = self.circumstances.settle(self.samples.settings());
        let settings = settings
            .axis(axis::SERVICE.value(self.connection))
            .axis(axis::INLINE_MAX_BYTES.value(inline_max));
        let is_usual = self.rx_filled == Filling::Before;
        let filled = (!is_usual).then(|| axis::RX_FILLED.value(self.rx_filled));
        let given = [
            self.cq_mod.map(|every| axis::SIGNAL_INTERVAL.value(Some(every))),
            self.buffers.map(|buffers| axis::BUFFERS.value(Some(buffers))),
            self.rx_fill.map(|fill| axis::RX_FILL.value(Some(fill))),
        ];
        let given = given.into_iter().flatten().chain(filled);
        given.fold(settings, Settings::axis)
    }
}

/// A pipeline over sockets or shared memory.
#[derive(Args, Debug)]
pub(crate) struct PipelineSockets {
    #[command(flatten)]
    pub(crate) samples: Samples,
    /// IPv6 instead of IPv4.
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Send and receive buffers of both ends [default: as the kernel makes and grows them].
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) socket_buffer: Option<u64>,
    /// Measure in this environment, and take it back afterwards [possible values: as_is, optimised, event, loaded].
    #[arg(long, value_name = "NAME", value_parser = Wanted::BUILT_IN, hide_possible_values = true)]
    pub(crate) environment: Option<String>,
    #[command(flatten)]
    pub(crate) site: Site<SocketPlacement>,
}

impl PipelineSockets {
    /// Settings of a plan with these.
    pub(crate) fn settings(&self) -> Settings {
        let buffer = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let given = [
            self.ipv6.then(|| axis::FAMILY.value(Family::Ipv6)),
            self.socket_buffer.map(|bytes| axis::SOCKET_BUFFER_BYTES.value(Some(buffer(bytes)))),
            self.environment.as_ref().map(|name| axis::ENVIRONMENT.value(name.clone())),
        ];
        given.into_iter().flatten().fold(self.samples.settings(), Settings::axis)
    }
}

/// A pipeline over a message library.
#[derive(Args, Debug)]
pub(crate) struct PipelineLibrary {
    #[command(flatten)]
    pub(crate) samples: Samples,
    /// What its sockets are to each other: of `pub-sub`, a library may drop what finds no room; of `pair` it refuses that.
    #[arg(long, value_name = "PROTOCOL", default_value = "pub-sub", value_parser = words::<Protocol>())]
    pub(crate) protocol: Protocol,
    /// Measure in this environment, and take it back afterwards [possible values: as_is, optimised, event, loaded].
    #[arg(long, value_name = "NAME", value_parser = Wanted::BUILT_IN, hide_possible_values = true)]
    pub(crate) environment: Option<String>,
    #[command(flatten)]
    pub(crate) site: Site<SocketPlacement>,
}

impl PipelineLibrary {
    /// Settings of a plan with these.
    pub(crate) fn settings(&self) -> Settings {
        let settings = self.samples.settings().axis(axis::PROTOCOL.value(self.protocol));
        let environment = self.environment.as_ref().map(|name| axis::ENVIRONMENT.value(name.clone()));
        environment.into_iter().fold(settings, Settings::axis)
    }
}

/// Numbers of values.
#[derive(Clone, Debug)]
pub(crate) struct Values(Vec<u32>);

fn values(text: &str) -> Result<Values, String> {
    counts(text, axis::VALUES).map(Values)
}
