//! The flags of `rdmascope advise`.

use std::time::Duration;

use bench::point::Service;
use clap::{Args, ValueEnum};
use measure::units;
use report::advice::Goal;

use super::refused_flags::RefusedFlags;
use crate::cli::axes::words;
use crate::cli::{Circumstances, Site};

/// Below the help.
pub(crate) const HELP: &str = "\
Examples:
  rdmascope advise --local             32 B, one message at a time, least median
  rdmascope advise --local -s 4KiB --rate 10kHz --goal cpu
                                       a message every 100 us, at the least cost
  rdmascope advise --local --goal p99.9 -c RC --operation send
  rdmascope advise --local --rate asap --out advice
                                       a flood, with a record and a report
  rdmascope advise --listen 0.0.0.0    on node7: waits, and prints the key
  rdmascope advise node7 --key KEY     on another host: between the two
  rdmascope advise node7 --key KEY -R  the same by RDMA CM, as iWARP needs

How it is found:
  Every service, operation and way to poll is measured in rounds, plain
  otherwise, and with what is given of -m, -t, -r, --rx-fill, --link, --memory,
  --environment and -R; then each setting of the best is changed alone, inline,
  seldom signalled and many buffers too, and the search goes on from what is
  better, until no step is, at most 5 times. A round measures every way once.
  Without -n a short trial of every way first says how many messages, 100 to
  10000, the rounds have for the search to take about four fifths of --budget.
  The rest is for rounds in which the machine was unstable: they are measured
  again, at most as many as there were, while the budget lasts.
  A way is better where the rounds of both, in pairs, say so by the exact
  signed-rank test of Wilcoxon, one-sided at 5 %, and by at least 1 %. Of
  those that neither the best nor the steadiest of its equals is better than
  the simplest is recommended: reliable before unreliable, send before write,
  not inline before inline, every send signalled before few, sleeping before
  polling, few buffers before many. What lost messages is not, nor what kept
  less than nine tenths of --rate where another way kept it.

Exit status:
  0  something is recommended
  1  nothing could be
  2  wrong usage";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct AdviseArguments {
    /// Size of a message, such as 64 or 4KiB.
    #[arg(short = 's', long, value_name = "SIZE", value_parser = units::parse_size, default_value = "32")]
    pub(crate) size: u64,
    /// Messages per second, such as 10kHz or 500, or `asap` for a flood [default: one message at a
    /// time].
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// What is to be least.
    #[arg(long, value_name = "GOAL", default_value = "median")]
    pub(crate) goal: GoalArgument,
    /// Transport services that may be recommended.
    #[arg(short = 'c', long, value_name = "SERVICES", default_value = "RC,UC,UD", ignore_case = true)]
    #[arg(value_delimiter = ',', value_parser = words::<Service>())]
    pub(crate) connection: Vec<Service>,
    /// Operations that may be recommended, both with immediate data.
    #[arg(long, value_name = "OPERATIONS", default_value = "send,write", value_delimiter = ',')]
    pub(crate) operation: Vec<OperationArgument>,
    /// Messages of each way in a round [default: what the budget allows].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iters: Option<u64>,
    /// Rounds of each comparison; fewer than 5 tell no two ways apart.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(5..=20))]
    pub(crate) rounds: u32,
    /// Time that the search may take, as well as a trial can tell; beside -n only unstable rounds
    /// heed it.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = units::parse_duration)]
    pub(crate) budget: Duration,
    /// Recommend what lost messages, too.
    #[arg(long)]
    pub(crate) allow_loss: bool,
    /// Receives that are kept posted [default: as many as the queue holds].
    #[arg(long, value_name = "N")]
    pub(crate) rx_fill: Option<u32>,
    #[command(flatten)]
    pub(crate) circumstances: Circumstances,
    #[command(flatten)]
    pub(crate) refused: RefusedFlags,
    #[command(flatten)]
    pub(crate) site: Site,
}

/// What is to be least.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GoalArgument {
    /// The median of the one-way latency.
    Median,
    /// Its 99.9 % quantile.
    #[value(name = "p99.9")]
    P999,
    /// The CPU time of both ends.
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

/// Operations; their messages are told apart by immediate data.
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

/// How messages follow each other, where none waits for the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// As fast as they can be posted.
    Asap,
    /// So many per second at most.
    PerSecond(f64),
}

/// Least rate: a message a minute, the longest pause that a plan may have.
const RATE_MIN: f64 = 1.0 / 60.0;
/// Largest rate: a pause is at least 1 ns.
const RATE_MAX: f64 = 1e9;

fn rate(text: &str) -> Result<Rate, String> {
    if text == "asap" {
        return Ok(Rate::Asap);
    }
    let units = [("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0), ("", 1.0)];
    let unit = units.into_iter().find_map(|(unit, one)| Some((text.strip_suffix(unit)?, one)));
    let per_second = unit.and_then(|(number, one)| Some(number.trim().parse::<f64>().ok()? * one));
    match per_second {
        Some(rate) if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(Rate::PerSecond(rate)),
        Some(rate) if rate.is_finite() => Err("give a rate from one message a minute to 1GHz".to_owned()),
        _ => Err("give messages per second, such as 10kHz or 500, or `asap`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, per_second) in [("10kHz", 1e4), ("2.5 MHz", 2.5e6), ("500", 500.0), ("0.5Hz", 0.5)] {
            assert_eq!(rate(text), Ok(Rate::PerSecond(per_second)), "{text}");
        }
        assert_eq!(rate("asap"), Ok(Rate::Asap));
        for text in ["", "kHz", "ten", "10 khz", "10kHzz", "NaN", "inf"] {
            assert!(rate(text).unwrap_err().contains("10kHz or 500"), "{text}");
        }
        for text in ["0", "-1kHz", "0.01Hz", "2GHz"] {
            assert!(rate(text).unwrap_err().contains("from one message a minute"), "{text}");
        }
    }
}
