//! The manual pages and the completions of shells, made from the definition of the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

use crate::cli::mistyped::other_command;
use crate::failure::Usage;
use crate::stdout;

/// Prints a shell's completions.
pub(crate) fn completions(mut command: Command, shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "rdmascope", &mut text);
    stdout::print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Which manual page to print, or where to write all of them.
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// The command whose page to print, for example `lat send` [default: rdmascope itself].
    command: Vec<String>,
    /// Write the pages of all commands into this directory: rdmascope.1, rdmascope-lat.1,
    /// rdmascope-lat-send.1 and so on.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    directory: Option<PathBuf>,
}

/// Prints a manual page, or writes all.
pub(crate) fn man(mut all: Command, arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    all.build();
    if let Some(directory) = &arguments.directory {
        write_pages(&all, directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut found = &all;
    for word in &arguments.command {
        let below = found.find_subcommand(word).filter(is_shown);
        found = below.ok_or_else(|| {
            let words = arguments.command.join(" ");
            let tip = match other_command(word) {
                Some(ours) => format!("use `rdmascope man {ours}`"),
                None => "`rdmascope --help` lists all".to_owned(),
            };
            Usage(format!("rdmascope has no command `{words}`: {tip}"))
        })?;
    }
    stdout::print(&String::from_utf8(page(found)?)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and of each one below it.
fn write_pages(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let path = directory.join(format!("{}.1", title(command)));
    fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    command.get_subcommands().filter(is_shown).try_for_each(|below| write_pages(below, directory))
}

fn is_shown(command: &&Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// The name of a command's page: `rdmascope-lat-send`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page of a command, in the language of man(7).
fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(command.clone()).title(title(command)).manual("rdmascope");
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| is_shown(&below)) {
        man.render_subcommands_section(&mut text)?;
    }
    let extra = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    sections(&mut text, &extra)?;
    Ok(text)
}

/// Writes the parts of a text below the help, such as `Examples:`, as sections of the page.
fn sections(out: &mut Vec<u8>, text: &str) -> std::io::Result<()> {
    for part in text.split("\n\n").filter(|part| !part.is_empty()) {
        let (heading, body) = part.split_once(":\n").unwrap_or(("Output", part));
        writeln!(out, ".SH {}\n.nf\n{}\n.fi", roff(&heading.to_uppercase()), roff(body))?;
    }
    Ok(())
}

/// Escapes a text for roff.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}
