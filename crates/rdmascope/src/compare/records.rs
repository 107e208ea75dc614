//! The records of a side.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ::report::SampleSource;
use ::report::compare::Session;
use ::report::fleet::compared;
use anyhow::Context;
use measure::record::Point;
use measure::store::{RUN_FILE, RunReader};

use crate::failure::{Usage, harmless};

/// Reads the runs that a text names: directories with commas between them, each of a run or with
/// runs in it. A run in a directory that cannot be read is told and left out.
///
/// # Errors
///
/// If a directory cannot be read, or has no run.
pub(super) fn runs(text: &str) -> anyhow::Result<Vec<RunReader>> {
    // The name of one directory may contain commas.
    let names = if Path::new(text).exists() { vec![text] } else { text.split(',').collect() };
    let mut all = Vec::new();
    for name in names {
        let path = Path::new(name);
        let inside = if path.join(RUN_FILE).exists() { Vec::new() } else { inside(path)? };
        if inside.is_empty() {
            all.push(RunReader::open(path)?);
        }
        for path in inside {
            match RunReader::open(&path) {
                Ok(run) => all.push(run),
                Err(error) => tell(&path, &format!("is left out: {error}")),
            }
        }
    }
    let all = distinct(all);
    if all.is_empty() {
        return Err(Usage(format!("{text:?} names no run: name the directory of a run")).into());
    }
    for run in all.iter().filter(|run| run.run().ended.is_none()) {
        tell(run.dir(), "has not ended: the points that it has are used");
    }
    Ok(all)
}

/// Removes runs that are in the list already: a link such as `latest` leads to a run that would
/// count twice.
pub(super) fn distinct(runs: Vec<RunReader>) -> Vec<RunReader> {
    let mut known = BTreeSet::new();
    let is_new = |run: &RunReader| {
        let is_new = known.insert(place(run));
        if !is_new {
            tell(run.dir(), "is left out: it is the same run as another one");
        }
        is_new
    };
    runs.into_iter().filter(is_new).collect()
}

/// Returns the directory of a run, with links resolved.
pub(super) fn place(run: &RunReader) -> PathBuf {
    run.dir().canonicalize().unwrap_or_else(|_| run.dir().to_owned())
}

/// Says something about a run.
fn tell(path: &Path, what: &str) {
    eprintln!("rdmascope: {}", harmless(&format!("{} {what}", path.display())));
}

/// Returns the directories of runs in a directory, sorted by name.
fn inside(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let cannot_read = || format!("cannot read the directory {}", path.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.join(RUN_FILE).exists() {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Runs with their names and samples.
pub(super) struct Records {
    runs: Vec<(String, Source)>,
}

/// A run that gives its samples, and its points that are compared.
struct Source {
    run: RunReader,
    /// Of a fleet, the points of its schedule; otherwise, all points of the run are compared.
    scheduled: Option<Vec<Point>>,
}

impl SampleSource for Source {
    fn load(&self, path: &str) -> Result<Vec<u64>, String> {
        self.run.sample_file(path).map_err(|error| error.to_string())
    }
}

impl Records {
    pub(super) fn new(runs: Vec<RunReader>) -> Self {
        let named = |run: RunReader| {
            let scheduled = match compared(run.run(), run.points()) {
                Cow::Owned(points) => Some(points),
                Cow::Borrowed(_) => None,
            };
            (run.dir().display().to_string(), Source { run, scheduled })
        };
        Self { runs: runs.into_iter().map(named).collect() }
    }

    pub(super) fn sessions(&self) -> Vec<Session<'_>> {
        self.runs.iter().map(session).collect()
    }
}

fn session((name, source): &(String, Source)) -> Session<'_> {
    let points = source.scheduled.as_deref().unwrap_or_else(|| source.run.points());
    Session { name, run: source.run.run(), points, samples: source }
}
