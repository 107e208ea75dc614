//! Memory that the ranks of one host share, outside of any device.
//!
//! One rank makes the memory and tells the others how to open it: through `/proc`, which the kernel
//! allows only to the same user. The memory is filled with zeroes, and all of its pages are present
//! from the start.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};

/// The size of a line: two cache lines, because processors fetch cache lines in pairs.
pub(crate) const LINE_BYTES: usize = 128;

/// The seals of the memory: no process can make it shorter or longer.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// How another rank of the host opens the memory.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handle {
    pub(crate) pid: u32,
    pub(crate) fd: i32,
    pub(crate) inode: u64,
}

/// Shared memory in lines. Either the first word of each line is used, or the caller is responsible
/// for the bytes of the lines.
#[derive(Debug)]
pub(crate) struct Shared {
    base: *mut u8,
    lines: usize,
    /// Kept open so that other ranks can find it.
    file: OwnedFd,
}

// SAFETY: the pointer is to a mapping that the value owns, and accesses to it are atomic.
unsafe impl Send for Shared {}
// SAFETY: a borrowed value returns atomics, and pointers for which the caller is responsible.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes memory of so many lines.
    ///
    /// # Errors
    /// The error of the system, as text.
    pub(crate) fn offer(name: &str, lines: usize) -> Result<Self, String> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(name, flags).map_err(words)?;
        rustix::fs::ftruncate(&file, (lines * LINE_BYTES) as u64).map_err(words)?;
        rustix::fs::fcntl_add_seals(&file, SEALS).map_err(words)?;
        Self::map(file, lines)
    }

    /// Opens the lines of another process of this host.
    ///
    /// # Errors
    /// If they do not exist, or the handle now names another file.
    pub(crate) fn open(handle: &Handle, lines: usize) -> Result<Self, String> {
        let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(words)?;
        // The handle comes from a peer, which could name any file that this user has open. Only
        // memory made by a rank is sealed.
        let is_memory = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        let stat = rustix::fs::fstat(&file).map_err(words)?;
        if !is_memory
            || stat.st_ino != handle.inode
            || u64::try_from(stat.st_size).unwrap_or(0) < (lines * LINE_BYTES) as u64
        {
            return Err("the ranks are not on one host".to_owned());
        }
        Self::map(file, lines)
    }

    /// The handle with which another rank opens it.
    ///
    /// # Errors
    /// The error of the system, as text.
    pub(crate) fn handle(&self) -> Result<Handle, String> {
        let inode = rustix::fs::fstat(&self.file).map_err(words)?.st_ino;
        Ok(Handle { pid: std::process::id(), fd: self.file.as_raw_fd(), inode })
    }

    /// The first word of a line.
    #[inline]
    pub(crate) fn word(&self, line: usize) -> &AtomicU64 {
        assert!(line < self.lines, "line {line} of {}", self.lines);
        // SAFETY: the line lies in the mapping, which is aligned to pages, is written only through
        // atomics, and lives as long as the borrowed value.
        unsafe { &*self.base.add(line * LINE_BYTES).cast::<AtomicU64>() }
    }

    /// The start of `count` lines from `first` on. They live as long as the value.
    pub(crate) fn lines(&self, first: usize, count: usize) -> *mut u8 {
        let end = first.checked_add(count);
        assert!(end.is_some_and(|end| end <= self.lines), "{count} lines from {first} of {}", self.lines);
        // SAFETY: the line lies in the mapping, or directly after it.
        unsafe { self.base.add(first * LINE_BYTES) }
    }

    fn map(file: OwnedFd, lines: usize) -> Result<Self, String> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let length = lines * LINE_BYTES;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no other.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, protection, flags, &file, 0) };
        Ok(Self { base: base.map_err(words)?.cast(), lines, file })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference to it outlives the value.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.lines * LINE_BYTES) };
    }
}

fn words(errno: rustix::io::Errno) -> String {
    std::io::Error::from(errno).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let ours = Shared::offer("rdmascope-test", 40).unwrap();
        let theirs = Shared::open(&ours.handle().unwrap(), 40).unwrap();
        assert_eq!(theirs.word(39).load(Relaxed), 0);
        ours.word(39).store(7, Relaxed);
        assert_eq!((theirs.word(39).load(Relaxed), theirs.word(38).load(Relaxed)), (7, 0));
    }

    #[test]
    fn another_file_or_one_too_short_is_not_opened() {
        let ours = Shared::offer("rdmascope-test", 1).unwrap();
        let handle = ours.handle().unwrap();
        assert!(Shared::open(&handle, 1).is_ok());
        assert!(Shared::open(&handle, 2).is_err());
        assert!(Shared::open(&Handle { inode: handle.inode + 1, ..handle }, 1).is_err());
        assert!(Shared::open(&Handle { fd: 9999, ..handle }, 1).is_err());
        // Another open file of this process is not shared memory, even if it is long enough.
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        let named = Handle { fd: file.as_raw_fd(), inode, ..handle };
        assert!(Shared::open(&named, 1).is_err());
    }
}
