//! The flags of `rdmascope overhead`.

use bench::point::{Operation, Service, Step};
use clap::Args;
use measure::units;

use super::words::{some_words, words};
use super::{Circumstances, Site};

/// Below the help of `rdmascope overhead`.
pub(super) const EXAMPLES: &str = "\
Examples:
  rdmascope overhead --local           what every call costs, of messages of 64 B
  rdmascope overhead --local -s 4..4KiB --step post_send,poll_send -c UD
  rdmascope overhead --local -s 4KiB..64MiB --step register_cold,register_warm
  rdmascope overhead --local -I 256 -s 4..256 --step post_send
                                       inline: the CPU copies the message
  rdmascope overhead --local --operation write --out calls
                                       with a record and a report
  rdmascope overhead --listen 0.0.0.0  on node7: waits, and prints the key
  rdmascope overhead node7 --key KEY   on another host: measures with node7";

#[derive(Args, Debug)]
pub(crate) struct OverheadArguments {
    /// Sizes of messages and of registered memory: one such as 64 or 4KiB, several with commas, or a range of powers of two
    /// such as 4..1MiB [default: 64].
    #[arg(short = 's', long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Calls to time, with commas: post_send, poll_empty, poll_send, poll_receive, post_receive, register_cold, register_warm,
    /// deregister, create_cq, create_qp, connect_qp, destroy_qp, address_handle [default: all that the operation has].
    #[arg(long, value_name = "STEP", value_delimiter = ',', num_args = 1, value_parser = step)]
    pub(crate) step: Vec<Step>,
    /// Batches of calls that are timed, of each step; of large sizes fewer [default: 1000].
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) iters: Option<u64>,
    /// Calls between two stamps [default: 64 posts or polls, 1 of everything else].
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u32>,
    /// Operation that is posted.
    #[arg(long, value_name = "OPERATION", default_value = "send")]
    #[arg(value_parser = some_words::<Operation>(&["read", "send", "write"]))]
    pub(crate) operation: Operation,
    /// Transport service.
    #[arg(short = 'c', long, value_name = "SERVICE", default_value = "RC", ignore_case = true)]
    #[arg(value_parser = words::<Service>())]
    pub(crate) connection: Service,
    /// Send messages of up to this size inline [default: 0, none].
    #[arg(short = 'I', long, value_name = "SIZE", value_parser = units::parse_size, default_value = "0")]
    #[arg(hide_default_value = true)]
    pub(crate) inline_size: u64,
    #[command(flatten)]
    pub(crate) circumstances: Circumstances,
    #[command(flatten)]
    pub(crate) site: Site,
}

fn step(text: &str) -> Result<Step, String> {
    Step::ALL.into_iter().find(|step| step.word() == text).ok_or_else(|| {
        let names = Step::ALL.map(Step::word).join(", ");
        format!("give one of {names}")
    })
}
