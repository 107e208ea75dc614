//! From errors to sentences and exit statuses: 1 could not run or did not finish, 2 wrong usage or
//! plan.

use std::io;
use std::process::ExitCode;

/// Ran, but not everything could be measured as it should.
pub(crate) const DID_NOT_FINISH: u8 = 1;
/// Wrong usage or plan.
const USAGE: u8 = 2;

/// Prints an error and gives its exit status.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // Whoever read our output has seen enough; that is no failure of ours.
        return ExitCode::SUCCESS;
    }
    eprintln!("rdmascope: {}", harmless(&format!("{error:#}")));
    ExitCode::from(status(error))
}

/// A text without characters that a terminal would act on: it may quote a file, an argument or
/// another host.
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
    let is_usage = error.is::<Usage>()
        || error.downcast_ref::<bench::Error>().is_some_and(bench::Error::is_usage)
        || error.downcast_ref::<measure::Error>().is_some_and(measure::Error::is_usage)
        || error.downcast_ref::<report::Error>().is_some_and(report::Error::is_usage);
    if is_usage { USAGE } else { DID_NOT_FINISH }
}

/// Something that was asked for and makes no sense.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
