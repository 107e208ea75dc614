//! Reading the directory of a run that is finished, was killed, or is still being written.

use std::path::{Component, Path, PathBuf};

use super::{POINTS_FILE, RUN_FILE};
use crate::placement;
use crate::record::{End, Point, Run, SCHEMA_VERSION};
use crate::samples::read_raw;
use crate::{Error, Result, files};

/// A run that was read.
#[derive(Debug)]
pub struct RunReader {
    dir: PathBuf,
    run: Run,
    points: Vec<Point>,
    is_torn: bool,
}

impl RunReader {
    /// Reads a run and all its whole points. Marks the points that later ones show to be far
    /// ([`crate::placement::mark`]).
    pub fn open(dir: &Path) -> Result<Self> {
        let run = read_run(dir)?;
        let (mut points, is_torn) = read_points(dir)?;
        placement::mark(&mut points);
        Ok(Self { dir: dir.to_owned(), run, points, is_torn })
    }

    /// The directory of the run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `run.json`.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The points, in the order in which they were measured.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether the last line was torn, by a kill or because it is being written, and ignored.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The run and its points, to keep.
    pub fn into_parts(self) -> (Run, Vec<Point>) {
        (self.run, self.points)
    }

    /// The raw samples of one rank of a point, in ns; `None` where they were not kept.
    pub fn samples(&self, end: &End) -> Result<Option<Vec<u64>>> {
        end.samples.as_deref().map(|name| self.sample_file(name)).transpose()
    }

    /// The raw samples of a file that a point names, in ns. A record may come from anywhere, so a
    /// name that leads out of its directory is refused, by itself or through a link.
    pub fn sample_file(&self, name: &str) -> Result<Vec<u64>> {
        let name = Path::new(name);
        let path = self.dir.join(name);
        if name.components().any(|part| !matches!(part, Component::Normal(_))) || self.is_outside(&path) {
            let why = "the path leads out of the run's directory".to_owned();
            return Err(Error::BadSamples { path: name.to_owned(), why });
        }
        read_raw(&path)
    }

    /// Whether links lead a path out of the directory. A path that does not exist counts as inside:
    /// reading it then fails.
    fn is_outside(&self, path: &Path) -> bool {
        matches!((self.dir.canonicalize(), path.canonicalize()), (Ok(dir), Ok(path)) if !path.starts_with(&dir))
    }
}

fn read_run(dir: &Path) -> Result<Run> {
    let path = dir.join(RUN_FILE);
    let text = files::read(&path).map_err(|cause| not_a_run(dir, RUN_FILE, cause))?;
    let bad_run = |cause| Error::BadRun { path: path.clone(), cause };
    let record: serde_json::Value = serde_json::from_slice(&text).map_err(bad_run)?;
    match record["schema_version"].as_u64() {
        Some(found) if found > u64::from(SCHEMA_VERSION) => {
            Err(Error::NewerSchema { path, found, supported: SCHEMA_VERSION })
        }
        _ => serde_json::from_slice(&text).map_err(bad_run),
    }
}

/// The points, and whether a torn line follows them. The last line is torn if it has no newline and
/// is not a point: the writer ends every line with a newline.
fn read_points(dir: &Path) -> Result<(Vec<Point>, bool)> {
    let path = dir.join(POINTS_FILE);
    let text = files::read(&path).map_err(|cause| not_a_run(dir, POINTS_FILE, cause))?;
    let mut points = Vec::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(point) => points.push(point),
            Err(_) if !line.ends_with(b"\n") => return Ok((points, true)),
            Err(cause) => return Err(Error::BadLine { path, line: index + 1, cause }),
        }
    }
    Ok((points, false))
}

fn not_a_run(dir: &Path, file: &'static str, cause: std::io::Error) -> Error {
    match cause.kind() {
        _ if !dir.exists() => {
            Error::NotARun { dir: dir.to_owned(), why: "there is no such directory".to_owned() }
        }
        _ if !dir.is_dir() => Error::NotARun { dir: dir.to_owned(), why: "it is not a directory".to_owned() },
        std::io::ErrorKind::NotFound => {
            Error::NotARun { dir: dir.to_owned(), why: format!("it has no {file}") }
        }
        _ => Error::io("read", &dir.join(file))(cause),
    }
}
