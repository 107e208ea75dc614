//! The hash of a file, which identifies its version.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// A file at one time: path, device, inode, size, and the time of its last change.
type Known = (PathBuf, u64, u64, u64, i64, i64);

/// Known hashes: a program of many megabytes may run again and again.
static HASHES: LazyLock<Mutex<HashMap<Known, String>>> = LazyLock::new(Mutex::default);

/// Returns the SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let of = file.metadata()?;
    let known = (path.to_owned(), of.dev(), of.ino(), of.size(), of.mtime(), of.mtime_nsec());
    let hashes = || HASHES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hash) = hashes().get(&known) {
        return Ok(hash.clone());
    }
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher)?;
    let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hashes().insert(known, hash.clone());
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).unwrap(), abc);
        assert_eq!(sha256(&path).unwrap(), abc);
        std::fs::write(&path, "").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(&path).unwrap(), empty);
    }
}
