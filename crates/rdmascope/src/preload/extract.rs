//! Puts the preload library, which is inside this program, where the dynamic linker can read it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::name::{LIBRARY, can_be_preloaded};

/// Extracts the library and returns its path: in the user's cache, else in a directory for this
/// user among the temporary files, else in memory. What is there already is used again if it is
/// the same library.
///
/// # Errors
/// If none of these can be had.
pub(super) fn extracted(library: &[u8]) -> anyhow::Result<PathBuf> {
    let mut refused = Vec::new();
    for place in places() {
        match in_directory(&place, library) {
            Ok(path) => return Ok(path),
            Err(error) => refused.push(format!("{}: {error}", place.display())),
        }
    }
    let path = in_memory(library)?;
    eprintln!(
        "rdmascope: warning: no directory can hold {LIBRARY} ({}), so it is in memory: a program that closes its open \
         files before it starts another one hides the device from that one. To avoid this, set XDG_CACHE_HOME to a \
         directory that you own, on a file system that is not mounted with noexec",
        refused.join("; ")
    );
    Ok(path)
}

/// Directories for the library, the best first.
fn places() -> Vec<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let user = rustix::process::geteuid().as_raw();
    let mut places: Vec<_> = cache.map(|cache| cache.join("rdmascope")).into_iter().collect();
    places.push(env::temp_dir().join(format!("rdmascope-{user}")));
    places
}

/// The library in a directory of a place, whose name tells the program's version and the content.
fn in_directory(place: &Path, library: &[u8]) -> io::Result<PathBuf> {
    if !can_be_preloaded(place) {
        return Err(io::Error::other("a path with a space or a colon cannot be preloaded"));
    }
    let version = env!("CARGO_PKG_VERSION");
    let directory = place.join(format!("{version}-{:016x}", digest(library)));
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    for own in [place, &directory] {
        let found = fs::symlink_metadata(own)?;
        if !found.is_dir() || !is_ours_alone(&found) {
            return Err(io::Error::other("another user could write to it"));
        }
    }
    let path = directory.join(LIBRARY);
    if !is_there(&path, library) {
        write(&directory, &path, library)?;
    }
    check_executable(&path)?;
    Ok(path)
}

/// Tells contents apart. An intact file is told by its bytes, so this needs no strength.
fn digest(bytes: &[u8]) -> u64 {
    // FNV-1a (Fowler, Noll and Vo), 64 bits.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether this user alone owns it and may write to it.
fn is_ours_alone(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// Whether a file is the library, whole, and nobody else can change it.
fn is_there(path: &Path, library: &[u8]) -> bool {
    let is_file = |found: Metadata| found.is_file() && is_ours_alone(&found);
    fs::symlink_metadata(path).is_ok_and(is_file) && fs::read(path).is_ok_and(|found| found == library)
}

/// Writes the library under another name first, so that no process reads a part of it.
fn write(directory: &Path, path: &Path, library: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{LIBRARY}.{}.{number}", process::id()));
    // From a process that had the same number and was killed.
    let _ = fs::remove_file(&temporary);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(library)?;
        file.set_permissions(Permissions::from_mode(0o500))?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Fails where the dynamic linker could not map the file: on a file system that is mounted with
/// `noexec`.
fn check_executable(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let flags = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: the kernel chooses the address, and nothing reads or runs what is mapped there.
    let page = unsafe { mmap(ptr::null_mut(), 4096, flags, MapFlags::PRIVATE, &file, 0) }?;
    // SAFETY: it is the mapping made above, which nothing refers to.
    unsafe { munmap(page, 4096) }?;
    Ok(())
}

/// The library in memory, under a path that holds in this process and what it becomes.
fn in_memory(library: &[u8]) -> io::Result<PathBuf> {
    // Without `CLOEXEC`: the program that this process becomes has it, too.
    let mut file = File::from(memfd_create(LIBRARY, MemfdFlags::ALLOW_SEALING)?);
    file.write_all(library)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let mut path = OsString::from("/proc/self/fd/");
    path.push(file.into_raw_fd().to_string());
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_library_is_written_once_and_replaced_where_it_is_damaged() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("cache/rdmascope");
        let path = in_directory(&place, b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&place)), (0o500, 0o700, 0o700));
        let first = fs::metadata(&path).unwrap().ino();
        assert_eq!(in_directory(&place, b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), first);
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"librarx").unwrap();
        assert_eq!(in_directory(&place, b"library").unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        // A file of the right content that others may write is replaced, too.
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        in_directory(&place, b"library").unwrap();
        assert_eq!(mode(&path), 0o500);
        // Another build has another directory.
        assert_ne!(in_directory(&place, b"another").unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "no temporary file stays");
    }

    #[test]
    fn a_place_that_another_user_could_change_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("shared");
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        let error = in_directory(&place, b"library").unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
        let link = scratch.path().join("link");
        symlink(scratch.path(), &link).unwrap();
        assert!(in_directory(&link, b"library").is_err());
        let spaced = scratch.path().join("a place");
        assert!(in_directory(&spaced, b"library").unwrap_err().to_string().contains("a space"));
        let file = scratch.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(in_directory(&file, b"library").is_err());
    }

    #[test]
    fn many_at_once_have_one_whole_file() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("rdmascope");
        let library = vec![7; 1 << 20];
        let ask = || in_directory(&place, &library).map(|path| fs::read(path).unwrap() == library);
        thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            for asked in asking {
                assert!(asked.join().unwrap().unwrap());
            }
        });
    }

    #[test]
    fn memory_holds_the_library_and_nobody_changes_it() {
        let path = in_memory(b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(file.write_all(b"x").is_err());
    }
}
