//! Standard output: results, and nothing else.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use clap::ValueEnum;
use rustix::termios::tcgetwinsize;

/// Whether tables have colours.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Colour {
    /// In a terminal, unless the variable NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

static COLOUR: OnceLock<Colour> = OnceLock::new();

impl Colour {
    /// Sets the colours of this process.
    pub(crate) fn set(self) {
        // Called once, when the command line is known.
        let _ = COLOUR.set(self);
    }

    fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stdout().is_terminal() && !is_unwanted && !is_dumb
            }
        }
    }
}

/// Fewest characters of a line: tables need them.
const LINE_MIN: usize = 60;

/// Returns the characters of a line: the variable COLUMNS, or the width of the terminal. None for a
/// file or a pipe without the variable, whose lines stay whole.
pub(crate) fn line() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        let size = io::stdout().is_terminal().then(|| tcgetwinsize(io::stdout()).ok()).flatten()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    given.filter(|columns| *columns > 0).or_else(terminal).map(|columns: usize| columns.max(LINE_MIN))
}

/// Prints text like [`print()`], with its lines broken where the page has no room,
/// and with colours where they are wanted.
pub(crate) fn print_folded(text: &str) -> io::Result<()> {
    let folded = line().map(|line| report::terminal::folded(text, line));
    let text = folded.as_deref().unwrap_or(text);
    if COLOUR.get().copied().unwrap_or_default().is_on() {
        return print(&report::terminal::coloured(text));
    }
    print(text)
}

/// Prints text and flushes it. The error keeps its kind, so that a closed pipe can be recognised.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    done.map_err(|error| cannot_write(&error))
}

/// Returns an error of standard output in words. It keeps its kind, so that a closed pipe can be
/// recognised.
pub(crate) fn cannot_write(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}
