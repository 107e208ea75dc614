//! Files in directories that others may have laid out: a record, the logs of another program.
//!
//! Only regular files are read, because a pipe or a device never ends. A file is written as a new
//! one next to the old and renamed over it, so that no link is followed and no reader sees half a
//! file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, IntoInnerError, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::sysinfo;

/// Reads a regular file.
///
/// # Errors
/// Those of the system; `InvalidInput` for another kind of file, and `OutOfMemory` for a file that
/// is larger than half of this machine's memory, as a sparse file can be.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Without O_NONBLOCK, opening a pipe waits for its writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let most = memory_bytes() / 2;
    if found.len() > most {
        let what = format!("its {} bytes do not fit into this machine's memory", found.len());
        return Err(io::Error::new(ErrorKind::OutOfMemory, what));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(found.len() as usize)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file of text, as [`read`] does.
///
/// # Errors
/// Those of [`read`], and `InvalidData` where it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Locks a file for as long as it is open; false if another process has the lock. NFS locks only
/// files that are open for writing. A file system without locks, as some network file systems are,
/// protects nothing.
pub fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Writes a file such that at any moment either the old or the new one is there as a whole. A link
/// of that name is replaced and not followed.
///
/// # Errors
/// The errors of `write` and of the system, and `InvalidInput` for a device, a pipe or a socket: a
/// file in the place of `/dev/null` breaks the machine. After an error the old file is still there,
/// and nothing of the new one is.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    // Directories get the system's own error.
    let is_replaced = |found: fs::Metadata| found.is_file() || found.is_dir() || found.is_symlink();
    if !path.symlink_metadata().map_or(true, is_replaced) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file").into());
    }
    let (new, file) = create_beside(path)?;
    let written = fill(file, write).and_then(|()| Ok(fs::rename(&new, path)?));
    // The error of the write is the one to report.
    written.inspect_err(|_| _ = fs::remove_file(&new))
}

fn fill<E: From<io::Error>>(
    file: File,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    Ok(writer.into_inner().map_err(IntoInnerError::into_error)?.sync_all()?)
}

/// Creates a file with an unpredictable name in the directory of another one.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    // O_CREAT with O_EXCL follows no link either (open(2)); O_NOFOLLOW says so.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    for _ in 0..TRIES {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        // Short, so that it is valid wherever the name of the file is.
        let name = format!(".rdmascope-{:016x}.part", u64::from_ne_bytes(random));
        let new = path.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(&new) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((new, made?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn memory_bytes() -> u64 {
    let system = sysinfo();
    (system.totalram as u64).saturating_mul(system.mem_unit.into())
}

/// Two names of 64 random bits are not equal by chance.
const TRIES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [file, victim] = ["file", "victim"].map(|name| dir.path().join(name));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &file).unwrap();
        replace(&file, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(file.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "old").unwrap();
        let fails = |out: &mut dyn Write| out.write_all(b"new").and(Err(ErrorKind::StorageFull.into()));
        assert_eq!(replace(&file, fails).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        let error = replace(dir.path(), |out| out.write_all(b"new")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_pipe_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        let error = replace(&pipe, |out| out.write_all(b"new")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!pipe.is_file());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_that_fit_into_memory_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "text");
        let sparse = File::create(&path).unwrap();
        sparse.set_len(1 << 43).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(read(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::InvalidInput);
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(read(&socket).is_err());
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert_eq!(read(&pipe).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
