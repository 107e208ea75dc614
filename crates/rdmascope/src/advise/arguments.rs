//! The flags of `rdmascope advise`.

use std::time::Duration;

use bench::point::Service;
use clap::{Args, ValueEnum};
use measure::units;
use report::advice::Goal;

use super::refused_flags::RefusedFlags;
use crate::cli::axes::words;
use crate::cli::count::count;
use crate::cli::time::time;
use crate::cli::{Circumstances, Site};

/// Below the help.
pub(crate) const HELP: &str = "\
Examples:
  rdmascope advise --local             32 B, one message at a time, least median
  rdmascope advise --local -s 4KiB --rate 10kHz --goal cpu
                                       a message every 100 us, least CPU time
  rdmascope advise --local --goal p99.9 -c RC --operation send
  rdmascope advise --local --rate asap --out advice
                                       as fast as possible, with a report
  rdmascope advise --listen 0.0.0.0    on node7: waits, and prints the key
  rdmascope advise node7 --key KEY     on another host: the client
  rdmascope advise node7 --key KEY -R  the same by RDMA CM, as iWARP needs

How the search works:
  First, every service, operation and way to poll is compared: not inline, with
  every send signalled and few buffers. Flags such as -m, -t, -r, --rx-fill,
  --link, --memory, --environment and -R apply to all configurations.
  Then each setting of the best configuration is changed alone, including
  inline, signalling and the number of buffers. The search goes on from a better
  configuration until no change is better, at most 5 times.
  A comparison has several rounds; a round measures each configuration once.
  Without -n, a short trial first sets the messages of a round, 100 to 10000, so
  that the search takes about four fifths of --budget. The rest is for rounds in
  which the machine was unstable: they are measured again, at most as many as
  the comparison had, while the budget lasts.
  One configuration is better than another if its number is at least 1 % lower
  and the exact signed-rank test of Wilcoxon, over the rounds in pairs,
  one-sided at 5 %, confirms that. Of the configurations that are not worse than
  the best, nor than the steadiest of its equals, the simplest is recommended:
  reliable before unreliable, send before write, not inline before inline, every
  send signalled before every Nth, sleeping before polling, few buffers before
  many. A configuration that lost messages is not recommended, nor one that kept
  less than nine tenths of --rate if another kept it.

Exit status:
  0  a configuration is recommended
  1  no configuration can be recommended
  2  wrong usage";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct AdviseArguments {
    /// Size of a message, such as 64 or 4KiB.
    #[arg(short = 's', long, value_name = "SIZE", value_parser = units::parse_size, default_value = "32")]
    pub(crate) size: u64,
    /// Messages per second, such as 10kHz or 500, or `asap`: as fast as possible [default: one
    /// message at a time].
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// Quantity to minimise.
    #[arg(long, value_name = "GOAL", default_value = "median")]
    pub(crate) goal: GoalArgument,
    /// Transport services that may be recommended.
    #[arg(short = 'c', long, value_name = "SERVICES", default_value = "RC,UC,UD", ignore_case = true)]
    #[arg(value_delimiter = ',', value_parser = words::<Service>())]
    pub(crate) connection: Vec<Service>,
    /// Operations that may be recommended, both with immediate data.
    #[arg(long, value_name = "OPERATIONS", default_value = "send,write", value_delimiter = ',')]
    pub(crate) operation: Vec<OperationArgument>,
    /// Messages of each configuration in a round [default: as many as the budget allows].
    #[arg(short = 'n', long, value_name = "N", value_parser = count(1_u64..))]
    pub(crate) iters: Option<u64>,
    /// Rounds of each comparison; fewer than 5 cannot distinguish two configurations.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(5..=20_u32))]
    pub(crate) rounds: u32,
    /// Time that the search may take, as a trial estimates it; with -n, the time limits only the
    /// repetition of unstable rounds.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = time)]
    pub(crate) budget: Duration,
    /// Also recommend configurations that lost messages.
    #[arg(long)]
    pub(crate) allow_loss: bool,
    /// Receives that are kept posted [default: as many as the queue holds].
    #[arg(long, value_name = "N", value_parser = count(1_u32..))]
    pub(crate) rx_fill: Option<u32>,
    #[command(flatten)]
    pub(crate) circumstances: Circumstances,
    #[command(flatten)]
    pub(crate) refused: RefusedFlags,
    #[command(flatten)]
    pub(crate) site: Site,
}

/// The quantity to minimise.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GoalArgument {
    /// The median of the one-way latency.
    Median,
    /// The 99.9th percentile of the one-way latency.
    #[value(name = "p99.9")]
    P999,
    /// The CPU time of both ranks for a message.
    Cpu,
}

impl GoalArgument {
    pub(crate) fn goal(self) -> Goal {
        match self {
            Self::Median => Goal::Median,
            Self::P999 => Goal::P999,
            Self::Cpu => Goal::Cpu,
        }
    }
}

/// Operations; immediate data identifies their messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OperationArgument {
    /// Send.
    Send,
    /// RDMA Write.
    Write,
}

impl OperationArgument {
    /// Its name in plans.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send_imm",
            Self::Write => "write_imm",
        }
    }
}

/// The rate of messages that do not wait for earlier ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// As fast as they can be posted.
    Asap,
    /// At most this many per second.
    PerSecond(f64),
}

/// Smallest rate: a message a minute, the longest pause that a plan may have.
const RATE_MIN: f64 = 1.0 / 60.0;
/// Largest rate: a pause is at least 1 ns.
const RATE_MAX: f64 = 1e9;

fn rate(text: &str) -> Result<Rate, String> {
    if text == "asap" {
        return Ok(Rate::Asap);
    }
    match units::parse_rate_hz(text) {
        Ok(rate) if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(Rate::PerSecond(rate)),
        Ok(_) => Err("give a rate from one message a minute to 1GHz".to_owned()),
        Err(error) => Err(format!("{error}, or `asap`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, per_second) in
            [("10kHz", 1e4), ("10k", 1e4), ("2.5 MHz", 2.5e6), ("500", 500.0), ("0.5Hz", 0.5)]
        {
            assert_eq!(rate(text), Ok(Rate::PerSecond(per_second)), "{text}");
        }
        assert_eq!(rate("asap"), Ok(Rate::Asap));
        for text in ["", "kHz", "ten", "10 khz", "10kHzz", "NaN", "inf", "-1kHz"] {
            assert!(rate(text).unwrap_err().contains("10k or 2M, or `asap`"), "{text}");
        }
        for text in ["0", "0.01Hz", "2GHz"] {
            assert!(rate(text).unwrap_err().contains("from one message a minute"), "{text}");
        }
    }
}
