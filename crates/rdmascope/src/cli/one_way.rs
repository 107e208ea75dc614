//! The flags of `rdmascope one-way`.

use std::time::Duration;

use bench::point::{Poll, QueuePoll, Stamp};
use clap::{Args, Subcommand, ValueEnum};
use measure::units;

use super::{Flags, SocketOneWay, Sockets};

/// Below the help of `rdmascope one-way`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope one-way send --local       32 B over RC, every message by itself
  rdmascope one-way send --local -c UC -I 64 --burst all -Q 64
                                       a flood, inline and seldom signalled
  rdmascope one-way send --local --poll hybrid --pause 1ms
                                       poll for receives, sleep for sends
  rdmascope one-way write --local --stamp sent
                                       from the device's fetch of the message
  rdmascope one-way send --listen 0.0.0.0
                                       on node7: waits, and prints the key
  rdmascope one-way send node7 --key KEY -a
                                       on another host: with the clocks' bound";

#[derive(Args, Debug)]
pub(crate) struct OneWay {
    #[command(subcommand)]
    pub(crate) operation: OneWayOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OneWayOperation {
    /// Send with immediate data, which says the message's number.
    #[command(after_help = EXAMPLES)]
    Send(OneWayFlags),
    /// RDMA Write with immediate data, which consumes a receive at the target.
    #[command(after_help = EXAMPLES)]
    Write(OneWayFlags),
    #[command(flatten)]
    Sockets(Sockets<SocketOneWay>),
}

#[derive(Args, Debug)]
pub(crate) struct OneWayFlags {
    /// Messages that are posted without waiting for the receiver, or `all` [default: 1].
    #[arg(long, value_name = "N", value_parser = burst)]
    pub(crate) burst: Option<Burst>,
    /// Least time from one post to the next, such as 5.5us [default: 0].
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) pause: Option<Duration>,
    /// How completions are waited for [default: busy].
    #[arg(long, value_name = "MODE", conflicts_with = "events")]
    pub(crate) poll: Option<PollArgument>,
    /// How completions of sends are waited for [default: as --poll says].
    #[arg(long, value_name = "MODE")]
    pub(crate) send_poll: Option<SendPollArgument>,
    /// Which instant messages carry: `sent` writes the time into a message until the device has fetched it.
    #[arg(long, value_name = "INSTANT", default_value = "submitted")]
    pub(crate) stamp: StampArgument,
    /// Buffers at each end, which messages take in turn [default: a page's worth].
    #[arg(long, value_name = "N")]
    pub(crate) buffers: Option<u32>,
    /// Receives that are kept posted [default: as many as the queue holds].
    #[arg(long, value_name = "N")]
    pub(crate) rx_fill: Option<u32>,
    /// Messages before the first that counts; their latencies stand apart [default: a tenth].
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u64>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// A number of messages; none for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst(pub(crate) Option<u32>);

pub(super) fn burst(text: &str) -> Result<Burst, String> {
    if text == "all" {
        return Ok(Burst(None));
    }
    text.parse().map(|n| Burst(Some(n))).map_err(|_| "give a whole number, or `all`".to_owned())
}

/// How completions are waited for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PollArgument {
    /// Poll.
    Busy,
    /// Sleep; ask for the next event before polling.
    Event,
    /// Sleep; poll until the queue is empty before asking for the next event.
    EventRepoll,
    /// Poll for receives, sleep for sends.
    Hybrid,
}

impl PollArgument {
    pub(crate) fn poll(self) -> Poll {
        match self {
            Self::Busy => Poll::Busy,
            Self::Event => Poll::Event,
            Self::EventRepoll => Poll::EventRepoll,
            Self::Hybrid => Poll::Hybrid,
        }
    }
}

/// How completions of sends are waited for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SendPollArgument {
    /// Poll.
    Busy,
    /// Sleep; ask for the next event before polling.
    Event,
    /// Sleep; poll until the queue is empty before asking for the next event.
    EventRepoll,
}

impl SendPollArgument {
    pub(crate) fn poll(self) -> QueuePoll {
        match self {
            Self::Busy => QueuePoll::Busy,
            Self::Event => QueuePoll::Event,
            Self::EventRepoll => QueuePoll::EventRepoll,
        }
    }
}

/// Which instant messages carry.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StampArgument {
    /// None: when it was posted is kept by the sender.
    Submitted,
    /// When the device fetched it.
    Sent,
}

impl StampArgument {
    pub(crate) fn stamp(self) -> Stamp {
        match self {
            Self::Submitted => Stamp::Submitted,
            Self::Sent => Stamp::Sent,
        }
    }
}
