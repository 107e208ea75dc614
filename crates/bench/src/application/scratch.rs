//! The directory that a program runs in: made for one run, with its files, and removed with all
//! that the program leaves in it.

use std::fs::{self, File as Open};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::definition::File;
use super::hash::sha256;
use super::kept::{Keeper, Kept};
use super::spec::ApplicationSpec;
use super::told::Hashed;
use crate::Error;
use crate::fault::PointError;

/// The directory of a run.
pub(super) struct Scratch {
    directory: TempDir,
    /// The files that the program was given.
    pub(super) inputs: Vec<Hashed>,
}

impl Scratch {
    /// Makes one with the files of a program.
    pub(super) fn new(spec: &ApplicationSpec) -> Result<Self, PointError> {
        let failed = Error::system("make a scratch directory");
        let directory = tempfile::Builder::new().prefix("rdmascope-").tempdir().map_err(failed)?;
        let mut inputs = Vec::new();
        for file in spec.application.files.values() {
            inputs.push(place(spec, file, directory.path())?);
        }
        Ok(Self { directory, inputs })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What the program has written into a file; nothing where there is none.
    pub(super) fn read(&self, name: &str) -> Option<Kept> {
        let path = self.path().join(name);
        // What is no file may have no end.
        let is_file = fs::metadata(&path).is_ok_and(|found| found.is_file());
        let mut file = Open::open(path).ok().filter(|_| is_file)?;
        let mut keeper = Keeper::default();
        let mut bytes = [0; 64 << 10];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => return Some(keeper.kept()),
                Ok(count) => keeper.take(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// Puts a file into a directory.
fn place(spec: &ApplicationSpec, file: &File, directory: &Path) -> Result<Hashed, PointError> {
    let filled = match file {
        File::Copy(path) => File::Copy(spec.filled(path, None)?),
        File::Text { name, text } => File::Text { name: name.clone(), text: spec.filled(text, None)? },
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
            (File::Copy(path), ErrorKind::NotFound) => {
                PointError::NotMeasured(format!("{program} needs the file {path:?}, which is not there{how}"))
            }
            _ => PointError::Failed(format!(
                "the file {name:?} of {program} cannot be put into its directory: {error}"
            )),
        }
    })?;
    let sha256 = sha256(&target).map_err(Error::system("read a file of a program"))?;
    Ok(Hashed { path: name, sha256 })
}

/// The path of a file that a plan names.
fn found(spec: &ApplicationSpec, path: &str) -> PathBuf {
    spec.base.as_ref().map_or_else(|| PathBuf::from(path), |base| Path::new(base).join(path))
}
