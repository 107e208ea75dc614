//! The file of an end, from before the first sample on.

use std::fmt;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file, from before the first sample on.
pub(super) struct Place {
    pub(super) file: File,
    /// Where it stays. One that nobody has asked for has no name, and so goes with the process,
    /// however that ends.
    pub(super) path: Option<PathBuf>,
    pub(super) is_written: bool,
}

impl Place {
    /// Where the plan says, or without a name.
    pub(super) fn new(directory: Option<&str>, name: String) -> Result<Self, String> {
        let path = directory.map(|directory| PathBuf::from(directory).join(name));
        let file = path.as_deref().map_or_else(nameless, create)?;
        Ok(Self { file, path, is_written: false })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(out),
            None => write!(out, "a file in {}", std::env::temp_dir().display()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_ref().filter(|_| !self.is_written) {
            // Whether it goes or not, nothing is to be done about it here.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes a file that is not there yet, and the directory that it is in.
///
/// # Errors
/// Why that cannot be, and what to do.
pub(super) fn create(path: &Path) -> Result<File, String> {
    let made = path.parent().map_or(Ok(()), create_dir_all);
    let file = made.and_then(|()| OpenOptions::new().write(true).create_new(true).open(path));
    file.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AlreadyExists => "it is another run's: give another sink_dir",
            _ => "give a sink_dir that can be written to",
        };
        format!("cannot make {}: {error}: {advice}", path.display())
    })
}

/// Makes a file that nobody else sees.
///
/// # Errors
/// As [`create`].
fn nameless() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| {
        let directory = std::env::temp_dir();
        format!("cannot make a file in {}: {error}: name a directory in TMPDIR", directory.display())
    })
}
