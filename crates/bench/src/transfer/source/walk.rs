//! A walk through the trees to send. It follows no link.
//!
//! The files of a directory come before its subdirectories. Symbolic links come last: when the sink
//! makes them, it opens nothing below them any more.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};

use super::file::attributes;
use crate::transfer::name::{Name, is_unfinished};
use crate::transfer::record::Attributes;
use crate::transfer::told::Counts;
use crate::transfer::tree::{ROOT, Tree};

/// An entry to send. Its directory numbers are those of the walk.
pub(super) enum Found {
    Directory {
        parent: u32,
        name: Name,
        attributes: Attributes,
    },
    File {
        directory: u32,
        name: Name,
    },
    /// A link. Its parent has the number at the sink.
    Link {
        parent: u32,
        name: Name,
        attributes: Attributes,
        target: Box<[u8]>,
    },
    /// The walk leaves the base. Earlier files can be opened until the next call.
    Elsewhere,
}

/// A walk.
pub(super) struct Walker {
    /// The remaining source paths, the next one last.
    sources: Vec<PathBuf>,
    base: Option<Base>,
    /// The directories to list, the next one last.
    waiting: Vec<u32>,
    /// The entries of the last listed directory.
    found: VecDeque<Found>,
    links: VecDeque<Found>,
    /// The number of directories of earlier bases.
    before: u32,
    /// Whether [`Found::Elsewhere`] was returned for the next base or for the links.
    leaves: bool,
}

/// The directory that source paths are in.
struct Base {
    path: PathBuf,
    tree: Tree,
    /// The number of directories of earlier bases. At the sink, numbers continue over all bases.
    before: u32,
}

impl Base {
    /// Returns the number of a directory at the sink.
    fn number(&self, directory: u32) -> u32 {
        if directory == ROOT { ROOT } else { self.before + directory }
    }
}

impl Walker {
    /// Starts a walk through these paths.
    pub(super) fn new(sources: &[PathBuf]) -> Self {
        let sources = sources.iter().rev().cloned().collect();
        Self {
            sources,
            base: None,
            waiting: Vec::new(),
            found: VecDeque::new(),
            links: VecDeque::new(),
            before: 0,
            leaves: false,
        }
    }

    /// Returns the next entry to send, links last. Failures are added to `counts`.
    pub(super) fn next(&mut self, counts: &mut Counts) -> Option<Found> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Some(found);
            }
            if let Some(directory) = self.waiting.pop() {
                self.list(directory, counts);
            } else if let Some(source) = self.sources.last() {
                let (base, _) = parts(source);
                if let Some(old) = self.base.as_ref().filter(|old| old.path != base) {
                    if !std::mem::replace(&mut self.leaves, true) {
                        return Some(Found::Elsewhere);
                    }
                    self.before = old.before + old.tree.len();
                    self.base = None;
                }
                self.leaves = false;
                self.begin(counts);
            } else if !self.links.is_empty() && !std::mem::replace(&mut self.leaves, true) {
                // Offered files are sent before the links.
                return Some(Found::Elsewhere);
            } else {
                return self.links.pop_front();
            }
        }
    }

    /// Begins with the next source path.
    fn begin(&mut self, counts: &mut Counts) {
        let Some(source) = self.sources.pop() else { return };
        let (path, name) = parts(&source);
        let shown = source.display().to_string();
        if self.base.is_none() {
            // The directory need not be readable unless its contents are listed.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match openat(CWD, &path, flags, Mode::empty()) {
                Ok(root) => {
                    self.base = Some(Base { path, tree: Tree::new(root), before: self.before });
                }
                Err(errno) => {
                    let error = io::Error::from(errno);
                    return counts.fail(&format!("{shown}: not sent: {error}"));
                }
            }
        }
        match name.map(|name| Name::new(&name)) {
            None => self.waiting.push(ROOT),
            Some(Ok(name)) => self.look_at(ROOT, &name, counts),
            Some(Err(why)) => counts.fail(&format!("{shown}: not sent: the name {why}")),
        }
    }

    /// Lists a directory, in the order of the names.
    fn list(&mut self, directory: u32, counts: &mut Counts) {
        let Some(base) = &mut self.base else { return };
        let names = base.tree.open(directory).and_then(names);
        let mut names = match names {
            Ok(names) => names,
            Err(error) => {
                let shown = base.shown_directory(directory);
                return counts.fail(&format!("{shown}: contents not sent: {error}"));
            }
        };
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let first = self.waiting.len();
        for (name, kind) in names {
            match Name::new(&name) {
                // A file is checked when it is opened.
                Ok(name) if kind == FileType::RegularFile => {
                    self.found.push_back(Found::File { directory, name });
                }
                Ok(name) => self.look_at(directory, &name, counts),
                Err(why) => {
                    let shown =
                        self.base.as_ref().map(|base| base.shown_directory(directory)).unwrap_or_default();
                    let is_left = is_unfinished(&name);
                    let name = String::from_utf8_lossy(&name);
                    match is_left {
                        true => counts.remark(&format!(
                            "{shown}/{name}: skipped: an interrupted transfer to this directory left it"
                        )),
                        false => counts.fail(&format!("{shown}/{name}: not sent: the name {why}")),
                    }
                }
            }
        }
        let (files, others): (Vec<_>, Vec<_>) =
            self.found.drain(..).partition(|found| matches!(found, Found::File { .. }));
        self.found.extend(files);
        self.found.extend(others);
        self.waiting[first..].reverse();
    }

    /// Examines a name in a directory.
    fn look_at(&mut self, directory: u32, name: &Name, counts: &mut Counts) {
        let Some(base) = &mut self.base else { return };
        let found = match look(base, directory, name) {
            Ok(Looked::File) => Found::File { directory, name: name.clone() },
            Ok(Looked::Directory(attributes)) => {
                let parent = base.number(directory);
                match base.tree.add(directory, name.clone()) {
                    Ok(number) => self.waiting.push(number),
                    Err(why) => {
                        let shown = base.tree.path(directory, name);
                        return counts.fail(&format!("{shown}: not sent: it {why}"));
                    }
                }
                Found::Directory { parent, name: name.clone(), attributes }
            }
            Ok(Looked::Link(attributes, target)) => {
                let parent = base.number(directory);
                return self.links.push_back(Found::Link { parent, name: name.clone(), attributes, target });
            }
            Ok(Looked::Other(what)) => {
                let shown = base.tree.path(directory, name);
                return counts.remark(&format!("{shown}: skipped: it is {what}"));
            }
            Err(error) => {
                let shown = base.tree.path(directory, name);
                let why = match error.kind() {
                    io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    _ => error.to_string(),
                };
                return counts.fail(&format!("{shown}: not sent: {why}"));
            }
        };
        self.found.push_back(found);
    }

    /// Opens a directory of the walk, until the walk leaves its base.
    pub(super) fn open(&mut self, directory: u32) -> io::Result<BorrowedFd<'_>> {
        match &mut self.base {
            Some(base) => base.tree.open(directory),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the number at the sink of a directory of the walk.
    pub(super) fn number(&self, directory: u32) -> u32 {
        self.base.as_ref().map_or(ROOT, |base| base.number(directory))
    }

    /// Returns the path of a name in a directory of the walk, for messages.
    pub(super) fn path(&self, directory: u32, name: &Name) -> String {
        self.base.as_ref().map_or_else(|| name.to_string(), |base| base.tree.path(directory, name))
    }
}

impl Base {
    fn shown_directory(&self, directory: u32) -> String {
        match self.tree.place(directory) {
            Some((parent, name)) => self.tree.path(parent, name),
            None => self.path.display().to_string(),
        }
    }
}

/// The type of an entry.
enum Looked {
    File,
    Directory(Attributes),
    Link(Attributes, Box<[u8]>),
    Other(&'static str),
}

fn look(base: &mut Base, directory: u32, name: &Name) -> io::Result<Looked> {
    let directory = base.tree.open(directory)?;
    let found = statat(directory, name.os(), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Looked::File,
        FileType::Directory => Looked::Directory(attributes(&found)),
        FileType::Symlink => {
            let target = readlinkat(directory, name.os(), Vec::new())?.into_bytes();
            Looked::Link(attributes(&found), target.into())
        }
        FileType::Fifo => Looked::Other("a pipe"),
        FileType::Socket => Looked::Other("a socket"),
        FileType::BlockDevice | FileType::CharacterDevice => Looked::Other("a device"),
        _ => Looked::Other("neither file, directory nor link"),
    })
}

/// Returns the names in a directory, and their types as the directory reports them.
fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = openat(directory, ".", flags, Mode::empty())?;
    for entry in Dir::new(readable)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Returns the directory of a source path, and its name there; no name if the contents of the
/// directory are sent.
fn parts(source: &Path) -> (PathBuf, Option<Vec<u8>>) {
    let bytes = source.as_os_str().as_bytes();
    let is_contents = bytes == b"." || bytes.ends_with(b"/.");
    match (source.file_name(), source.parent()) {
        (Some(name), Some(parent)) if !is_contents => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            (parent.to_owned(), Some(name.as_bytes().to_vec()))
        }
        _ => (source.to_owned(), None),
    }
}
