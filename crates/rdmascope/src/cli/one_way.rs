//! The flags of `rdmascope one-way`.

use std::time::Duration;

use bench::point::{Poll, QueuePoll, Stamp};
use clap::{Args, Subcommand};
use measure::units;

use super::words::words;
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
    #[arg(long, value_name = "MODE", conflicts_with = "events", value_parser = words::<Poll>())]
    pub(crate) poll: Option<Poll>,
    /// How completions of sends are waited for [default: as --poll says].
    #[arg(long, value_name = "MODE", value_parser = words::<QueuePoll>())]
    pub(crate) send_poll: Option<QueuePoll>,
    /// Which instant messages carry: `sent` writes the time into a message until the device has fetched it.
    #[arg(long, value_name = "INSTANT", default_value = "submitted", value_parser = words::<Stamp>())]
    pub(crate) stamp: Stamp,
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
