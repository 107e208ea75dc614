//! Memory of the device or of the program, with its registration.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use verbs::abi::*;

/// The size of a page in bytes.
const PAGE: usize = 4096;

/// A piece of memory with its registration.
pub(super) struct Region {
    pub(super) mr: *mut ibv_mr,
    pub(super) addr: *mut u8,
    pub(super) len: usize,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
    pub(super) from_device: bool,
    /// The file that is mapped there.
    pub(super) file: Option<OwnedFd>,
}

/// The kind of memory that a region registers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Memory {
    /// Memory of the device if it has memory, otherwise as `Own`.
    Device,
    /// A private mapping of the program.
    Own,
    /// A private mapping without write permission.
    ReadOnly,
    /// A private mapping without any permission.
    Inaccessible,
    /// A private mapping whose last page was unmapped.
    Incomplete,
    /// A shared mapping of a file.
    File,
}

impl Memory {
    const ALL: [Self; 6] =
        [Self::Device, Self::Own, Self::ReadOnly, Self::Inaccessible, Self::Incomplete, Self::File];

    /// Returns the kind as a word of a command.
    pub fn word(self) -> u64 {
        self as u64
    }

    pub(super) fn of(word: u64) -> Self {
        Self::ALL[word as usize]
    }
}

pub(super) fn file_of(len: usize) -> OwnedFd {
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(c"conformance".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "no file for {len} B");
    // SAFETY: the descriptor was just made and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    rustix::fs::ftruncate(&file, len as u64).expect("a file in memory has any length");
    file
}

pub(super) fn map(len: usize, kind: Memory, file: Option<&OwnedFd>) -> *mut c_void {
    let protection = match kind {
        Memory::ReadOnly => libc::PROT_READ,
        Memory::Inaccessible => libc::PROT_NONE,
        _ => libc::PROT_READ | libc::PROT_WRITE,
    };
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let addr = unsafe { libc::mmap(null_mut(), len.max(1), protection, flags, fd, 0) };
    assert!(addr != libc::MAP_FAILED, "no memory for {len} B");
    if kind == Memory::Incomplete {
        assert!(len > PAGE && len.is_multiple_of(PAGE), "{len} B are not several whole pages");
        // SAFETY: the last page lies in the new mapping, which has no references yet.
        unsafe { libc::munmap(addr.byte_add(len - PAGE), PAGE) };
    }
    addr
}
