//! The directory that files arrive in.
//!
//! # Invariants
//!
//! * All operations use descriptors of directories in the tree and single components ([`Tree`]), or
//!   the descriptor of a file: nothing outside of the target is opened, made, changed or removed.
//! * A file with a name from the source is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, renameat, statat, symlinkat,
    syncfs, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::unfinished::{Unfinished, dress, times};
use crate::transfer::digest::{CHUNK_BYTES, DIGEST_BYTES, chunk_digest, contents_digest};
use crate::transfer::name::{Name, is_unfinished};
use crate::transfer::record::{Answer, Attributes, MODE_MASK, PART_DIGESTS_MAX};
use crate::transfer::told::Counts;
use crate::transfer::tree::{ROOT, Tree, open_directory};

/// The directory that files arrive in.
pub(crate) struct Target {
    tree: Tree,
    /// The number in the name of the last unfinished file. Each gets the next number.
    session: u64,
    /// The attributes that directories get at the end.
    attributes: Vec<(u32, Attributes)>,
    /// The unfinished files of earlier transfers, by directory. No process works on them.
    found: BTreeMap<u32, BTreeSet<OsString>>,
    /// The directories that this transfer has made.
    made: BTreeSet<u32>,
    /// The files that get their names when they are on the disk.
    waiting: Vec<Waiting>,
    /// The most waiting files: each is open and locked, and needs a descriptor.
    waiting_max: usize,
}

/// A complete file that does not have its name yet.
struct Waiting {
    parent: u32,
    unfinished: Unfinished,
    name: Name,
}

/// The smallest limit of waiting files.
const WAITING_MIN: usize = 8;
/// The largest limit of waiting files.
const WAITING_MAX: usize = 1024;

/// Why a directory cannot be made.
pub(super) enum Refusal {
    /// The source breaks the protocol.
    Broken(&'static str),
    /// The system refuses this path.
    Failed(String, io::Error),
}

impl Target {
    /// Opens the directory at a path of the user, and makes it if it is missing.
    ///
    /// # Errors
    /// If the directory cannot be made or opened.
    pub(crate) fn open(path: &Path, session: u64) -> io::Result<Self> {
        let is_made = match std::fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            // A read-only file system reports that error even for an existing directory.
            Err(_) if path.is_dir() => false,
            Err(error) => return Err(error),
        };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = openat(rustix::fs::CWD, path, flags, Mode::empty())?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let descriptors = usize::try_from(limit / 4).unwrap_or(usize::MAX);
        Ok(Self {
            tree: Tree::new(root),
            session,
            attributes: Vec::new(),
            found: BTreeMap::new(),
            made: if is_made { BTreeSet::from([ROOT]) } else { BTreeSet::new() },
            waiting: Vec::new(),
            waiting_max: descriptors.clamp(WAITING_MIN, WAITING_MAX),
        })
    }

    pub(super) fn has(&self, directory: u32) -> bool {
        self.tree.has(directory)
    }

    /// Returns the path of a name in a directory, for messages.
    pub(super) fn path(&self, directory: u32, name: &Name) -> String {
        self.tree.path(directory, name)
    }

    /// Makes a directory, unless it exists. Until the end, only its owner may use it.
    pub(super) fn make(&mut self, parent: u32, name: Name, attributes: Attributes) -> Result<(), Refusal> {
        let number = self.tree.add(parent, name.clone()).map_err(Refusal::Broken)?;
        match self.tree.open(parent).and_then(|directory| make_in(directory, &name)) {
            Ok(true) => _ = self.made.insert(number),
            Ok(false) => {}
            Err(error) => return Err(Refusal::Failed(self.tree.path(parent, &name), error)),
        }
        self.attributes.push((number, attributes));
        Ok(())
    }

    /// Makes an unfinished file, or continues one that has at least `from` bytes.
    ///
    /// # Errors
    /// If the file cannot be made or continued.
    pub(super) fn create(
        &mut self,
        parent: u32,
        name: &Name,
        size: u64,
        from: u64,
    ) -> io::Result<Unfinished> {
        self.look_for_unfinished(parent);
        let unfinished = self.unfinished(name);
        if from > 0 {
            let part = self.part_of(parent, name).filter(|_| from <= size);
            let part = part.ok_or_else(|| io::Error::other("the part that was received has disappeared"))?;
            let directory = self.tree.open(parent)?;
            let file = open_own(directory, &part)?;
            if fstat(&file)?.st_size.cast_unsigned() < from {
                return Err(io::Error::other("the part that was received has become shorter"));
            }
            let file = Unfinished::new(unfinished.clone(), file)?;
            file.cut(from)?;
            renameat(directory, &part, directory, &*unfinished)?;
            self.found.entry(parent).or_default().remove(&part);
            return Ok(file);
        }
        let directory = self.tree.open(parent)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(directory, &*unfinished, flags, mode)?;
        Unfinished::new(unfinished.clone(), file).inspect_err(|_| {
            let _ = unlinkat(directory, &*unfinished, AtFlags::empty());
        })
    }

    /// Returns a unique name for an unfinished file.
    fn unfinished(&mut self, name: &Name) -> Box<OsStr> {
        self.session = self.session.wrapping_add(1);
        name.unfinished(self.session)
    }

    /// Searches a directory for unfinished files of earlier transfers, once.
    fn look_for_unfinished(&mut self, parent: u32) {
        if self.made.contains(&parent) || self.found.contains_key(&parent) {
            return;
        }
        let found = self.tree.open(parent).and_then(unfinished_in).unwrap_or_default();
        self.found.insert(parent, found);
    }

    /// Returns the longest unfinished file for this name that no process works on.
    fn part_of(&mut self, parent: u32, name: &Name) -> Option<OsString> {
        let found = self.found.get(&parent)?;
        let parts = found.iter().filter(|part| name.is_unfinished_as(part.as_bytes()));
        let directory = self.tree.open(parent).ok()?;
        let bytes = |part: &&OsString| {
            statat(directory, part.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).map_or(0, |found| found.st_size)
        };
        parts.max_by_key(bytes).cloned()
    }

    /// Gives a complete file its name: at once, or with `syncs` when it is on the disk.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub(super) fn name(
        &mut self,
        parent: u32,
        unfinished: Unfinished,
        name: &Name,
        syncs: bool,
    ) -> io::Result<()> {
        if syncs {
            self.waiting.push(Waiting { parent, unfinished, name: name.clone() });
            return Ok(());
        }
        let directory = self.tree.open(parent)?;
        let named = renameat(directory, &*unfinished.name, directory, name.os());
        if named.is_err() {
            self.discard(parent, &unfinished);
        }
        Ok(named?)
    }

    /// Writes the waiting files to the disk and gives them their names, if there are many or it is
    /// the end.
    pub(super) fn settle(&mut self, counts: &mut Counts, is_end: bool) {
        if self.waiting.is_empty() || (!is_end && self.waiting.len() < self.waiting_max) {
            return;
        }
        let synced = self.tree.open(ROOT).and_then(|root| Ok(syncfs(root)?));
        for Waiting { parent, unfinished, name } in std::mem::take(&mut self.waiting) {
            let directory = self.tree.open(parent);
            let named = match &synced {
                Ok(()) => directory
                    .and_then(|directory| Ok(renameat(directory, &*unfinished.name, directory, name.os())?)),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            if let Err(error) = named {
                counts.files = counts.files.saturating_sub(1);
                counts.fail(&format!("{}: not written: {error}", self.tree.path(parent, &name)));
                self.discard(parent, &unfinished);
            }
        }
    }

    /// Removes an unfinished file. If that fails, the next transfer removes it.
    pub(super) fn discard(&mut self, parent: u32, unfinished: &Unfinished) {
        if let Ok(directory) = self.tree.open(parent) {
            let _ = unlinkat(directory, &*unfinished.name, AtFlags::empty());
        }
    }

    /// Returns the answer to an offer.
    pub(super) fn answer(
        &mut self,
        parent: u32,
        name: &Name,
        (attributes, size): (Attributes, u64),
        compares: bool,
    ) -> Answer {
        let Ok(directory) = self.tree.open(parent) else { return Answer::Wants };
        if compares {
            if let Ok(digest) = contents_of(directory, name, size) {
                return Answer::Holds { digest };
            }
        } else if is_same(directory, name, &attributes, size).unwrap_or(false) {
            return Answer::Has;
        }
        if size <= CHUNK_BYTES {
            return Answer::Wants;
        }
        self.look_for_unfinished(parent);
        let Some(part) = self.part_of(parent, name) else { return Answer::Wants };
        let digests = self.tree.open(parent).and_then(|directory| digests(directory, &part, size));
        match digests {
            Ok(digests) if !digests.is_empty() => Answer::Part { digests },
            _ => Answer::Wants,
        }
    }

    /// Sets the permissions and the time of an existing file.
    ///
    /// # Errors
    /// If the file cannot be opened or changed.
    pub(super) fn dress(&mut self, parent: u32, name: &Name, attributes: &Attributes) -> io::Result<()> {
        let (file, _) = open_there(self.tree.open(parent)?, name)?;
        dress(file, attributes)
    }

    /// Makes a symbolic link. Its text comes from the source, and the sink never follows it.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub(super) fn link(
        &mut self,
        parent: u32,
        name: &Name,
        attributes: Attributes,
        text: &[u8],
    ) -> io::Result<()> {
        let unfinished = self.unfinished(name);
        let directory = self.tree.open(parent)?;
        symlinkat(OsStr::from_bytes(text), directory, &*unfinished)?;
        // A file system may not keep times of links.
        let _ = utimensat(directory, &*unfinished, &times(&attributes), AtFlags::SYMLINK_NOFOLLOW);
        let named = renameat(directory, &*unfinished, directory, name.os());
        if named.is_err() {
            let _ = unlinkat(directory, &*unfinished, AtFlags::empty());
        }
        Ok(named?)
    }

    /// Ends the transfer: gives waiting files their names, removes unfinished files that no process
    /// works on, and sets the permissions and times of directories, the deepest first.
    pub(super) fn finish(&mut self, counts: &mut Counts, syncs: bool) {
        self.settle(counts, true);
        for (parent, parts) in std::mem::take(&mut self.found) {
            let Ok(directory) = self.tree.open(parent) else { continue };
            for part in parts {
                if open_own(directory, &part)
                    .is_ok_and(|file| Unfinished::new(part.as_os_str().into(), file).is_ok())
                {
                    let _ = unlinkat(directory, &*part, AtFlags::empty());
                }
            }
        }
        for (number, attributes) in std::mem::take(&mut self.attributes).into_iter().rev() {
            let dressed = self.tree.open(number).and_then(|directory| dress(directory, &attributes));
            if let Err(error) = dressed
                && let Some((parent, name)) = self.tree.place(number)
            {
                let path = self.tree.path(parent, name);
                counts.fail(&format!("{path}: its permissions and time are not set: {error}"));
            }
        }
        if syncs && let Err(error) = self.tree.open(ROOT).and_then(|root| Ok(syncfs(root)?)) {
            counts.fail(&format!("received files may not be on the disk: {error}"));
        }
    }
}

/// Makes a directory in another one. Returns false if it already exists.
fn make_in(directory: BorrowedFd<'_>, name: &Name) -> io::Result<bool> {
    match mkdirat(directory, name.os(), Mode::RWXU) {
        Ok(()) => return Ok(true),
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let found = open_directory(directory, name).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTDIR | libc::ELOOP) => io::Error::other("its name is that of a file or link"),
        _ => error,
    })?;
    // The owner may write to the directory until the end. If it belongs to another user, this
    // fails, and errors of files in it are reported.
    if fstat(&found).is_ok_and(|found| found.st_mode & 0o700 != 0o700) {
        let _ = fchmod(&found, Mode::RWXU);
    }
    Ok(false)
}

/// Whether a file with this size and time exists. If so, sets its permissions.
fn is_same(directory: BorrowedFd<'_>, name: &Name, attributes: &Attributes, size: u64) -> io::Result<bool> {
    let found = statat(directory, name.os(), AtFlags::SYMLINK_NOFOLLOW)?;
    let is_same = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_size.cast_unsigned() == size
        && found.st_mtime == attributes.seconds
        && u32::try_from(found.st_mtime_nsec) == Ok(attributes.nanoseconds);
    if is_same && found.st_mode as u16 & MODE_MASK != attributes.mode {
        let (file, _) = open_there(directory, name)?;
        fchmod(&file, Mode::from_raw_mode(attributes.mode.into()))?;
    }
    Ok(is_same)
}

/// Returns the checksum of the contents of an existing file of this size.
fn contents_of(directory: BorrowedFd<'_>, name: &Name, size: u64) -> io::Result<[u8; DIGEST_BYTES]> {
    let (file, has) = open_there(directory, name)?;
    if has == size { contents_digest(file.as_fd(), size) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Opens an existing file, and returns its size, too. Refuses symbolic links, and files with more
/// than one hard link, because another name may be outside of the target. A new file replaces
/// those.
fn open_there(directory: BorrowedFd<'_>, name: &Name) -> io::Result<(OwnedFd, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name.os(), flags, Mode::empty())?;
    let found = fstat(&file)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if found.st_nlink == 1 => Ok((file, found.st_size.cast_unsigned())),
        _ => Err(io::Error::other("it is not a regular file with a single name")),
    }
}

/// Returns the checksums of the whole chunks of an unfinished file. `size` is the size of the
/// finished file.
fn digests(directory: BorrowedFd<'_>, part: &OsStr, size: u64) -> io::Result<Vec<[u8; DIGEST_BYTES]>> {
    let file = open_own(directory, part)?;
    let has = fstat(&file)?.st_size.cast_unsigned().min(size) / CHUNK_BYTES;
    let mut digests = Vec::new();
    for chunk in 0..has.min(PART_DIGESTS_MAX as u64) {
        match chunk_digest(file.as_fd(), chunk * CHUNK_BYTES)? {
            Some(digest) => digests.push(digest),
            None => break,
        }
    }
    Ok(digests)
}

/// Returns the names of the unfinished files in a directory that no process works on.
fn unfinished_in(directory: BorrowedFd<'_>) -> io::Result<BTreeSet<OsString>> {
    let mut found = BTreeSet::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_unfinished(name.as_bytes())
            && open_own(directory, name).is_ok_and(|file| Unfinished::new(name.into(), file).is_ok())
        {
            found.insert(name.to_owned());
        }
    }
    Ok(found)
}

/// Opens an unfinished file to continue it. Only a file of this user without another name is
/// accepted: another user may have put a hard link to a file outside of the target there.
fn open_own(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    let found = fstat(&file)?;
    let is_own = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_nlink == 1
        && found.st_uid == rustix::process::geteuid().as_raw();
    if is_own { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
