//! The messages of a running transfer: its progress, and each file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, thread};

use measure::clock::{Clock, Ticks};
use measure::text::plain;
use serde::{Deserialize, Serialize};

/// A message of a transfer: a line after [`News::MARK`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum News {
    /// The progress so far.
    Progress {
        /// The bytes that were sent.
        bytes: u64,
        /// The files that were sent.
        files: u64,
        /// The bytes and files of the whole transfer, once they are counted.
        all: Option<(u64, u64)>,
    },
    /// A file was sent.
    File {
        /// Its path below the source.
        path: String,
    },
    /// The transfer has ended at the sink.
    Arrived {
        /// The files that have arrived.
        files: u64,
        /// The first hundred failures, a sentence each.
        failures: Vec<String>,
        /// Why the transfer ended early, if so.
        error: Option<String>,
    },
}

impl News {
    /// The start of every such line.
    pub const MARK: &'static str = "transfer: ";

    /// Parses a line; `None` if it is another line.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_prefix(Self::MARK)?).ok()
    }

    /// Returns the message as a line.
    pub(super) fn line(&self) -> String {
        format!("{}{}", Self::MARK, serde_json::to_string(self).unwrap_or_default())
    }
}

/// The messages that a transfer sends.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Telling {
    /// Whether the source reports its progress, several times a second.
    pub progress: bool,
    /// Whether the source reports each file.
    pub files: bool,
    /// Whether the sink reports the outcome.
    #[serde(default)]
    pub arrival: bool,
}

/// The interval between two reports of progress.
const TELLS_EVERY: Duration = Duration::from_millis(200);

/// Reports the progress of a transfer.
pub(super) struct Watch {
    telling: Telling,
    tell: fn(&str),
    clock: Clock,
    next: Ticks,
    bytes: u64,
    files: u64,
    all: Option<Arc<All>>,
}

/// The size of the whole transfer.
#[derive(Default)]
struct All {
    bytes: AtomicU64,
    files: AtomicU64,
    is_known: AtomicBool,
}

impl Watch {
    /// Starts to report. Another thread meanwhile counts the bytes and files of `paths`.
    pub(super) fn new(telling: Telling, tell: fn(&str), clock: Clock, paths: &[PathBuf]) -> Self {
        let all = telling.progress.then(|| count(paths.to_vec()));
        Self { telling, tell, clock, next: clock.now(), bytes: 0, files: 0, all }
    }

    /// Adds bytes that were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.telling.progress {
            self.look(false);
        }
    }

    /// Adds a file that was sent.
    pub(super) fn file(&mut self, path: impl FnOnce() -> String) {
        self.files += 1;
        if self.telling.files {
            (self.tell)(&News::File { path: plain(&path()) }.line());
        }
        if self.telling.progress {
            self.look(false);
        }
    }

    /// Reports the progress, if the interval is over or the transfer ends.
    pub(super) fn look(&mut self, is_end: bool) {
        let now = self.clock.now();
        if !self.telling.progress || (!is_end && now.0 < self.next.0) {
            return;
        }
        self.next = Ticks(now.0 + self.clock.ticks(TELLS_EVERY));
        let all = self.all.as_ref().filter(|all| all.is_known.load(Relaxed));
        let all = all.map(|all| (all.bytes.load(Relaxed), all.files.load(Relaxed)));
        (self.tell)(&News::Progress { bytes: self.bytes, files: self.files, all }.line());
    }
}

/// Counts the bytes and files of the paths, on another thread, which ends by itself.
fn count(paths: Vec<PathBuf>) -> Arc<All> {
    let all = Arc::new(All::default());
    let counted = Arc::clone(&all);
    // Without the thread, the total remains unknown, and the transfer goes on.
    let _ = thread::Builder::new().name("count".to_owned()).spawn(move || {
        for path in paths {
            add(&path, &counted, 0);
        }
        counted.is_known.store(true, Relaxed);
    });
    all
}

/// The deepest directories that are sent.
const DEPTH_MAX: u32 = super::tree::DEPTH_MAX;

fn add(path: &Path, all: &All, depth: u32) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_file() {
        all.files.fetch_add(1, Relaxed);
        all.bytes.fetch_add(found.len(), Relaxed);
    } else if found.is_dir() && depth <= DEPTH_MAX {
        // Each directory is closed before its subdirectories are opened.
        let below: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        for path in below {
            add(&path, all, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_from_their_lines_alone() {
        let news = News::Progress { bytes: 7, files: 1, all: Some((9, 2)) };
        assert_eq!(News::read(&news.line()), Some(news));
        for line in ["", "transfer: ", "transfer: {}", "something else"] {
            assert_eq!(News::read(line), None);
        }
    }
}
