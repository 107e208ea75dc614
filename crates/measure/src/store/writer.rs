//! Writing the directory of a run.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::lines::Lines;
use super::{POINTS_FILE, RUN_FILE, RunReader, SAMPLES_DIR};
use crate::record::{Point, Run};
use crate::samples::write_raw;
use crate::{Error, Result, files};

/// A run that is being written.
#[derive(Debug)]
pub struct RunWriter {
    dir: PathBuf,
    points: Lines<File>,
}

/// A run that has ended early, and that nobody else writes. Nothing of it is changed yet.
#[derive(Debug)]
pub struct EndedRun {
    dir: PathBuf,
    file: File,
    /// As the record has it.
    pub run: Run,
    /// The points of the record, without a last point that a signal cut or a kill tore.
    pub points: Vec<Point>,
    /// The length of their lines.
    whole_bytes: u64,
}

impl EndedRun {
    /// Opens a run. A run that another process still writes is refused.
    pub fn open(dir: &Path) -> Result<Self> {
        // For a directory without a run, the reader's error is returned.
        let reader = RunReader::open(dir);
        let path = dir.join(POINTS_FILE);
        // Not through a link: it may lead to the record of another run.
        let no_link = OFlags::NOFOLLOW.bits().cast_signed();
        let options = OpenOptions::new().append(true).custom_flags(no_link).open(&path);
        let file = reader.and_then(|_| options.map_err(Error::io("open", &path)))?;
        lock(dir, &file)?;
        let (run, mut points) = RunReader::open(dir)?.into_parts();
        points.truncate(points.iter().position(|point| point.cut).unwrap_or(points.len()));
        // A last line without its newline would run into the next one: it is measured again.
        let text = files::read(&path).map_err(Error::io("read", &path))?;
        let mut whole_bytes = 0;
        let mut left = points.len();
        for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            if left == 0 {
                break;
            }
            whole_bytes += line.len() as u64;
            left -= usize::from(!line.trim_ascii().is_empty());
        }
        points.truncate(points.len() - left);
        Ok(Self { dir: dir.to_owned(), file, run, points, whole_bytes })
    }

    /// Removes the point that was cut or torn, to append those that are missing.
    pub fn go_on(self) -> Result<RunWriter> {
        let path = self.dir.join(POINTS_FILE);
        let lines = Lines::after(self.file, self.whole_bytes).map_err(Error::io("shorten", &path))?;
        remove_samples_but_of(&self.dir, &self.points)?;
        Ok(RunWriter { dir: self.dir, points: lines })
    }
}

impl RunWriter {
    /// Refuses a directory that already holds a run, before something is measured for it.
    pub fn check(dir: &Path) -> Result<()> {
        match dir.join(RUN_FILE).symlink_metadata() {
            Ok(_) => Err(Error::RunExists { dir: dir.to_owned() }),
            Err(_) => Ok(()),
        }
    }

    /// Starts a run in a directory, which is created with its parents. A directory that already
    /// holds a run is refused and not touched.
    pub fn create(dir: &Path, run: &Run) -> Result<Self> {
        fs::create_dir_all(dir).map_err(Error::io("create the directory", dir))?;
        Self::check(dir)?;
        let exists = || Error::RunExists { dir: dir.to_owned() };
        // If two programs try at once, only one creates this file.
        let path = dir.join(POINTS_FILE);
        let points =
            OpenOptions::new().append(true).create_new(true).open(&path).map_err(|cause| match cause {
                cause if cause.kind() == ErrorKind::AlreadyExists => exists(),
                cause => Error::io("create", &path)(cause),
            })?;
        lock(dir, &points)?;
        write_run(dir, run).inspect_err(|_| {
            // The error of the write is the one to report.
            let _ = fs::remove_file(&path);
        })?;
        Ok(Self { dir: dir.to_owned(), points: Lines::new(points) })
    }

    /// The directory of the run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends a point and waits until it is on the disk. After an error the file ends with the
    /// previous point, and the run may go on.
    pub fn append(&mut self, point: &Point) -> Result<()> {
        self.append_all([point])
    }

    /// Appends points that were measured at the same time, as [`append`](Self::append) does one.
    pub fn append_all<'a>(&mut self, points: impl IntoIterator<Item = &'a Point>) -> Result<()> {
        let path = self.dir.join(POINTS_FILE);
        let encode = |cause| Error::Encode { path: path.clone(), cause };
        let mut lines = Vec::new();
        for point in points {
            let line = serde_json::to_vec(point).map_err(encode)?;
            // A number that is not finite becomes null, which readers would take for a corrupt
            // line.
            serde_json::from_slice::<Point>(&line).map_err(encode)?;
            lines.extend(line);
            lines.push(b'\n');
        }
        self.points.append(&lines).map_err(Error::io("append points to", &path))
    }

    /// Writes raw samples of a point before the point is appended, and returns their path in the
    /// run's directory. `what` is a rank, for [`crate::record::End::samples`], or the name of a
    /// kind of latency, for [`crate::record::Timed::samples`].
    pub fn samples(&self, point_id: u64, what: &str, samples_ns: &[u64]) -> Result<String> {
        let dir = self.dir.join(SAMPLES_DIR);
        match fs::create_dir(&dir) {
            // A link would lead the samples out of the run's directory, where readers do not accept
            // them.
            Err(_) if dir.symlink_metadata().is_ok_and(|found| found.is_dir()) => {}
            made => made.map_err(Error::io("create the directory", &dir))?,
        }
        let name = format!("{point_id:06}-{what}.u64");
        write_raw(&dir.join(&name), samples_ns)?;
        sync_dir(&dir)?;
        Ok(format!("{SAMPLES_DIR}/{name}"))
    }

    /// Removes samples of a point that cannot be kept whole; `path` is what
    /// [`samples`](Self::samples) returned.
    pub fn remove_samples(&self, path: &str) {
        // A file that cannot be removed is left: nothing refers to it, and the cause was reported.
        let _ = fs::remove_file(self.dir.join(path));
    }

    /// Replaces `run.json` during the run: the devices become known when the agents have started.
    pub fn update(&self, run: &Run) -> Result<()> {
        write_run(&self.dir, run)
    }

    /// Removes a run without points, so that its directory can be used again.
    pub fn discard(self) {
        // A file that cannot be removed does no harm, and there is no one to report it to.
        let _ = fs::remove_file(self.dir.join(POINTS_FILE));
        let _ = fs::remove_file(self.dir.join(RUN_FILE));
        let _ = fs::remove_dir(self.dir.join(SAMPLES_DIR));
        let _ = fs::remove_dir(&self.dir);
    }

    /// Ends the run: replaces `run.json` by its last state.
    pub fn finish(self, run: &Run) -> Result<()> {
        write_run(&self.dir, run)
    }
}

/// Removes the files of samples that no point names: their points are measured again.
fn remove_samples_but_of(dir: &Path, points: &[Point]) -> Result<()> {
    let dir = dir.join(SAMPLES_DIR);
    // Not through a link: it may lead to files of another run.
    if !dir.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let of_point = |point: &Point| -> Vec<String> {
        let ends = point.ends.iter().filter_map(|end| end.samples.clone());
        ends.chain(point.kinds.iter().filter_map(|timed| timed.samples.clone())).collect()
    };
    let known: Vec<String> = points.iter().flat_map(of_point).collect();
    for entry in fs::read_dir(&dir).map_err(Error::io("list", &dir))? {
        let entry = entry.map_err(Error::io("list", &dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Only names that this writer gives.
        let is_ours = name.ends_with(".u64") && name.bytes().take(6).all(|byte| byte.is_ascii_digit());
        if is_ours && !known.contains(&format!("{SAMPLES_DIR}/{name}")) {
            fs::remove_file(entry.path()).map_err(Error::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

/// Takes the lock of a run, which its writer holds as long as it lives.
fn lock(dir: &Path, points: &File) -> Result<()> {
    if files::lock(points) { Ok(()) } else { Err(Error::RunIsWritten { dir: dir.to_owned() }) }
}

/// Writes `run.json` such that at any moment either the old or the new one is there as a whole.
fn write_run(dir: &Path, run: &Run) -> Result<()> {
    let path = dir.join(RUN_FILE);
    let encode = |cause| Error::Encode { path: path.clone(), cause };
    let mut text = serde_json::to_vec_pretty(run).map_err(encode)?;
    // As in RunWriter::append.
    serde_json::from_slice::<Run>(&text).map_err(encode)?;
    text.push(b'\n');
    files::replace(&path, |file| file.write_all(&text)).map_err(Error::io("write", &path))?;
    sync_dir(dir)
}

/// Waits until the names in a directory are on the disk (fsync(2): syncing a file does not sync its
/// name).
fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("sync the directory", dir))
}
