//! A file that only ever grows by whole lines.

use std::fs::File;
use std::io::{self, Write};

/// What lines are appended to. Writes go to its end, wherever [`Storage::set_len`] has put that.
pub(super) trait Storage: Write {
    /// Cuts or extends to a length.
    fn set_len(&mut self, bytes: u64) -> io::Result<()>;
    /// Waits until the content has reached the disk.
    fn sync_data(&mut self) -> io::Result<()>;
}

/// A file that was opened for appending.
impl Storage for File {
    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        Self::set_len(self, bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Self::sync_data(self)
    }
}

/// Whole lines in an empty storage.
#[derive(Debug)]
pub(super) struct Lines<S> {
    storage: S,
    /// Where the last whole line ends.
    whole_bytes: u64,
    /// Whether there may be a part of a line behind that.
    is_torn: bool,
}

impl<S: Storage> Lines<S> {
    pub(super) fn new(storage: S) -> Self {
        Self { storage, whole_bytes: 0, is_torn: false }
    }

    #[cfg(test)]
    pub(super) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Appends a line, which ends in a newline, and waits until it is on the disk. After an error
    /// there is nothing of it in the file; where even that fails, the next call tries again first.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.storage.set_len(self.whole_bytes)?;
            self.is_torn = false;
        }
        let written = self.storage.write_all(line).and_then(|()| self.storage.sync_data());
        match written {
            Ok(()) => self.whole_bytes += line.len() as u64,
            Err(_) => self.is_torn = self.storage.set_len(self.whole_bytes).is_err(),
        }
        written
    }
}
