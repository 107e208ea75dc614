//! Command lines that clap refuses: with tips for names that other tools and plans use, and without
//! tips that do not help.

use std::ffi::OsString;

use bench::point::Pattern;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Commands of verbs, in the order of the help.
const VERBS: [&str; 5] = ["send", "write", "read", "atomic", "multicast"];
/// Commands of sockets, in the order of the help.
const SOCKETS: [&str; 5] = ["tcp", "udp", "sctp", "unix-stream", "unix-datagram"];

/// Names of commands in other tools, with the command here.
const COMMANDS: [(&str, &str); 7] = [
    ("bandwidth", "bw"),
    ("benchmark", "run"),
    ("info", "devices"),
    ("latency", "lat"),
    ("list", "plans"),
    ("test", "doctor"),
    ("throughput", "bw"),
];

/// Names for groups of subjects, with their commands.
const GROUPS: [(&str, &[&str]); 7] = [
    ("ib", &VERBS),
    ("infiniband", &VERBS),
    ("rdma", &VERBS),
    ("roce", &VERBS),
    ("socket", &SOCKETS),
    ("sockets", &SOCKETS),
    ("verbs", &VERBS),
];

/// Flags that a command does not have because it does what they ask for.
const NEEDLESS: [(&str, &str, &str); 2] = [
    ("run", "--local", "all ranks of a plan run on this host unless --hosts names others; leave it out"),
    ("advise", "--local", "both ranks run on this host unless --hosts names others; leave it out"),
];

/// Names of flags in other tools and in plans, with the flag here.
const FLAGS: [(&str, &str); 8] = [
    ("--bytes", "size"),
    ("--count", "iters"),
    ("--inline", "inline_size"),
    ("--iterations", "iters"),
    ("--message-size", "size"),
    ("--msg-size", "size"),
    ("--seconds", "duration"),
    ("--time", "duration"),
];

/// Flags that clap can only say to be missing, and what they are for.
const MISSING: [(&str, &str); 1] = [(
    "--via",
    "--via says how to start a command on a host, such as --via 'ssh {host}'; {host} stands for each name of --hosts",
)];

/// Returns the error of a command line with the tips that fit it. The first of its words is the
/// name of the program.
pub(crate) fn explained(mut error: Error, line: &Command, words: &[OsString]) -> Error {
    let given = || words.iter().skip(1);
    let within = given().find_map(|word| line.find_subcommand(word));
    let innermost = given().fold(line, |of, word| of.find_subcommand(word).unwrap_or(of));
    let text = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(&error, ContextKind::InvalidSubcommand);
            let near = near(&error, &word, within.unwrap_or(line));
            let other = other_name(&word, within);
            error.remove(ContextKind::SuggestedSubcommand);
            if other.is_none() && !near.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
            }
            other
        }
        ErrorKind::UnknownArgument => {
            // clap's tip to give the flag as a value after `--` is of no use for these commands.
            error.remove(ContextKind::Suggested);
            let flag = text(&error, ContextKind::InvalidArg);
            let command = within.map_or("", Command::get_name);
            let needless = NEEDLESS.iter().find(|(of, name, _)| *of == command && *name == flag);
            let other = FLAGS.iter().find(|(name, ours)| *name == flag && has(innermost, ours));
            let similar = text(&error, ContextKind::SuggestedArg);
            if other.is_some() || needless.is_some() || !has(innermost, similar.trim_start_matches('-')) {
                error.remove(ContextKind::SuggestedArg);
            }
            needless
                .map(|(.., tip)| (*tip).to_owned())
                .or_else(|| other.map(|(_, ours)| format!("use '--{ours}'")))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = text(&error, ContextKind::InvalidArg);
            MISSING.iter().find(|(flag, _)| missing.contains(flag)).map(|(_, tip)| (*tip).to_owned())
        }
        ErrorKind::ArgumentConflict if given().any(|word| word == "{host}") => {
            Some("quote the value of --via: --via 'ssh {host}'".to_owned())
        }
        _ => None,
    };
    if let Some(tip) = tip {
        let styled = StyledStr::from(tip);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![styled]));
    }
    error
}

/// Whether the help of a command lists a flag, or the command takes it as another name of one.
fn has(command: &Command, long: &str) -> bool {
    let mut listed = command.get_arguments().filter(|arg| !arg.is_hide_set());
    listed.any(|arg| {
        arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
    })
}

/// Returns the commands that the help lists and the user may have meant: clap's suggestions, and
/// names that differ from the word by two exchanged letters.
fn near(error: &Error, word: &str, of: &Command) -> Vec<String> {
    let suggested = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => std::slice::from_ref(name),
        Some(ContextValue::Strings(names)) => names,
        _ => &[],
    };
    let listed = of.get_subcommands().filter(|known| !known.is_hide_set());
    let exchanged = listed.map(Command::get_name).filter(|name| are_exchanged(word, name));
    let name_of = |name: &String| of.find_subcommand(name.as_str()).filter(|known| !known.is_hide_set());
    let mut names: Vec<String> = exchanged.map(str::to_owned).collect();
    for name in suggested.iter().filter_map(name_of).map(|known| known.get_name().to_owned()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether two words are equal but for two letters, which are exchanged.
fn are_exchanged(one: &str, other: &str) -> bool {
    let pairs: Vec<(u8, u8)> = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).collect();
    match pairs[..] {
        [(a, b), (c, d)] => one.len() == other.len() && a == d && b == c,
        _ => false,
    }
}

/// Returns the command for a name that another tool, a plan or a paper has for it.
pub(crate) fn other_command(word: &str) -> Option<&'static str> {
    let known = COMMANDS.iter().find(|(name, _)| *name == word).map(|(_, ours)| *ours);
    let of_pattern = || Pattern::all().find(|pattern| pattern.name() == word).map(|of| of.command().name);
    known.or_else(of_pattern)
}

/// Returns a tip for a name that another tool, a plan or a paper uses. `within` is the command to
/// which the name was given, if there is one.
fn other_name(word: &str, within: Option<&Command>) -> Option<String> {
    let Some(command) = within.filter(|command| command.get_name() != "help") else {
        let asks = if within.is_some() { "help " } else { "" };
        return other_command(word).map(|ours| format!("use 'rdmascope {asks}{ours}'"));
    };
    let (_, names) = GROUPS.iter().find(|(name, _)| *name == word)?;
    let offered: Vec<&str> =
        names.iter().copied().filter(|name| command.find_subcommand(name).is_some()).collect();
    let last = offered.last()?;
    let first = offered[..offered.len() - 1].join(", ");
    let all = if first.is_empty() { (*last).to_owned() } else { format!("{first} or {last}") };
    Some(format!("use {all}"))
}
