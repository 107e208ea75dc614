//! Standard output: results, and nothing else.

use std::io::{self, Write};

/// Prints text at once. The error says where it comes from and keeps its kind, which tells a closed
/// pipe from a fault.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    done.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}
