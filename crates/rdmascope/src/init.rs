//! `rdmascope init`: the plan of a measuring command, to start one of your own from.

use std::process::ExitCode;

use bench::plan::written;
use clap::{Args, Command};

use crate::benchmark::Benchmark;
use crate::cli::{known, mistyped};
use crate::failure::Usage;
use crate::{server_args, stdout};

pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope init lat send -s 4..64KiB > my-plan.toml
  rdmascope init bw tcp -P 1,2,4 > my-plan.toml
  rdmascope run my-plan.toml --hosts node1,node2 --via 'ssh {host}'

The options that say where ranks run (--hosts, --via, --cpus, HOST and others)
are no part of a plan: give them to `rdmascope run`.";

/// The measuring command.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct InitArguments {
    /// A measuring command and its options, as you would type it after `rdmascope`.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<String>,
}

/// Prints the plan.
pub(crate) fn init(mut command: Command, arguments: &InitArguments) -> anyhow::Result<ExitCode> {
    let words = std::iter::once("rdmascope".to_owned()).chain(arguments.words.iter().cloned());
    let words = known::spelled(words.map(Into::into));
    let matches = command
        .try_get_matches_from_mut(&words)
        .unwrap_or_else(|error| mistyped::explained(error, &command, &words).exit());
    let shown = server_args::without_key(arguments.words.iter().cloned()).join(" ");
    let Some(benchmark) = Benchmark::asked_for(&matches) else {
        let sentence = format!("`{shown}` measures nothing: give init a command such as `lat send -s 64`");
        return Err(Usage(sentence).into());
    };
    let head = format!(
        "# The plan of `rdmascope {shown}`, written by `rdmascope init`.\n\
         # An axis has one value or a list; remove a `#` to set one. All keys: rdmascope plans --reference\n"
    );
    stdout::print(&(head + &written(&benchmark.plan()?, &benchmark.offered())?))?;
    Ok(ExitCode::SUCCESS)
}
