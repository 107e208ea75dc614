//! Memory of the device's or the program's.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use verbs::abi::*;

/// Bytes of a page.
const PAGE: usize = 4096;

/// A piece of memory with its registration.
pub(super) struct Region {
    pub(super) mr: *mut ibv_mr,
    pub(super) addr: *mut u8,
    pub(super) len: usize,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
    pub(super) from_device: bool,
    /// What is mapped there.
    pub(super) file: Option<OwnedFd>,
}

/// What a region is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Memory {
    /// The device's own where it has some, else as `Own`.
    Device,
    /// A private mapping of the program's.
    Own,
    /// A private mapping that may be read only.
    ReadOnly,
    /// A private mapping that may neither be read nor written.
    Inaccessible,
    /// A private mapping whose last page was unmapped.
    Incomplete,
    /// A shared mapping of a file.
    File,
}

impl Memory {
    const ALL: [Self; 6] =
        [Self::Device, Self::Own, Self::ReadOnly, Self::Inaccessible, Self::Incomplete, Self::File];

    /// As a word of a command.
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
    // SAFETY: the descriptor was just made and is nobody else's.
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
        assert!(len > PAGE && len.is_multiple_of(PAGE), "{len} B have no last page of their own");
        // SAFETY: the last page lies in the new mapping, which nobody refers to.
        unsafe { libc::munmap(addr.byte_add(len - PAGE), PAGE) };
    }
    addr
}
