//! Points as JSON: a line each on standard output (`--json`), and all in one file (perftest's
//! `--out_json`).

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use measure::record::{Point, Run};
use serde_json::json;

/// Returns a point as one line.
pub(super) fn line(point: &Point) -> String {
    serde_json::to_string(point).expect("a point is a tree of maps with text keys") + "\n"
}

/// A file that has all points of a run when it ends.
///
/// As in perftest's file, `test_info` tells what was measured and `results` has the numbers. Here
/// both are parts of the record, and `results` is a list, because a run can have several points.
#[derive(Debug)]
pub(super) struct JsonFile {
    path: PathBuf,
    points: Vec<Point>,
}

impl JsonFile {
    /// Writes the file without points, so that a path that cannot be used is known before anything
    /// is measured.
    pub(super) fn create(path: PathBuf, run: &Run) -> anyhow::Result<Self> {
        let file = Self { path, points: Vec::new() };
        file.write(run)?;
        Ok(file)
    }

    /// Adds a point.
    pub(super) fn add(&mut self, point: Point) {
        self.points.push(point);
    }

    /// Writes the file with all points.
    pub(super) fn write(&self, run: &Run) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&json!({ "test_info": run, "results": self.points }))?;
        fs::write(&self.path, text + "\n").with_context(|| format!("cannot write {}", self.path.display()))
    }
}
