//! What can go wrong in this crate. Every message is one sentence that says what was tried, on
//! what, why it failed in the system's own words, and what to do. The cause is part of the sentence
//! and therefore not the error's `source`, so that a caller who prints the whole chain does not
//! print it twice.

use std::io;
use std::path::{Path, PathBuf};

/// What a function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of `points.jsonl` is not a point, and it is not the torn last line that a kill leaves
    /// behind.
    #[error(
        "line {line} of {path} is not a point: {cause}; restore the file from a copy or remove that line"
    )]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The parser's words.
        cause: serde_json::Error,
    },
    /// `run.json` is not a record.
    #[error("{path} is not the record of a run: {cause}; restore the file from a copy")]
    BadRun {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        cause: serde_json::Error,
    },
    /// A file does not hold raw samples.
    #[error("cannot read {path} as samples: {why}; restore the file from a copy or measure the point again")]
    BadSamples {
        /// The file, or the path that the record gives.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A text is not a count.
    #[error("cannot read {text:?} as a count: write a whole number such as 1000, 10k or 1e6")]
    Count {
        /// The text.
        text: String,
    },
    /// A text is not a duration.
    #[error("cannot read {text:?} as a duration: {why}")]
    Duration {
        /// The text.
        text: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// A value cannot be written as JSON.
    #[error("cannot write {path} as JSON: {cause}; please report this as a defect of the program")]
    Encode {
        /// The file that it was for.
        path: PathBuf,
        /// The serializer's words.
        cause: serde_json::Error,
    },
    /// The system refused to do something with a file or directory.
    #[error("cannot {action} {path}: {cause}; {}", advice(.cause))]
    Io {
        /// What was tried, e.g. `append a point to`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// There is no memory for the samples.
    #[error(
        "cannot allocate {bytes} bytes for {samples} samples: {cause}; measure fewer messages or keep a histogram \
         instead of raw samples"
    )]
    Memory {
        /// Samples that were asked for.
        samples: usize,
        /// Bytes that they take.
        bytes: usize,
        /// The allocator's words.
        cause: std::collections::TryReserveError,
    },
    /// The record was written by a newer program.
    #[error(
        "{path} has schema version {found} and this program reads versions up to {supported}; read it with the \
         program that wrote it or a newer one"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Version of the record.
        found: u64,
        /// [`crate::record::SCHEMA_VERSION`].
        supported: u32,
    },
    /// A directory does not hold a run.
    #[error(
        "{dir} does not hold a run: {why}; name the directory that was given to the run, the one with run.json"
    )]
    NotARun {
        /// The directory.
        dir: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A directory already holds a run.
    #[error(
        "{dir} already holds a run, which is never overwritten; choose another directory or move that run away"
    )]
    RunExists {
        /// The directory.
        dir: PathBuf,
    },
    /// A run cannot be resumed, because its program has not ended.
    #[error("another program still writes the run in {dir}: wait for its end, or stop it")]
    RunIsWritten {
        /// The directory.
        dir: PathBuf,
    },
    /// A text is not a share.
    #[error("cannot read {text:?} as a share: write one such as 2.5%")]
    Percent {
        /// The text.
        text: String,
    },
    /// A text is not a rate.
    #[error("cannot read {text:?} as a rate: write messages per second, such as 500, 10k or 2M")]
    Rate {
        /// The text.
        text: String,
    },
    /// A text is not a size.
    #[error("cannot read {text:?} as a size: {why}")]
    Size {
        /// The text.
        text: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// A text is not a range of sizes.
    #[error("cannot read {text:?} as a range of sizes: {why}")]
    SizeRange {
        /// The text.
        text: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// A text is not a skew of a clock.
    #[error("cannot read {text:?} as a skew: {why}")]
    Skew {
        /// The text.
        text: String,
        /// What is wrong with it and what would be right.
        why: String,
    },
    /// A text is not a unit.
    #[error("cannot read {text:?} as a unit: write one of {known}")]
    Unit {
        /// The text.
        text: String,
        /// The known units.
        known: String,
    },
}

impl Error {
    /// Whether the request caused the error (a size, a directory), and not the system afterwards.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Count { .. }
                | Self::Duration { .. }
                | Self::NotARun { .. }
                | Self::Percent { .. }
                | Self::Rate { .. }
                | Self::RunExists { .. }
                | Self::RunIsWritten { .. }
                | Self::Size { .. }
                | Self::SizeRange { .. }
                | Self::Skew { .. }
                | Self::Unit { .. }
        )
    }
}

impl Error {
    /// An error of the system, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { action, path: path.to_owned(), cause }
    }
}

/// What the user can do about an error of the system.
fn advice(cause: &io::Error) -> &'static str {
    use io::ErrorKind;
    match cause.kind() {
        ErrorKind::AlreadyExists => "choose another directory or move that file away",
        ErrorKind::FileTooLarge => {
            "raise the limit on file sizes with ulimit -f, or choose another directory"
        }
        ErrorKind::InvalidInput => "restore the file from a copy",
        ErrorKind::OutOfMemory => "read it on a machine with more memory",
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
            "check the path: it has a file in the place of a directory, or a directory in the place of a file"
        }
        ErrorKind::NotFound => "check the path and that nothing removes the directory while the run lasts",
        ErrorKind::PermissionDenied => {
            "choose a directory that you may write to, or have its permissions changed"
        }
        ErrorKind::QuotaExceeded => "free some of your quota or choose a directory on another file system",
        ErrorKind::ReadOnlyFilesystem => "choose a directory on a file system that is not mounted read-only",
        ErrorKind::StorageFull => "free space on that file system or choose a directory on another one",
        _ => "check the file system or choose another directory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_sentence_with_the_systems_words_and_advice() {
        let full = io::Error::from_raw_os_error(28);
        let error = Error::io("append a point to", Path::new("/runs/1/points.jsonl"))(full);
        assert_eq!(
            error.to_string(),
            "cannot append a point to /runs/1/points.jsonl: No space left on device (os error 28); free space on \
             that file system or choose a directory on another one"
        );
        assert!(std::error::Error::source(&error).is_none(), "the cause would be printed twice");
    }
}
