//! The file in which a user's runs keep the best core-to-core latencies:
//! `rdmascope/core-to-core.json` in the user's cache directory (XDG Base Directory Specification).
//!
//! The file can only mark points as unstable, so nothing depends on it: if it cannot be kept, runs
//! do without it. A path that is not a regular file of this user, such as a link, is neither read
//! nor replaced; nor is a file of another version. A damaged file is replaced. Readers always see a
//! complete file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::known::Best;

/// The path of the file, which may not exist yet.
#[derive(Debug)]
pub(super) struct Cache {
    base: PathBuf,
    path: PathBuf,
}

/// The content of the file.
#[derive(Deserialize, Serialize)]
struct Kept<T> {
    version: u32,
    best: Vec<T>,
}

impl Cache {
    /// Returns the cache of the user that runs this program, if there is one.
    pub(super) fn of_user() -> Option<Self> {
        Self::of(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    /// Returns the cache of a user with these variables. The specification ignores paths that are
    /// not absolute.
    fn of(cache_home: Option<OsString>, home: Option<OsString>) -> Option<Self> {
        let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let own = cache_home.and_then(absolute);
        let base = own.or_else(|| Some(home.and_then(absolute)?.join(".cache")))?;
        let path = base.join(DIRECTORY).join(FILE);
        Some(Self { base, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the entries of the file: none if it is missing or damaged; `None` if it is not a
    /// file of this user and version.
    pub(super) fn read(&self) -> Option<Vec<Best>> {
        let Ok(directory) = self.directory() else { return Some(Vec::new()) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&directory, FILE, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Some(Vec::new()),
            Err(_) => return None,
        };
        let is_file = |found: FileType| found == FileType::RegularFile;
        check(&file, is_file).ok()?;
        let mut text = Vec::new();
        let whole = File::from(file).take(BYTES_MAX + 1).read_to_end(&mut text);
        if whole.is_err() || text.len() as u64 > BYTES_MAX {
            return Some(Vec::new());
        }
        parse(&text)
    }

    /// Replaces the entries of the file.
    pub(super) fn write(&self, best: &[Best]) -> io::Result<()> {
        let text = serde_json::to_vec(&Kept { version: VERSION, best: best.to_vec() })?;
        let directory = self.directory_or_new()?;
        let part = format!(".{FILE}.{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &part, flags, Mode::RUSR | Mode::WUSR)?;
        let written = File::from(file).write_all(&text);
        let replaced = written.and_then(|()| Ok(rustix::fs::renameat(&directory, &part, &directory, FILE)?));
        replaced.inspect_err(|_| _ = rustix::fs::unlinkat(&directory, &part, AtFlags::empty()))
    }

    fn directory(&self) -> io::Result<OwnedFd> {
        open_directory(open_directory(CWD, &self.base, OFlags::empty())?, DIRECTORY, OFlags::NOFOLLOW)
    }

    /// Returns the directory, and makes it if it is missing. A cache directory is made only below a
    /// directory of this user: with `sudo`, `HOME` may still belong to another user.
    fn directory_or_new(&self) -> io::Result<OwnedFd> {
        let base = open_directory(CWD, &self.base, OFlags::empty()).or_else(|error| {
            let (Some(above), Some(name)) = (self.base.parent(), self.base.file_name()) else {
                return Err(error);
            };
            let above = open_directory(CWD, above, OFlags::empty())?;
            rustix::fs::mkdirat(&above, name, Mode::RWXU)?;
            open_directory(above, name, OFlags::NOFOLLOW)
        })?;
        match rustix::fs::mkdirat(&base, DIRECTORY, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => open_directory(base, DIRECTORY, OFlags::NOFOLLOW),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Opens a directory of this user.
fn open_directory(at: impl AsFd, path: impl rustix::path::Arg, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(at, path, flags, Mode::empty())?;
    check(&directory, |found| found == FileType::Directory)?;
    Ok(directory)
}

/// Fails unless a file is of a kind, and belongs to this user.
fn check(found: &OwnedFd, is_kind: impl Fn(FileType) -> bool) -> io::Result<()> {
    let stat = rustix::fs::fstat(found)?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    if is_ours && is_kind(FileType::from_raw_mode(stat.st_mode)) {
        return Ok(());
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Returns the entries that can be parsed; `None` if another version wrote them.
fn parse(text: &[u8]) -> Option<Vec<Best>> {
    let Ok(Kept { version, best }) = serde_json::from_slice::<Kept<Value>>(text) else {
        return Some(Vec::new());
    };
    let read = || best.into_iter().filter_map(|best| serde_json::from_value(best).ok()).collect();
    (version == VERSION).then(read)
}

const DIRECTORY: &str = "rdmascope";
const FILE: &str = "core-to-core.json";
const VERSION: u32 = 1;
/// Most bytes that are read: far more than all entries take.
const BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
