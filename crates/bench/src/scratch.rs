//! A temporary directory of a point. It is removed with its contents, even if this process is
//! killed.

use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::process::child::{Process, Streams};

/// A temporary directory.
pub(crate) struct ScratchDirectory {
    directory: TempDir,
    /// A process that removes the directory when its standard input ends, as it does when this
    /// process is killed.
    _remover: (Process, Streams),
}

impl ScratchDirectory {
    /// Makes a directory in `within`, or else in the system's directory for temporary files.
    /// `supervisor` is the command of the supervisor, without the options that follow.
    ///
    /// # Errors
    /// If the system refuses the directory or the process that removes it.
    pub(crate) fn new(within: Option<&Path>, supervisor: &[String]) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("rdmascope-");
        let directory = match within {
            Some(path) => builder.tempdir_in(path)?,
            None => builder.tempdir()?,
        };
        let mut words = supervisor.to_vec();
        // Absolute, so that it does not depend on the working directory.
        let path = std::path::absolute(directory.path())?;
        words.extend(["--remove".to_owned(), path.to_string_lossy().into_owned()]);
        let remover = Process::start_guard(&words, &[])?;
        Ok(Self { directory, _remover: remover })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}
