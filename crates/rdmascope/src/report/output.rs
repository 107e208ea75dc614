//! A file that the user names for results.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use measure::files;
use measure::store::{POINTS_FILE, RUN_FILE, RunReader, SAMPLES_DIR};
use rustix::fs::fstat;
use rustix::io::fcntl_dupfd_cloexec;

use crate::failure::Usage;

/// Where results go.
#[derive(Debug)]
pub(crate) enum Output {
    /// A file that is replaced as a whole.
    File(PathBuf),
    /// A pipe or a device, or one of the standard streams under a name such as `/dev/stdout`.
    Stream(PathBuf, File),
}

impl Output {
    /// Returns the output that a user has named for results that are made from records.
    ///
    /// # Errors
    /// If it is part of one of them, or cannot be opened.
    pub(crate) fn beside(records: &[&RunReader], path: &Path) -> anyhow::Result<Self> {
        if records.iter().any(|record| is_of_record(path, record)) {
            let path = path.display();
            return Err(Usage(format!("{path} is part of the record: choose another file")).into());
        }
        Self::named(path)
    }

    /// Returns the output that a user has named.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn named(path: &Path) -> anyhow::Result<Self> {
        let stream = stream(path).with_context(|| cannot_write(path))?;
        Ok(match stream {
            Some(stream) => Self::Stream(path.to_owned(), stream),
            None => Self::File(path.to_owned()),
        })
    }

    /// Writes results. A file is written completely or not at all.
    pub(crate) fn write(
        &self,
        results: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::File(path) => files::replace(path, results).with_context(|| cannot_write(path)),
            Self::Stream(path, stream) => {
                let mut writer = BufWriter::new(stream);
                let written = results(&mut writer).and_then(|()| {
                    writer.into_inner().map_err(IntoInnerError::into_error)?;
                    Ok(())
                });
                written.with_context(|| cannot_write(path))
            }
        }
    }

    /// Returns the path, if the output is a file.
    pub(super) fn into_file(self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Stream(..) => None,
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Opens the target of a path that is neither a regular file nor a new one.
fn stream(path: &Path) -> io::Result<Option<File>> {
    let Ok(found) = fs::metadata(path) else { return Ok(None) };
    // `/dev/stdout` leads to a regular file if the shell has redirected it. If that file or the
    // link were replaced, the shell would have another file.
    if path.is_symlink() {
        for standard in [io::stdout().as_fd(), io::stderr().as_fd()] {
            if is_open(&found, standard) {
                return Ok(Some(fcntl_dupfd_cloexec(standard, 3)?.into()));
            }
        }
    }
    match found.is_file() {
        true => Ok(None),
        false => OpenOptions::new().write(true).open(path).map(Some),
    }
}

/// Whether a descriptor refers to a file.
fn is_open(file: &fs::Metadata, descriptor: BorrowedFd<'_>) -> bool {
    fstat(descriptor).is_ok_and(|open| (open.st_dev, open.st_ino) == (file.dev(), file.ino()))
}

/// Whether a path is a file of a record, or in its directory of samples.
fn is_of_record(path: &Path, record: &RunReader) -> bool {
    let run = record.dir();
    let points = record.points().iter();
    let samples = points.flat_map(|point| {
        let kinds = point.kinds.iter().filter_map(|timed| timed.samples.as_deref());
        kinds.chain(point.ends.iter().filter_map(|end| end.samples.as_deref()))
    });
    let Ok(path) = place(path) else { return false };
    let is_same = |file: &str| place(&run.join(file)).is_ok_and(|file| file == path);
    let is_sample = run.join(SAMPLES_DIR).canonicalize().is_ok_and(|samples| path.starts_with(samples));
    is_sample || [RUN_FILE, POINTS_FILE].into_iter().chain(samples).any(is_same)
}

/// Returns a path without links. If the file does not exist, only its directory is resolved.
fn place(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|error| {
        let directory = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or(error)?;
        Ok(directory.canonicalize()?.join(name))
    })
}
