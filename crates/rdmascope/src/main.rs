//! `rdmascope`: arguments, the registry of backends, and glue.

mod agent;
mod backends;
mod benchmark;
mod cli;
mod devices;
mod execute;
mod failure;
mod launch;
mod plans;
mod report;
mod run;
mod sink;
mod stdout;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let command: Vec<String> = std::env::args().collect();
    let result = match Cli::parse().command {
        Command::Agent(arguments) => agent::serve(arguments),
        Command::Bw(benchmark) => benchmark::bandwidth(&benchmark.operation, command),
        Command::Completions { shell } => cli::completions(shell),
        Command::Devices { json } => devices::list(json),
        Command::Lat(benchmark) => benchmark::latency(&benchmark.operation, command),
        Command::Man => cli::man(),
        Command::Plans { name } => plans::list(name.as_deref()),
        Command::Report(arguments) => report::write(&arguments),
        Command::Run(arguments) => run::run(&arguments, command),
    };
    result.unwrap_or_else(|error| failure::tell(&error))
}
