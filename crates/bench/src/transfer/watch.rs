//! What a transfer tells while it goes on: how far it is, and each file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, thread};

use measure::clock::{Clock, Ticks};
use measure::text::plain;
use serde::{Deserialize, Serialize};

/// A line that the source tells, behind [`News::MARK`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum News {
    /// How far it is.
    Progress {
        /// Bytes that were sent.
        bytes: u64,
        /// Files that were.
        files: u64,
        /// How many there are in all, once that is known: bytes and files.
        all: Option<(u64, u64)>,
    },
    /// A file was sent.
    File {
        /// Its path below what was sent.
        path: String,
    },
    /// A transfer has ended at the end that receives.
    Arrived {
        /// Files that have arrived.
        files: u64,
        /// What has not, a sentence each; the first hundred.
        failures: Vec<String>,
        /// Why it ended before all had arrived, if so.
        error: Option<String>,
    },
}

impl News {
    /// What a line begins with that is one.
    pub const MARK: &'static str = "transfer: ";

    /// That of a line, if it is one.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_prefix(Self::MARK)?).ok()
    }

    /// The line of it.
    pub(super) fn line(&self) -> String {
        format!("{}{}", Self::MARK, serde_json::to_string(self).unwrap_or_default())
    }
}

/// What is told of a transfer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Telling {
    /// How far it is, some times in a second.
    pub progress: bool,
    /// Each file.
    pub files: bool,
    /// What has arrived in the end, at the end that receives.
    #[serde(default)]
    pub arrival: bool,
}

/// How often it is told how far a transfer is.
const TELLS_EVERY: Duration = Duration::from_millis(200);

/// Watches a transfer.
pub(super) struct Watch {
    telling: Telling,
    tell: fn(&str),
    clock: Clock,
    next: Ticks,
    bytes: u64,
    files: u64,
    all: Option<Arc<All>>,
}

/// How much there is to send.
#[derive(Default)]
struct All {
    bytes: AtomicU64,
    files: AtomicU64,
    is_known: AtomicBool,
}

impl Watch {
    /// Tells what is asked for. How much there is, another thread counts meanwhile.
    pub(super) fn new(telling: Telling, tell: fn(&str), clock: Clock, paths: &[PathBuf]) -> Self {
        let all = telling.progress.then(|| count(paths.to_vec()));
        Self { telling, tell, clock, next: clock.now(), bytes: 0, files: 0, all }
    }

    /// So many bytes more were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.telling.progress {
            self.look(false);
        }
    }

    /// A file was sent.
    pub(super) fn file(&mut self, path: impl FnOnce() -> String) {
        self.files += 1;
        if self.telling.files {
            (self.tell)(&News::File { path: plain(&path()) }.line());
        }
        if self.telling.progress {
            self.look(false);
        }
    }

    /// Tells how far it is, if it is time.
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

/// Counts what there is to send, on another thread, which ends by itself.
fn count(paths: Vec<PathBuf>) -> Arc<All> {
    let all = Arc::new(All::default());
    let counted = Arc::clone(&all);
    // Without a thread it is not known how much there is, which ends nothing.
    let _ = thread::Builder::new().name("count".to_owned()).spawn(move || {
        for path in paths {
            add(&path, &counted, 0);
        }
        counted.is_known.store(true, Relaxed);
    });
    all
}

/// Directories deeper than this are not sent.
const DEPTH_MAX: u32 = super::tree::DEPTH_MAX;

fn add(path: &Path, all: &All, depth: u32) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_file() {
        all.files.fetch_add(1, Relaxed);
        all.bytes.fetch_add(found.len(), Relaxed);
    } else if found.is_dir() && depth <= DEPTH_MAX {
        // The directory is closed before those in it are opened.
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
