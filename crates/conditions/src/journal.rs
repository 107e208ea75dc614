//! The journal of what was changed: on disk before the change is made, gone when it is taken back.
//! All that change one host share it, under a lock.
//!
//! It lies in a file system of memory, `/run` or `$XDG_RUNTIME_DIR`, because a reboot takes back
//! all that it speaks of but the profile of tuned, which outlives it: who loses power in the middle
//! of a point finds that profile still chosen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::pause::pause;
use crate::setting::Setting;

/// Where a journal is.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
}

/// A value that was changed, or was right already and must not be changed by another of us.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) setting: Setting,
    /// What it was before the first of us came, and will be when the last has gone.
    pub(crate) before: String,
    /// What it was set to.
    pub(crate) set: String,
    /// Names of the guardians that hold it.
    pub(crate) holders: Vec<String>,
}

impl Entry {
    /// Whether the value was right already, and is only to stay so.
    pub(crate) fn is_only_held(&self) -> bool {
        self.setting.is_same(&self.before, &self.set)
    }
}

/// What the journal says.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Book {
    /// Changes in the order in which they were made.
    pub(crate) entries: Vec<Entry>,
    /// What a guardian had to say when nobody was there to hear it.
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

/// The sign that a guardian lives: a file that it keeps locked, which the kernel unlocks when it
/// dies.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    path: PathBuf,
    _lock: File,
}

impl Journal {
    /// The journal of a host, where this process may keep one.
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

    /// The journals that are there, whoever keeps them.
    pub(crate) fn all(host: &Host) -> Vec<Self> {
        let is_kept = |directory: &PathBuf| directory.join(BOOK).exists() && own(directory).is_ok();
        let kept = places(host).into_iter().filter(is_kept);
        kept.map(|directory| Self { directory }).collect()
    }

    /// Locks and reads it.
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

    /// Opens it, changes it and puts it on disk again.
    pub(crate) fn edit<T>(&self, change: impl FnOnce(&mut Open) -> T) -> io::Result<T> {
        let mut open = self.open()?;
        let changed = change(&mut open);
        open.save().map(|()| changed)
    }

    /// Reads it as it is, without waiting for whoever changes it: it is replaced as a whole.
    pub(crate) fn read(&self) -> io::Result<Book> {
        let path = self.directory.join(BOOK);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::default()),
            other => other?,
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("{} is no journal of this version of rdmascope: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// Signs in.
    pub(crate) fn hold(&self) -> io::Result<Holder> {
        // Whoever has the lock may be removing signs of nobody, as this one is until it is locked.
        let _open = self.open()?;
        let stat = fs::read_to_string("/proc/self/stat")?;
        // proc_pid_stat(5): the start is field 22; the second, in parentheses, may have spaces.
        // Numbers of processes come again, and may mean another one in another namespace.
        let started = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or("0");
        let number = HOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{started}-{number}", std::process::id());
        let path = self.directory.join(format!("{HOLDER}{name}"));
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Holder { name, path, _lock: lock })
    }

    /// Whether a guardian lives.
    pub(crate) fn is_alive(&self, holder: &str) -> bool {
        is_alive(&self.directory, holder)
    }
}

impl Open {
    /// Puts the book on disk, or takes it away where it says nothing.
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

    /// Removes the signs of guardians that have died.
    fn tidy(&self) {
        for file in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name.strip_prefix(HOLDER).is_some_and(|holder| !self.is_alive(holder)) {
                // One that stays is in nobody's way.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // One that stays is a sign of nothing: nobody locks it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The number in a guardian's name.
pub(crate) fn process(holder: &str) -> &str {
    holder.split('-').next().unwrap_or(holder)
}

fn is_alive(directory: &Path, holder: &str) -> bool {
    if !holder.chars().all(|c| c.is_ascii_digit() || c == '-') {
        return false;
    }
    match File::open(directory.join(format!("{HOLDER}{holder}"))) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        // What cannot be seen may live: too many open files are no death.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn places(host: &Host) -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| host.is_here()).map(PathBuf::from);
    // Under sudo the variable may be another user's, whose journal is not to be believed.
    let is_own = |place: &PathBuf| {
        fs::metadata(place).is_ok_and(|place| place.uid() == rustix::process::geteuid().as_raw())
    };
    let places = [Some(host.at("run")), own.filter(is_own)].into_iter().flatten();
    places.map(|place| place.join("rdmascope")).collect()
}

/// Makes the directory, and sees whether files can be made in it.
fn make(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(PRIVATE_DIRECTORY).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    own(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(PRIVATE_DIRECTORY))?;
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).map_err(Into::into)
}

/// Refuses a directory in which somebody else may have written what looks like a journal.
fn own(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let wrong = if !found.is_dir() {
        "is no directory"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & WRITTEN_BY_OTHERS != 0 {
        "can be written by other users"
    } else {
        return Ok(());
    };
    let what =
        format!("{} {wrong}, so that no journal there can be believed: remove it", directory.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Holders of this process so far.
static HOLDERS: AtomicU32 = AtomicU32::new(0);
const BOOK: &str = "journal.json";
/// Reading is enough to lock: whoever may read the files could block guards, or make dead ones look
/// alive.
const PRIVATE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;
/// Permission of group and others to write (inode(7)).
const WRITTEN_BY_OTHERS: u32 = 0o022;
const NEW: &str = "journal.new";
const LOCK: &str = "lock";
const HOLDER: &str = "holder-";
/// Half a minute: whoever has the lock may be waiting for tuned.
const LOCK_TRIES: u32 = 600;
const LOCK_INTERVAL: Duration = Duration::from_millis(50);
