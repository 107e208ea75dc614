//! Opening files of the tree, and resolving their paths.
//!
//! The content of a file is made when the file is opened, and is read from memory.

use std::ffi::{CStr, CString, c_char, c_int};

use libc::mode_t;

use crate::asked::{Path, fail, node};
use crate::manager;
use crate::next::next_functions;
use crate::refused::fail as none;
use softdev::tree::{self, Node};

type Stream = *mut libc::FILE;
type Text = *mut c_char;

next_functions! {
    open(path: Path, flags: c_int, mode: mode_t) -> c_int;
    open64(path: Path, flags: c_int, mode: mode_t) -> c_int;
    openat(at: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int;
    openat64(at: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int;
    __open_2(path: Path, flags: c_int) -> c_int;
    __open64_2(path: Path, flags: c_int) -> c_int;
    __openat_2(at: c_int, path: Path, flags: c_int) -> c_int;
    __openat64_2(at: c_int, path: Path, flags: c_int) -> c_int;
    fopen(path: Path, mode: Path) -> Stream;
    fopen64(path: Path, mode: Path) -> Stream;
    readlink(path: Path, to: Text, bytes: usize) -> isize;
    realpath(path: Path, to: Text) -> Text;
    __realpath_chk(path: Path, to: Text, bytes: usize) -> Text;
    canonicalize_file_name(path: Path) -> Text;
}

pub(crate) unsafe fn open(path: Path, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { opened(path, flags).unwrap_or_else(|| next::open(path, flags, mode)) }
}

pub(crate) unsafe fn open64(path: Path, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::open64(path, flags, mode)) }
}

pub(crate) unsafe fn openat(at: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::openat(at, path, flags, mode)) }
}

pub(crate) unsafe fn openat64(at: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::openat64(at, path, flags, mode)) }
}

pub(crate) unsafe fn __open_2(path: Path, flags: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::__open_2(path, flags)) }
}

pub(crate) unsafe fn __open64_2(path: Path, flags: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::__open64_2(path, flags)) }
}

pub(crate) unsafe fn __openat_2(at: c_int, path: Path, flags: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::__openat_2(at, path, flags)) }
}

pub(crate) unsafe fn __openat64_2(at: c_int, path: Path, flags: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe { opened(path, flags).unwrap_or_else(|| next::__openat64_2(at, path, flags)) }
}

pub(crate) unsafe fn fopen(path: Path, mode: Path) -> Stream {
    // SAFETY: as for `open`.
    unsafe { streamed(path, mode).unwrap_or_else(|| next::fopen(path, mode)) }
}

pub(crate) unsafe fn fopen64(path: Path, mode: Path) -> Stream {
    // SAFETY: as for `open`.
    unsafe { streamed(path, mode).unwrap_or_else(|| next::fopen64(path, mode)) }
}

/// No file of the tree is a link.
pub(crate) unsafe fn readlink(path: Path, to: Text, bytes: usize) -> isize {
    // SAFETY: as for `open`.
    unsafe {
        if node(path).is_some() {
            return fail(libc::EINVAL) as isize;
        }
        next::readlink(path, to, bytes)
    }
}

pub(crate) unsafe fn realpath(path: Path, to: Text) -> Text {
    // SAFETY: as for `open`.
    unsafe { resolved(path, to).unwrap_or_else(|| next::realpath(path, to)) }
}

pub(crate) unsafe fn __realpath_chk(path: Path, to: Text, bytes: usize) -> Text {
    // SAFETY: as for `open`.
    unsafe { resolved(path, to).unwrap_or_else(|| next::__realpath_chk(path, to, bytes)) }
}

pub(crate) unsafe fn canonicalize_file_name(path: Path) -> Text {
    // SAFETY: as for `open`.
    unsafe { resolved(path, std::ptr::null_mut()).unwrap_or_else(|| next::canonicalize_file_name(path)) }
}

/// Opens a file of the tree. The path is absolute, so it does not matter which directory a relative
/// path would start at.
///
/// # Safety
/// The path is a string or null.
unsafe fn opened(path: Path, flags: c_int) -> Option<c_int> {
    // SAFETY: guaranteed by the caller.
    let node = unsafe { node(path) }?;
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    Some(match node {
        // Only the verbs can use it.
        Node::Device(_) => fail(libc::ENODEV),
        Node::Manager => manager::open(flags),
        Node::File(_) if writes => fail(libc::EACCES),
        Node::File(_) if flags & libc::O_DIRECTORY == libc::O_DIRECTORY => fail(libc::ENOTDIR),
        Node::File(text) => in_memory(&text, flags & libc::O_CLOEXEC != 0),
        Node::Directory(_) if writes => fail(libc::EISDIR),
        // Only opendir() lists it.
        Node::Directory(_) => fail(libc::EOPNOTSUPP),
    })
}

/// # Safety
/// Path and mode are strings, or null.
unsafe fn streamed(path: Path, mode: Path) -> Option<Stream> {
    // SAFETY: guaranteed by the caller.
    let node = unsafe { node(path) }?;
    // SAFETY: guaranteed by the caller.
    let how = if mode.is_null() { &[][..] } else { unsafe { CStr::from_ptr(mode) }.to_bytes() };
    match node {
        // Commands are written to its descriptor, not to a stream.
        Node::Device(_) | Node::Manager => Some(none(libc::ENODEV)),
        Node::File(_) if !how.starts_with(b"r") || how.contains(&b'+') => Some(none(libc::EACCES)),
        Node::Directory(_) => Some(none(libc::EISDIR)),
        Node::File(text) => {
            let fd = in_memory(&text, how.contains(&b'e'));
            if fd < 0 {
                return Some(std::ptr::null_mut());
            }
            // SAFETY: the descriptor is open, and the mode a string.
            Some(unsafe { libc::fdopen(fd, mode) })
        }
    }
}

/// # Safety
/// The path is a string or null; the buffer has `PATH_MAX` bytes or is null.
unsafe fn resolved(path: Path, to: Text) -> Option<Text> {
    // SAFETY: guaranteed by the caller.
    unsafe { node(path) }?;
    // SAFETY: guaranteed by the caller; the path is not null, because it has a node.
    let plain = CString::new(tree::plain(unsafe { CStr::from_ptr(path) }.to_bytes())?).ok()?;
    // SAFETY: the caller passes a buffer for any path, or null and frees the result.
    Some(unsafe {
        if to.is_null() { libc::strdup(plain.as_ptr()) } else { libc::strcpy(to, plain.as_ptr()) }
    })
}

/// Returns a descriptor from which the text is read.
fn in_memory(text: &str, is_closed_by_exec: bool) -> c_int {
    let flags = if is_closed_by_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is a C string, and the text is readable; the caller owns the descriptor.
    unsafe {
        let fd = libc::memfd_create(c"sysfs".as_ptr(), flags);
        if fd >= 0 {
            libc::pwrite(fd, text.as_ptr().cast(), text.len(), 0);
        }
        fd
    }
}
