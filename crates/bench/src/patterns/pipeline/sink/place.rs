//! The file of a rank's samples, which is created before the first sample.

use std::fmt;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file that is created before the first sample.
pub(super) struct Place {
    pub(super) file: File,
    /// The path of a file that stays. Without a directory in the plan, the file has no name and
    /// disappears when the process ends, however it ends.
    pub(super) path: Option<PathBuf>,
    pub(super) is_written: bool,
}

impl Place {
    /// Creates the file in the plan's directory, or without a name.
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
            // A failure to remove it is ignored: nothing can be done about it here.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Creates a new file, and its directory if necessary.
///
/// # Errors
/// Why the file cannot be created, and what to do.
pub(super) fn create(path: &Path) -> Result<File, String> {
    let made = path.parent().map_or(Ok(()), create_dir_all);
    let file = made.and_then(|()| OpenOptions::new().write(true).create_new(true).open(path));
    file.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AlreadyExists => "another run wrote it: give another sink_dir",
            _ => "give a sink_dir that can be written to",
        };
        format!("cannot create {}: {error}: {advice}", path.display())
    })
}

/// Creates a file without a name.
///
/// # Errors
/// As [`create`].
fn nameless() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| {
        let directory = std::env::temp_dir();
        format!("cannot create a file in {}: {error}: name a directory in TMPDIR", directory.display())
    })
}
