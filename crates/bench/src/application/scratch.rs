//! The directory that an application runs in. It is made for one run, gets the application's files,
//! and is removed with everything that the application leaves in it.

use std::fs::{self, File as Open};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::definition::File;
use super::hash::sha256;
use super::kept::{Keeper, Said};
use super::spec::{ApplicationSpec, Started};
use super::told::Hashed;
use crate::Error;
use crate::fault::PointError;
use crate::scratch::ScratchDirectory;

/// The directory of a run.
pub(super) struct Scratch {
    directory: ScratchDirectory,
    /// The files that were put into the directory.
    pub(super) inputs: Vec<Hashed>,
}

impl Scratch {
    /// Makes a directory.
    pub(super) fn new(started: &Started) -> Result<Self, PointError> {
        let failed = Error::system("make a scratch directory");
        let directory = ScratchDirectory::new(None, &started.supervisor).map_err(failed)?;
        Ok(Self { directory, inputs: Vec::new() })
    }

    /// Puts the files of an application into it.
    pub(super) fn fill(&mut self, spec: &ApplicationSpec) -> Result<(), PointError> {
        for file in spec.application.files.values() {
            let placed = place(spec, file, self.directory.path())?;
            self.inputs.push(placed);
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The contents of a file that the application has written; `None` if there is no such file
    /// below the directory. Links are not followed.
    pub(super) fn read(&self, name: &str) -> Option<Said> {
        let mut file = Open::from(self.open(name).ok()?);
        // A pipe or a device may have no end.
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return None;
        }
        let mut keeper = Keeper::default();
        let mut bytes = [0; 64 << 10];
        // A sparse file may be too long to read.
        for _ in 0..READS_MAX {
            match file.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => keeper.take(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(keeper.said())
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let directory =
            openat(CWD, self.path(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&directory, name, flags, Mode::empty(), within) {
            // Before Linux 5.6.
            Err(Errno::NOSYS) if !name.contains('/') => {
                openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            opened => opened,
        }
    }
}

/// Puts a file into a directory.
fn place(spec: &ApplicationSpec, file: &File, directory: &Path) -> Result<Hashed, PointError> {
    let of_run = directory.to_string_lossy();
    let filled = match file {
        File::Copy(path) => File::Copy(spec.filled(path, Some(&of_run))?),
        File::Text { name, text } => {
            File::Text { name: name.clone(), text: spec.filled(text, Some(&of_run))? }
        }
    };
    let name = filled.name().to_owned();
    let target = directory.join(&name);
    let placed = match &filled {
        File::Copy(path) => fs::copy(found(spec, path), &target).map(drop),
        File::Text { text, .. } => fs::write(&target, text),
    };
    let program = &spec.application.name;
    placed.map_err(|error| {
        let how = spec.application.how_to_install();
        match (&filled, error.kind()) {
            (File::Copy(path), ErrorKind::NotFound) => PointError::NotMeasured(format!(
                "{program} needs the file {path:?}, which does not exist{how}"
            )),
            _ => PointError::Failed(format!(
                "cannot put the file {name:?} of {program} into its directory: {error}"
            )),
        }
    })?;
    Ok(Hashed { path: name, sha256: sha256(&target).unwrap_or_else(|error| format!("not read: {error}")) })
}

/// The path of a file in a plan, relative to the plan or else to the working directory.
fn found(spec: &ApplicationSpec, path: &str) -> PathBuf {
    let beside = spec.base.as_ref().map(|base| Path::new(base).join(path));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(path))
}

/// The most reads of a file. Together they read more than is searched.
const READS_MAX: usize = 1 << 12;
