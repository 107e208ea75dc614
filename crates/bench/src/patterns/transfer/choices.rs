//! What files of a transfer are read from and written to.

use crate::point::choice::choice;

choice! {
    /// Where the bytes of files come from or go to: the axes `file_source` and `file_sink`.
    pub enum Place {
        /// Files that are read or written past the page cache (O_DIRECT), where their file system
        /// can do that.
        Direct = "direct",
        /// Files.
        File = "file",
        /// Memory alone: nothing is read, and what arrives is forgotten.
        Memory = "memory",
    }
}
