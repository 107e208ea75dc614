//! Prints errors and turns them into exit statuses.

use std::io;
use std::process::ExitCode;

/// Exit status of a command that could not run or did not finish.
pub(crate) const DID_NOT_FINISH: u8 = 1;
/// Exit status of a comparison that found a difference and cannot say more, or of a fleet of which
/// too little could be measured.
pub(crate) const UNDECIDED: u8 = 1;
/// Exit status if an expectation is not met, a comparison found the new side worse, or a member of
/// a fleet is slow.
pub(crate) const NOT_MET: u8 = 3;
/// Exit status of a run in which some points failed, or of a comparison in which points failed on
/// the new side.
pub(crate) const PARTIAL: u8 = 4;
/// Exit status of a program that `exec` found and could not start, as a shell's.
pub(crate) const NOT_STARTED: u8 = 126;
/// Exit status of a program that `exec` did not find, as a shell's.
pub(crate) const NO_SUCH_PROGRAM: u8 = 127;
/// Exit status of wrong usage or a wrong plan.
pub(crate) const USAGE: u8 = 2;

/// Prints an error and returns its exit status.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(told(error))
}

/// Prints an error and returns its exit status, for code that ends the process itself.
pub(crate) fn told(error: &anyhow::Error) -> u8 {
    if is_closed_pipe(error) {
        // The reader of the output, such as `head`, has seen enough: that is no failure.
        return 0;
    }
    eprintln!("rdmascope: {}", harmless(&format!("{error:#}")));
    status(error)
}

/// Returns the exit status of a command that has printed its results, or failed to: a closed pipe
/// or a full disk replaces only the status of success.
pub(crate) fn reported(status: u8, printed: anyhow::Result<()>) -> ExitCode {
    let failed = printed.map_or_else(|error| told(&error), |()| 0);
    ExitCode::from(if status == 0 { failed } else { status })
}

/// Escapes the characters of a text that a terminal would act on: the text may quote a file, an
/// argument or another host.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = match error.downcast_ref() {
        Some(bench::Error::Sink { cause, .. }) => cause.downcast_ref::<io::Error>(),
        _ => error.downcast_ref::<io::Error>(),
    };
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn status(error: &anyhow::Error) -> u8 {
    if let Some(signal) = signal(error) {
        return interrupted(signal);
    }
    if let Some(NotStarted { status, .. }) = error.downcast_ref() {
        return *status;
    }
    let is_usage = error.is::<Usage>()
        || error.downcast_ref::<bench::Error>().is_some_and(bench::Error::is_usage)
        || error.downcast_ref::<measure::Error>().is_some_and(measure::Error::is_usage)
        || error.downcast_ref::<report::Error>().is_some_and(report::Error::is_usage);
    if is_usage { USAGE } else { DID_NOT_FINISH }
}

/// The name of the signal that ended a command, if one did.
fn signal(error: &anyhow::Error) -> Option<&str> {
    if let Some(Interrupted { signal, .. }) = error.downcast_ref() {
        return Some(signal);
    }
    match error.downcast_ref()? {
        bench::Error::Interrupted { signal }
        | bench::Error::StoppedWaiting { signal }
        | bench::Error::Stopped { signal, .. } => Some(signal),
        _ => None,
    }
}

/// The exit status of a command that a signal has stopped: as a shell reports one that the signal
/// has killed.
fn interrupted(signal: &str) -> u8 {
    match signal {
        "SIGINT" => 128 + 2,
        _ => 128 + 15,
    }
}

/// A command was stopped by a signal.
#[derive(Debug)]
pub(crate) struct Interrupted {
    /// The name of the signal.
    pub(crate) signal: String,
    /// What that means for the results.
    pub(crate) why: String,
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stopped by {}: {}", self.signal, self.why)
    }
}

impl std::error::Error for Interrupted {}

/// A program was not started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    /// Which program, and why.
    pub(crate) why: String,
    /// The exit status.
    pub(crate) status: u8,
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for NotStarted {}

/// An error in the use of a command.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
