//! The journal of changes. An entry is on disk before its change is made, and is removed when the
//! change is reverted. All guards of a host share the journal, under a lock.
//!
//! The journal is in a memory file system, `/run` or `$XDG_RUNTIME_DIR`, because a reboot reverts
//! all changes except the profile of tuned. After a loss of power in the middle of a point, that
//! profile stays selected.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use measure::environment::stat_field;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::pause::pause;
use crate::setting::Setting;

/// The journal of a host, by its directory.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
}

/// A setting that a guard has changed, or that had the wanted value already and must keep it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) setting: Setting,
    /// The value before the first guard, restored when the last guard releases it.
    pub(crate) before: String,
    /// The value that it was set to.
    pub(crate) set: String,
    /// The names of the guards that hold it.
    pub(crate) holders: Vec<String>,
}

impl Entry {
    /// Whether the value was right already, and only has to stay so.
    pub(crate) fn is_only_held(&self) -> bool {
        self.setting.is_same(&self.before, &self.set)
    }
}

/// The content of the journal.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Book {
    /// The changes, in the order in which they were made.
    pub(crate) entries: Vec<Entry>,
    /// Messages that a guard could not deliver, because its agent was gone.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// The journal, locked and read.
#[derive(Debug)]
pub(crate) struct Open {
    directory: PathBuf,
    pub(crate) book: Book,
    _lock: File,
}

/// The sign that a guard lives: a file that it keeps locked. The kernel unlocks the file when the
/// guard dies.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    path: PathBuf,
    _lock: File,
}

impl Journal {
    /// Returns the first journal directory of the host that this process may use.
    pub(crate) fn of(host: &Host) -> io::Result<Self> {
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "XDG_RUNTIME_DIR is not set");
        for directory in places(host) {
            match make(&directory) {
                Ok(()) => return Ok(Self { directory }),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Returns all existing journals of the host.
    pub(crate) fn all(host: &Host) -> Vec<Self> {
        let is_kept = |directory: &PathBuf| directory.join(BOOK).exists() && own(directory).is_ok();
        let kept = places(host).into_iter().filter(is_kept);
        kept.map(|directory| Self { directory }).collect()
    }

    /// Locks and reads the journal.
    pub(crate) fn open(&self) -> io::Result<Open> {
        let path = self.directory.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(path)?;
        let mut tries = LOCK_TRIES;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            tries -= 1;
            if tries == 0 {
                let what = format!("{} is locked by another process", self.directory.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            pause(LOCK_INTERVAL);
        }
        Ok(Open { book: self.read()?, directory: self.directory.clone(), _lock: lock })
    }

    /// Locks the journal, changes it and writes it to disk.
    pub(crate) fn edit<T>(&self, change: impl FnOnce(&mut Open) -> T) -> io::Result<T> {
        let mut open = self.open()?;
        let changed = change(&mut open);
        open.save().map(|()| changed)
    }

    /// Reads the journal without the lock: it is always replaced as a whole.
    pub(crate) fn read(&self) -> io::Result<Book> {
        let path = self.directory.join(BOOK);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::default()),
            other => other?,
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("{} is not a journal of this version of rdmascope: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// Registers this guard as a holder.
    pub(crate) fn hold(&self) -> io::Result<Holder> {
        // Another guard may be removing unlocked signs, and this one is unlocked for a moment.
        let _open = self.open()?;
        let stat = fs::read_to_string("/proc/self/stat")?;
        // The start time. A process ID may be reused, and may mean another process in another
        // namespace.
        let started = stat_field(&stat, 22).unwrap_or("0");
        let number = HOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{started}-{number}", std::process::id());
        let path = self.directory.join(format!("{HOLDER}{name}"));
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Holder { name, path, _lock: lock })
    }

    /// Whether a guard lives.
    pub(crate) fn is_alive(&self, holder: &str) -> bool {
        is_alive(&self.directory, holder)
    }
}

impl Open {
    /// Writes the journal to disk, or removes it if it is empty.
    pub(crate) fn save(&self) -> io::Result<()> {
        let path = self.directory.join(BOOK);
        if self.book == Book::default() {
            self.tidy();
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(()),
            }
        }
        let new = self.directory.join(NEW);
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(PRIVATE).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(&self.book)?)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&self.directory)?.sync_all()
    }

    pub(crate) fn is_alive(&self, holder: &str) -> bool {
        is_alive(&self.directory, holder)
    }

    /// Removes the signs of dead guards.
    fn tidy(&self) {
        for file in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name.strip_prefix(HOLDER).is_some_and(|holder| !self.is_alive(holder)) {
                // A sign that stays does no harm.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A sign that stays means nothing, because it is not locked.
        let _ = fs::remove_file(&self.path);
    }
}

/// The process ID in a guard's name.
pub(crate) fn process(holder: &str) -> &str {
    holder.split('-').next().unwrap_or(holder)
}

fn is_alive(directory: &Path, holder: &str) -> bool {
    if !holder.chars().all(|c| c.is_ascii_digit() || c == '-') {
        return false;
    }
    match File::open(directory.join(format!("{HOLDER}{holder}"))) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        // If the sign cannot be opened, the guard may live: too many open files, for example.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn places(host: &Host) -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| host.is_here()).map(PathBuf::from);
    // Under sudo the variable may name another user's directory, whose journal must not be used.
    let is_own = |place: &PathBuf| {
        fs::metadata(place).is_ok_and(|place| place.uid() == rustix::process::geteuid().as_raw())
    };
    let places = [Some(host.at("run")), own.filter(is_own)].into_iter().flatten();
    places.map(|place| place.join("rdmascope")).collect()
}

/// Makes the directory, and checks whether files can be made in it.
fn make(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(PRIVATE_DIRECTORY).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    own(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(PRIVATE_DIRECTORY))?;
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).map_err(Into::into)
}

/// Refuses a directory in which another user may have written a journal.
fn own(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let wrong = if !found.is_dir() {
        "is not a directory"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & WRITTEN_BY_OTHERS != 0 {
        "can be written by other users"
    } else {
        return Ok(());
    };
    let what = format!("{} {wrong}, so rdmascope uses no journal there: remove it", directory.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// The number of holders that this process has made.
static HOLDERS: AtomicU32 = AtomicU32::new(0);
const BOOK: &str = "journal.json";
/// No access for other users: a user who can read a file can lock it, and so could block guards or
/// make dead guards look alive.
const PRIVATE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;
/// Permission of group and others to write (inode(7)).
const WRITTEN_BY_OTHERS: u32 = 0o022;
const NEW: &str = "journal.new";
const LOCK: &str = "lock";
const HOLDER: &str = "holder-";
/// 30 s: the process with the lock may be waiting for tuned.
const LOCK_TRIES: u32 = 600;
const LOCK_INTERVAL: Duration = Duration::from_millis(50);
