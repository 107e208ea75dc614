use bench::axis::ROWS;
use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// Flags of all commands that have a name.
fn flags(command: &Command, long: &str, found: &mut Vec<Arg>) {
    let is_named = |arg: &&Arg| arg.get_long() == Some(long);
    found.extend(command.get_arguments().filter(is_named).cloned());
    command.get_subcommands().for_each(|command| flags(command, long, found));
}

#[test]
fn flags_are_those_of_the_table_of_axes() {
    for row in ROWS {
        for flag in row.flags {
            let mut found = Vec::new();
            flags(&Cli::command(), flag.long, &mut found);
            let is_one = |arg: &&Arg| {
                let name = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
                let takes_value = arg.get_action().takes_values();
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_short() == flag.letter
                    && name.filter(|_| takes_value) == flag.value_name
                    && aliases == flag.aliases
            };
            assert!(found.iter().any(|arg| is_one(&arg)), "{}: --{}: {found:?}", row.name, flag.long);
        }
    }
}
