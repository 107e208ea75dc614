//! The arguments of `rdmascope fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValue;
use measure::units;
use report::fleet::ROUNDS_MAX;
use verdict::fleet::{SCHEDULES, Schedule};

use crate::cli::count::count;
use crate::cli::time::{time, time_above_zero};
use crate::cli::{NetFlags, PortFlags};

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope fleet --hosts 'node[001-064]' --via 'ssh {host}'
  rdmascope fleet write --hosts-file hosts.txt --via 'ssh {host}'
                                       RDMA Write, between hosts of a file
  rdmascope fleet                      in a Slurm job: all of its nodes
  rdmascope fleet tcp --hosts n1,n2,n3,n4 --via 'ssh {host}' --time 10min
  rdmascope fleet --local 8            eight agents on this host, to try it out
  rdmascope fleet --resume runs/fleet-2026-11-27T120000Z

A file of hosts has one host a line, or several as node[01-16], and comments:
  node[01-16] group=leaf1 devices=mlx5_0,mlx5_1   # two rails

Exit status: 0 if every host was examined and none is slow, 3 if a culprit is
named or an expectation is not met, 1 if not enough could be measured to say.";

#[derive(Args, Clone, Debug)]
pub(crate) struct FleetArguments {
    /// What pairs of hosts measure: send, write, tcp, udp or another word of both `rdmascope lat`
    /// and `rdmascope bw`, except mpi [default: send if most hosts have an RDMA adapter of their
    /// own, else tcp].
    pub(super) subject: Option<String>,
    /// Hosts, such as a,b or 'node[001-064],gpu[1,3-5]' [default: the hosts of the Slurm job].
    #[arg(long, value_name = "LIST", conflicts_with_all = ["hosts_file", "local"])]
    pub(super) hosts: Option<String>,
    /// File of hosts, one a line: NAME, then group=GROUP and devices=DEVICE,DEVICE where they
    /// apply.
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    pub(super) hosts_file: Option<PathBuf>,
    /// Number of agents on this host, to try the command out.
    #[arg(long, value_name = "N", conflicts_with = "via", value_parser = count(2_u32..))]
    pub(super) local: Option<u32>,
    /// Command that starts an agent on a host, such as 'ssh {host}', 'ip netns exec {host}' or
    /// 'kubectl exec -i {host} --' [default in a Slurm job: srun].
    #[arg(long, value_name = "TEMPLATE")]
    pub(super) via: Option<String>,
    /// Path of rdmascope on the hosts [default: the path of this program].
    #[arg(long, value_name = "PATH", conflicts_with = "local")]
    pub(super) agent_path: Option<String>,
    /// Time limit for starting an agent, such as 30 or 2min.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_above_zero)]
    pub(super) start_timeout: Duration,
    /// Most agents that start at the same time.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = count(1_u16..))]
    pub(super) starts_at_once: u16,
    /// CPU to which every agent is pinned [default: none].
    #[arg(long, value_name = "N")]
    pub(super) cpu: Option<u32>,
    /// Device of every host; see `rdmascope devices`.
    #[arg(short = 'd', long, alias = "ib-dev", value_name = "NAME")]
    pub(super) device: Option<String>,
    #[command(flatten)]
    pub(super) port: PortFlags,
    #[command(flatten)]
    pub(super) net: NetFlags,
    /// Rails do not reach each other: each is a fleet of its own, and all of them are measured at
    /// the same time.
    #[arg(long)]
    pub(super) separate_rails: bool,
    /// Which pairs are measured at the same time.
    #[arg(long, value_name = "NAME", default_value = SCHEDULES[0].name, value_parser = schedules())]
    pub(super) schedule: String,
    /// Number of times to measure the schedule [default: 3; 1 for schedules that draw pairs].
    #[arg(long, value_name = "N", value_parser = count(1..=3_u32))]
    pub(super) passes: Option<u32>,
    /// Rounds of a schedule that draws pairs.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = count(1..=ROUNDS_MAX))]
    pub(super) rounds: u32,
    /// Most pairs that are measured at the same time [default: as many as the schedule has].
    #[arg(long, value_name = "N", value_parser = count(1_u32..))]
    pub(super) parallel: Option<u32>,
    /// Time for the whole fleet, such as 10min, once its agents have started. The schedule ends
    /// between two rounds, and leaves time for suspects; 10min is mostly enough for them.
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    pub(super) time: Option<Duration>,
    /// Time between two visits of the suspects, at most an eighth of --time: a host that is slow
    /// for less than a third of this time is cleared.
    #[arg(long, value_name = "TIME", default_value = VISITS_APART, value_parser = time)]
    pub(super) visits_apart: Duration,
    /// The least deficit worth naming a culprit for, in percent of the others.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = units::parse_percent)]
    pub(super) least: f64,
    /// How far healthy hosts may differ from each other, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = units::parse_percent)]
    pub(super) tolerance: f64,
    /// Throughput that every pair has to reach: a bandwidth such as 10Gb/s, or a part of what the
    /// link carries such as 90%.
    #[arg(long, value_name = "LIMIT")]
    pub(super) at_least: Option<String>,
    /// Largest median latency of a pair, such as 5us.
    #[arg(long, value_name = "TIME")]
    pub(super) at_most: Option<String>,
    /// Compare each pair with an earlier fleet of the same hosts, to find those that have become
    /// slower.
    #[arg(long, value_name = "DIR")]
    pub(super) baseline: Option<PathBuf>,
    /// Size of the messages of latency, in bytes.
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = units::parse_size)]
    pub(super) small: u64,
    /// Size of the messages of throughput, in bytes.
    #[arg(short = 's', long = "size", value_name = "SIZE", default_value = "64KiB", value_parser = units::parse_size)]
    pub(super) large: u64,
    /// Number of messages of a latency.
    #[arg(short = 'n', long, value_name = "N", default_value = "1000", value_parser = units::parse_count)]
    pub(super) iters: u64,
    /// Time of a throughput, in each direction.
    #[arg(short = 'D', long, value_name = "TIME", default_value = "200ms", value_parser = time_above_zero)]
    pub(super) duration: Duration,
    /// Directory for the record and the report; it must not contain a run [default:
    /// runs/fleet-TIME].
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the verdict as one JSON object, and the text on standard error.
    #[arg(long)]
    pub(super) json: bool,
    /// Go on with the fleet in this directory, which was stopped or killed: its record has all
    /// other options. Pairs that were measured are not measured again.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub(super) resume: Option<PathBuf>,
}

impl FleetArguments {
    /// How often the schedule is measured.
    pub(super) fn passes(&self) -> u32 {
        let schedule = Schedule::named(&self.schedule);
        self.passes.unwrap_or_else(|| schedule.map_or(1, |schedule| schedule.passes as u32))
    }
}

/// The time that the simulation takes (`verdict::fleet::VISITS_APART`).
const VISITS_APART: &str = "60s";

fn schedules() -> Vec<PossibleValue> {
    SCHEDULES.iter().map(|schedule| PossibleValue::new(schedule.name).help(schedule.help)).collect()
}

#[cfg(test)]
impl FleetArguments {
    /// The arguments in words, without the name of the command.
    pub(super) fn parsed(words: &str) -> Self {
        let command = Self::augment_args(clap::Command::new("fleet").no_binary_name(true));
        let matches = command.get_matches_from(words.split_whitespace());
        <Self as clap::FromArgMatches>::from_arg_matches(&matches).expect("arguments of a fleet")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_as_far_apart_as_in_the_simulation() {
        assert_eq!(time(VISITS_APART), Ok(verdict::fleet::VISITS_APART));
    }
}
