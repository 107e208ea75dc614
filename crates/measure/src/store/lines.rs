//! A file that only grows by whole lines.

use std::fs::File;
use std::io::{self, Write};

/// A file that lines are appended to. Writes go to its end, also after [`Storage::set_len`].
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
    /// The end of the last whole line.
    whole_bytes: u64,
    /// Whether a part of a line may follow.
    is_torn: bool,
}

impl<S: Storage> Lines<S> {
    pub(super) fn new(storage: S) -> Self {
        Self { storage, whole_bytes: 0, is_torn: false }
    }

    /// Goes on after the first bytes of a storage, which are whole lines; what follows is removed.
    pub(super) fn after(mut storage: S, whole_bytes: u64) -> io::Result<Self> {
        storage.set_len(whole_bytes)?;
        Ok(Self { storage, whole_bytes, is_torn: false })
    }

    #[cfg(test)]
    pub(super) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Appends lines, each of which ends in a newline, and waits until they are on the disk. After
    /// an error the file holds nothing of them; if even that fails, the next call first tries
    /// again.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.storage.set_len(self.whole_bytes)?;
            self.is_torn = false;
        }
        let written = self.storage.write_all(lines).and_then(|()| self.storage.sync_data());
        match written {
            Ok(()) => self.whole_bytes += lines.len() as u64,
            Err(_) => self.is_torn = self.storage.set_len(self.whole_bytes).is_err(),
        }
        written
    }
}
