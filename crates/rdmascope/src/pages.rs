//! What the definition of the command line makes besides the parser: the manual page and the
//! shells' completions.

use std::io::Write;
use std::process::ExitCode;

use crate::command::command;
use crate::stdout;

/// Prints a shell's completions.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "rdmascope", &mut text);
    stdout::print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page.
pub(crate) fn man() -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    let mut command = command();
    command.build();
    let extra = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    sections(&mut text, &extra)?;
    for sub in measuring(&command) {
        writeln!(text, ".SH \"{}\"", roff(&sub.get_bin_name().unwrap_or_default().to_uppercase()))?;
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "{}", roff(&about))?;
        let mut options = Vec::new();
        clap_mangen::Man::new(sub.clone()).render_options_section(&mut options)?;
        text.extend_from_slice(String::from_utf8(options)?.replacen(".SH OPTIONS\n", "", 1).as_bytes());
    }
    // One page for all, so what clap takes for pages of their own are commands.
    let text = String::from_utf8(text)?.replace("rdmascope\\-", "rdmascope ").replace("(1)\n", "\n");
    stdout::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The commands that have flags of their own, `lat send` and the like in place of `lat`.
fn measuring(command: &clap::Command) -> Vec<&clap::Command> {
    let is_shown = |sub: &&clap::Command| !sub.is_hide_set() && sub.get_name() != "help";
    let below = |sub| {
        let deeper = measuring(sub);
        if deeper.is_empty() { vec![sub] } else { deeper }
    };
    command.get_subcommands().filter(is_shown).flat_map(below).collect()
}

/// The parts of a text below the help, `Examples:` and the like, as sections of their own.
fn sections(out: &mut Vec<u8>, text: &str) -> std::io::Result<()> {
    for part in text.split("\n\n") {
        let (heading, body) = part.split_once(":\n").unwrap_or(("Output", part));
        writeln!(out, ".SH {}\n.nf\n{}\n.fi", roff(&heading.to_uppercase()), roff(body))?;
    }
    Ok(())
}

/// Text that roff takes as it is.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}
