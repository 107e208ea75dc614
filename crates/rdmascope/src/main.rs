//! `rdmascope`: arguments, the registry of backends, and glue.

mod advise;
mod agent;
mod backends;
mod benchmark;
mod cli;
mod devices;
mod doctor;
mod ends;
mod exec;
mod execute;
mod failure;
mod import;
mod launch;
mod model;
mod overhead;
mod pipeline;
mod placing;
mod plans;
mod report;
mod run;
mod server;
mod sink;
mod sockets;
mod stdout;

use std::process::ExitCode;

use anyhow::Context;
use bench::process::interrupt::take_inherited_signals;
use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};
use server::Waiting;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = signals(&cli.command).and_then(|()| match Waiting::asked_for(&matches) {
        Some(server) => server.serve(),
        None => run(cli.command, ends::without_key(std::env::args())),
    });
    result.unwrap_or_else(|error| failure::tell(&error))
}

/// Takes signals as this program needs them; another program gets them as this one was given them.
fn signals(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Exec(_) => Ok(()),
        _ => take_inherited_signals().context("cannot set how signals are taken"),
    }
}

/// Everything but a server.
fn run(command: Command, words: Vec<String>) -> anyhow::Result<ExitCode> {
    match command {
        Command::Advise(arguments) => advise::advise(&arguments, words),
        Command::Agent(arguments) => agent::serve(arguments),
        Command::Bw(benchmark) => benchmark::bandwidth(&benchmark.operation, words),
        Command::Completions { shell } => cli::completions(shell),
        Command::Devices(arguments) => devices::list(&arguments),
        Command::Doctor(arguments) => doctor::examine(arguments),
        Command::Exec(arguments) => exec::exec(&arguments),
        Command::FanOut(benchmark) => benchmark::fan_out(&benchmark.operation, words),
        Command::Guard(host) => agent::guard(&host),
        Command::Import(arguments) => import::import(&arguments, words),
        Command::Lat(benchmark) => benchmark::latency(&benchmark.operation, words),
        Command::OneWay(benchmark) => benchmark::one_way(&benchmark.operation, words),
        Command::Man => cli::man(),
        Command::Model(arguments) => model::model(&arguments),
        Command::Overhead(arguments) => overhead::overhead(&arguments, words),
        Command::Pairs(benchmark) => benchmark::pairs(&benchmark.operation, words),
        Command::OpenLoop(benchmark) => benchmark::open_loop(&benchmark.operation, words),
        Command::Pipeline(of) => pipeline::pipeline(&of.node, words),
        Command::Plans { name } => plans::list(name.as_deref()),
        Command::Report(arguments) => report::write(&arguments),
        Command::Run(arguments) => run::run(&arguments, words),
    }
}
