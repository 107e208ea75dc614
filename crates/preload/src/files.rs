//! The attributes of files of [the tree](softdev::tree), for programs that check whether they
//! exist.
//!
//! UCX skips a device unless `stat` shows its file as a character device and `access` says that it
//! can be read and written (`uct_ib_device_is_accessible`). UCX does not open the file; libibverbs
//! does.
//!
//! # Invariants
//!
//! * Each function calls the next function of its name. It answers itself only if that has found no
//!   file (`ENOENT`) and the path is in the tree. All other results, and their `errno`, are the
//!   next function's.
//! * Constructors of other libraries, and memory allocators, may call these functions before this
//!   library is ready: until then they only call the C library's.

use std::ffi::{CStr, c_int, c_uint};

use libc::ENOENT;
use softdev::tree::{self, Node};

use crate::asked::{Path, errno, node};
use crate::next::next_functions;

pub(crate) type Stat = *mut libc::stat;
pub(crate) type Statx = *mut libc::statx;

/// Functions of libc: name, parameters, and the result for a path without a file.
macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) else $answer:expr;)*) => {
        next_functions! {
            $($name($($arg: $type),*) -> c_int;)*
        }

        $(
            pub(crate) unsafe fn $name($($arg: $type),*) -> c_int {
                let errno = errno();
                // SAFETY: errno's location is valid in every thread.
                let before = unsafe { *errno };
                // SAFETY: the caller keeps the contract of the function of this name.
                let answer = unsafe { next::$name($($arg),*) };
                // SAFETY: as above.
                if answer == 0 || unsafe { *errno } != ENOENT {
                    return answer;
                }
                // SAFETY: the system has read the path, and has not written to the caller's memory.
                let Some(error) = (unsafe { $answer }) else { return answer };
                // SAFETY: as above.
                unsafe { *errno = if error == 0 { before } else { error } };
                if error == 0 { 0 } else { -1 }
            }
        )*
    };
}

functions! {
    stat(path: Path, to: Stat) else show(path, to);
    stat64(path: Path, to: Stat) else show(path, to);
    lstat(path: Path, to: Stat) else show(path, to);
    lstat64(path: Path, to: Stat) else show(path, to);
    fstatat(at: c_int, path: Path, to: Stat, flags: c_int) else show(path, to);
    fstatat64(at: c_int, path: Path, to: Stat, flags: c_int) else show(path, to);

    // For programs that were linked with glibc 2.32 or older. On 64-bit machines, the only ones
    // that the device is built for, all versions of the structure are the same.
    __xstat(version: c_int, path: Path, to: Stat) else show(path, to);
    __xstat64(version: c_int, path: Path, to: Stat) else show(path, to);
    __lxstat(version: c_int, path: Path, to: Stat) else show(path, to);
    __lxstat64(version: c_int, path: Path, to: Stat) else show(path, to);
    __fxstatat(version: c_int, at: c_int, path: Path, to: Stat, flags: c_int) else show(path, to);
    __fxstatat64(version: c_int, at: c_int, path: Path, to: Stat, flags: c_int) else show(path, to);

    statx(at: c_int, path: Path, flags: c_int, mask: c_uint, to: Statx) else show_extended(path, to);

    access(path: Path, mode: c_int) else allow(path, mode);
    euidaccess(path: Path, mode: c_int) else allow(path, mode);
    eaccess(path: Path, mode: c_int) else allow(path, mode);
    faccessat(at: c_int, path: Path, mode: c_int, flags: c_int) else allow(path, mode);
}

/// Returns type and permissions of a file, its device number, and its size. Everyone may read and
/// write the kernel's devices (rdma-core, `kernel-boot/rdma-umad.rules` and
/// `rdma-hw-modules.rules`).
fn described(node: &Node) -> (libc::mode_t, (u32, u32), i64) {
    match node {
        Node::Device(number) => {
            (libc::S_IFCHR | 0o666, (tree::MAJOR, tree::FIRST_MINOR + u32::from(*number)), 0)
        }
        Node::Manager => (libc::S_IFCHR | 0o666, tree::manager_number(), 0),
        // As in sysfs, where each file has a page.
        Node::File(_) => (libc::S_IFREG | 0o444, (0, 0), 4096),
        Node::Directory(_) => (libc::S_IFDIR | 0o755, (0, 0), 0),
    }
}

/// Fills the attributes of a file of the tree. Returns an error number, or 0.
///
/// # Safety
/// The path is a C string; there is space for the structure.
unsafe fn show(path: Path, to: Stat) -> Option<c_int> {
    // SAFETY: guaranteed by the caller.
    let (mode, (major, minor), bytes) = described(&unsafe { node(path) }?);
    // SAFETY: all-zero bytes are a valid stat: integers.
    let mut file: libc::stat = unsafe { std::mem::zeroed() };
    file.st_mode = mode;
    file.st_nlink = 1;
    file.st_rdev = libc::makedev(major, minor);
    // SAFETY: guaranteed by the caller.
    file.st_ino = unsafe { inode(path) };
    file.st_size = bytes;
    file.st_blksize = 4096;
    // SAFETY: guaranteed by the caller.
    unsafe { to.write(file) };
    Some(0)
}

/// As [`show`], for `statx`.
///
/// # Safety
/// The path is a C string; there is space for the structure.
unsafe fn show_extended(path: Path, to: Statx) -> Option<c_int> {
    // SAFETY: guaranteed by the caller.
    let (mode, (major, minor), bytes) = described(&unsafe { node(path) }?);
    // SAFETY: all-zero bytes are a valid statx: integers.
    let mut file: libc::statx = unsafe { std::mem::zeroed() };
    file.stx_mask = libc::STATX_BASIC_STATS;
    file.stx_mode = mode as u16;
    file.stx_nlink = 1;
    file.stx_rdev_major = major;
    file.stx_rdev_minor = minor;
    // SAFETY: guaranteed by the caller.
    file.stx_ino = unsafe { inode(path) };
    file.stx_size = bytes.cast_unsigned();
    file.stx_blksize = 4096;
    // SAFETY: guaranteed by the caller.
    unsafe { to.write(file) };
    Some(0)
}

/// Returns a number that differs between files: FNV-1a of the path.
///
/// # Safety
/// The path is a C string.
unsafe fn inode(path: Path) -> u64 {
    // SAFETY: guaranteed by the caller.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns whether the access is allowed, for a file of the tree: an error number, or 0.
///
/// # Safety
/// The path is a C string.
unsafe fn allow(path: Path, mode: c_int) -> Option<c_int> {
    // SAFETY: guaranteed by the caller.
    let refused = match unsafe { node(path) }? {
        Node::Device(_) | Node::Manager => libc::X_OK,
        Node::File(_) => libc::X_OK | libc::W_OK,
        Node::Directory(_) => libc::W_OK,
    };
    Some(if mode & refused == 0 { 0 } else { libc::EACCES })
}

#[cfg(test)]
mod tests {
    use libc::AT_FDCWD;

    use super::*;

    const DEVICE: &CStr = c"/dev/infiniband/uverbs0";
    const VERSION: c_int = 1;

    /// Returns a function's result and the error number that it leaves; `MARK` is the number
    /// before.
    fn answer(ask: impl FnOnce() -> c_int) -> (c_int, c_int) {
        // SAFETY: errno's location is valid in every thread.
        unsafe { *errno() = MARK };
        let answer = ask();
        // SAFETY: as above.
        (answer, unsafe { *errno() })
    }

    const MARK: c_int = 4711;
    const DONE: (c_int, c_int) = (0, MARK);

    type Described = (c_int, c_int, libc::stat);

    /// Returns what all functions that fill a `stat` report about a path.
    fn all_stats(path: &CStr) -> Vec<Described> {
        let path = path.as_ptr();
        // SAFETY: the path is a C string, and there is space for the structure.
        let asked: [&dyn Fn(Stat) -> c_int; 12] = unsafe {
            [
                &|to| stat(path, to),
                &|to| stat64(path, to),
                &|to| lstat(path, to),
                &|to| lstat64(path, to),
                &|to| fstatat(AT_FDCWD, path, to, 0),
                &|to| fstatat64(AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW),
                &|to| __xstat(VERSION, path, to),
                &|to| __xstat64(VERSION, path, to),
                &|to| __lxstat(VERSION, path, to),
                &|to| __lxstat64(VERSION, path, to),
                &|to| __fxstatat(VERSION, AT_FDCWD, path, to, 0),
                &|to| __fxstatat64(VERSION, AT_FDCWD, path, to, 0),
            ]
        };
        let describe = |ask: &&dyn Fn(Stat) -> c_int| {
            // SAFETY: all-zero bytes are a valid stat: integers.
            let mut file: libc::stat = unsafe { std::mem::zeroed() };
            let (answer, error) = answer(|| ask(&raw mut file));
            (answer, error, file)
        };
        asked.iter().map(describe).collect()
    }

    /// Returns what all functions that check access report about a path.
    fn all_accesses(path: &CStr, mode: c_int) -> [(c_int, c_int); 4] {
        let path = path.as_ptr();
        // SAFETY: the path is a string.
        unsafe {
            [
                answer(|| access(path, mode)),
                answer(|| euidaccess(path, mode)),
                answer(|| eaccess(path, mode)),
                answer(|| faccessat(AT_FDCWD, path, mode, 0)),
            ]
        }
    }

    fn extended(path: &CStr) -> (c_int, c_int, libc::statx) {
        // SAFETY: all-zero bytes are a valid statx: integers.
        let mut file: libc::statx = unsafe { std::mem::zeroed() };
        // SAFETY: the path is a string, and there is room for the structure.
        let ask = || unsafe { statx(AT_FDCWD, path.as_ptr(), 0, libc::STATX_BASIC_STATS, &raw mut file) };
        let (answer, error) = answer(ask);
        (answer, error, file)
    }

    #[test]
    fn a_device_has_a_file_by_every_function() {
        for (answer, error, file) in all_stats(DEVICE) {
            assert_eq!((answer, error), DONE);
            assert_eq!(file.st_mode & libc::S_IFMT, libc::S_IFCHR);
            assert_eq!(file.st_rdev, libc::makedev(231, 192));
        }
        let (answer, error, file) = extended(DEVICE);
        assert_eq!((answer, error), DONE);
        assert_eq!(libc::mode_t::from(file.stx_mode) & libc::S_IFMT, libc::S_IFCHR);
        assert_eq!((file.stx_rdev_major, file.stx_rdev_minor), (231, 192));
        assert_eq!(all_accesses(DEVICE, libc::R_OK | libc::W_OK), [DONE; 4]);
        assert_eq!(all_accesses(DEVICE, libc::F_OK), [DONE; 4]);
        assert_eq!(all_accesses(DEVICE, libc::X_OK), [(-1, libc::EACCES); 4]);
        assert_eq!(all_accesses(DEVICE, 64)[0], (-1, libc::EINVAL), "no such mode");
    }

    #[test]
    fn files_and_directories_can_be_read_and_no_more() {
        const FILE: &CStr = c"/sys/class/infiniband/softdev0/node_type";
        const DIRECTORY: &CStr = c"/sys/class/infiniband/softdev0";
        for (path, kind) in [(FILE, libc::S_IFREG), (DIRECTORY, libc::S_IFDIR)] {
            for (answer, error, file) in all_stats(path) {
                assert_eq!((answer, error, file.st_mode & libc::S_IFMT), (0, MARK, kind), "{path:?}");
            }
            assert_eq!(all_accesses(path, libc::R_OK), [DONE; 4]);
            assert_eq!(all_accesses(path, libc::W_OK), [(-1, libc::EACCES); 4]);
        }
        assert_eq!(all_accesses(DIRECTORY, libc::X_OK), [DONE; 4]);
    }

    #[test]
    fn other_paths_are_what_the_system_says_of_them() {
        let missing = [
            c"/dev/infiniband/uverbs1",
            c"/dev/infiniband/uverbs",
            c"/dev/infiniband/uverbs00",
            c"/dev/infiniband/uverbs+0",
            c"/dev/infiniband/softdev0",
            c"/dev/uverbs0",
            c"uverbs0",
            c"",
        ];
        for path in missing {
            for (answer, error, file) in all_stats(path) {
                assert_eq!((answer, error, file.st_mode), (-1, ENOENT, 0), "{path:?}");
            }
            assert_eq!(all_accesses(path, libc::R_OK), [(-1, ENOENT); 4], "{path:?}");
            assert_eq!(extended(path).1, ENOENT, "{path:?}");
        }
        for (answer, error, file) in all_stats(c"/dev/null") {
            assert_eq!((answer, error, file.st_rdev), (0, MARK, libc::makedev(1, 3)));
        }
        assert_eq!(extended(c"/dev/null").2.stx_rdev_minor, 3);
        assert_eq!(all_accesses(c"/dev/null", libc::R_OK), [DONE; 4]);
        assert_eq!(all_stats(c"/dev/null/uverbs0")[0].1, libc::ENOTDIR);
        // SAFETY: the system checks the address, which is invalid.
        let (answer, error) = answer(|| unsafe { access(std::ptr::without_provenance(8), libc::F_OK) });
        assert_eq!((answer, error), (-1, libc::EFAULT));
    }
}
