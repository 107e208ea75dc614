//! The program `rdmascope`: reads the command line and runs the command.

mod advise;
mod agent;
mod backends;
mod banner;
mod benchmark;
mod cli;
mod command;
mod compare;
mod devices;
mod doctor;
mod exec;
mod execute;
mod export;
mod failure;
mod fleet;
mod import;
mod init;
mod job;
mod launch;
mod model;
mod namespace;
mod pages;
mod placing;
mod plans;
mod preload;
mod report;
mod restart;
mod resume;
mod resumed;
mod run;
mod server;
mod server_args;
mod sink;
mod stdout;
mod transfer;

use std::process::ExitCode;

use anyhow::Context;
use bench::process::interrupt::take_inherited_signals;
use bench::process::launcher::supervisor;
use clap::{ArgMatches, FromArgMatches};

use benchmark::Benchmark;
use cli::{known, mistyped};
use command::{Cli, Command, START};
use failure::USAGE;
use server::Waiting;
use stdout::Colour;

fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        eprint!("{START}");
        return ExitCode::from(USAGE);
    }
    let mut line = command::command();
    let spelled = known::spelled(std::env::args_os());
    let matches = line
        .try_get_matches_from_mut(&spelled)
        .unwrap_or_else(|error| mistyped::explained(error, &line, &spelled).exit());
    matches.get_one::<Colour>("color").copied().unwrap_or_default().set();
    // A word that is no text, such as the name of a file, may be shown, but never used again.
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words = server_args::without_key(words);
    let result = signals(&matches).and_then(|()| {
        if let Some(server) = Waiting::asked_for(&line, &matches) {
            return server.serve();
        }
        if let Some(usage) = matches.subcommand_name().and_then(known::lacks) {
            return Err(usage.into());
        }
        match Benchmark::asked_for(&matches) {
            Some(benchmark) => benchmark.measure(words),
            None => run(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command, words),
        }
    });
    result.unwrap_or_else(|error| failure::tell(&error))
}

/// Sets how this process handles signals. `exec` changes nothing, so that its program inherits the
/// handling of the caller.
fn signals(matches: &ArgMatches) -> anyhow::Result<()> {
    match matches.subcommand_name() {
        Some("exec") => Ok(()),
        _ => take_inherited_signals().context("cannot set up the handling of signals"),
    }
}

/// Runs a command that is neither a benchmark nor a server.
fn run(command: Command, words: Vec<String>) -> anyhow::Result<ExitCode> {
    match command {
        Command::Advise(arguments) => advise::advise(&arguments, words),
        Command::Agent(arguments) => agent::serve(arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Completions { shell } => pages::completions(command::command(), shell),
        Command::Devices(arguments) => devices::list(&arguments),
        Command::Doctor(arguments) => doctor::examine(arguments),
        Command::Exec(arguments) => exec::exec(&arguments),
        Command::Fleet(arguments) => fleet::fleet(&arguments, words),
        Command::Export(arguments) => export::export(&arguments),
        Command::Supervise { program_in, remove, words } => Ok(ExitCode::from(match (program_in, remove) {
            (_, Some(directory)) => {
                supervisor::remove_in_the_end(&directory);
                0
            }
            (Some(directory), None) => supervisor::supervise_program(&words, &directory)?,
            (None, None) => supervisor::supervise(&words)?,
        })),
        Command::Guard(host) => agent::guard(&host),
        Command::Import(arguments) => import::import(&arguments, words),
        Command::Init(arguments) => init::init(command::command(), &arguments),
        Command::Man(arguments) => pages::man(command::command(), &arguments),
        Command::Model(arguments) => model::model(&arguments),
        Command::Plans { reference: true, .. } => plans::reference(),
        Command::Plans { name, .. } => plans::list(name.as_deref()),
        Command::Report(arguments) => report::write(&arguments),
        Command::Run(arguments) => match &arguments.resume {
            Some(directory) => resume::resume(directory, &arguments),
            None => run::run(&arguments, words),
        },
        Command::Trend(arguments) => compare::trend::trend(&arguments),
        Command::Transfer(arguments) => transfer::transfer(&arguments, &words),
    }
}
