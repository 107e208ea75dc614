//! The words for where the files of a transfer come from and go to.

use crate::point::choice::choice;

choice! {
    /// Where the bytes of files come from or go to: the axes `file_source` and `file_sink`.
    pub enum Place {
        /// Files that are read or written past the page cache (O_DIRECT), if their file system
        /// supports it.
        Direct = "direct",
        /// Files, through the page cache.
        File = "file",
        /// Memory only: no file is read, and the bytes that arrive are discarded.
        Memory = "memory",
    }
}
