//! Standard output: results, and nothing else.

use std::io::{self, Write};

/// Prints text and flushes it. The error keeps its kind, so that a closed pipe can be recognised.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    done.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}
