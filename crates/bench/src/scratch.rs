//! A directory of a point, which is removed with all that is in it, also where this process is
//! killed.

use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::process::child::{Process, Streams};

/// A directory that somebody works in for a while.
pub(crate) struct ScratchDirectory {
    directory: TempDir,
    /// A process that removes the directory when its standard input ends, as it does when this
    /// process is killed.
    _remover: (Process, Streams),
}

impl ScratchDirectory {
    /// Makes one in a directory, or else in that of temporary files. `supervisor` is the command of
    /// this program that supervises, before its own options.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn new(within: Option<&Path>, supervisor: &[String]) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("rdmascope-");
        let directory = match within {
            Some(path) => builder.tempdir_in(path)?,
            None => builder.tempdir()?,
        };
        let mut words = supervisor.to_vec();
        // From any working directory.
        let path = std::path::absolute(directory.path())?;
        words.extend(["--remove".to_owned(), path.to_string_lossy().into_owned()]);
        let remover = Process::start_guard(&words, &[])?;
        Ok(Self { directory, _remover: remover })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}
