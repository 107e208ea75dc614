//! Runs that are written, killed, torn, spoilt and read back.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::lines::{Lines, Storage};
use super::*;
use crate::Error;
use crate::record::{
    Calibration, Direction, End, LatencyKind, Overhead, Point, Program, Run, SCHEMA_VERSION, Status,
    Throughput,
};

fn a_run() -> Run {
    Run {
        schema_version: SCHEMA_VERSION,
        program: Program { name: "rdmascope".to_owned(), version: "0.1.0".to_owned() },
        command: vec!["rdmascope".to_owned(), "run".to_owned()],
        started: "2025-01-01T00:00:00Z".to_owned(),
        ended: None,
        title: "A run".to_owned(),
        about: None,
        quick: true,
        plan: json!({"seed": 1}),
        points_planned: 3,
        figures: Vec::new(),
        findings: Vec::new(),
        expectations: Vec::new(),
        devices: Vec::new(),
        environments: Vec::new(),
        overheads: Vec::new(),
        launches: Vec::new(),
        fleet: None,
        warnings: Vec::new(),
    }
}

fn a_point(id: u64) -> Point {
    let samples: Vec<u64> = (0..100).map(|i| 1000 + i * (id + 3)).collect();
    let latency = crate::stats::latency(LatencyKind::RttHalf, &samples, &[1100]);
    let throughput =
        Throughput { bytes_per_s: 0.1 + 0.2, messages_per_s: 1.0 / 3.0, direction: Direction::Uni };
    Point {
        id,
        experiment: "latency".to_owned(),
        pattern: "ping-pong".to_owned(),
        axes: BTreeMap::from([
            ("size_bytes".to_owned(), json!(4 << id)),
            ("service".to_owned(), json!("RC")),
        ]),
        status: Status::Measured,
        repetition: 0,
        launch: None,
        fleet: None,
        link_model: None,
        conditions: Vec::new(),
        iterations: Some(100),
        latency: latency.clone(),
        kinds: Vec::new(),
        one_way: None,
        pipeline: None,
        reported: None,
        cost: None,
        own: BTreeMap::new(),
        throughput: Some(throughput),
        fairness: None,
        throughput_total: None,
        ends: vec![End { latency, ..End::default() }],
        calibration: None,
        oversubscribed: None,
        cut: false,
        unstable: Some("words with a \n newline and ümlauts".to_owned()),
        counters: BTreeMap::from([("packets".to_owned(), u64::MAX)]),
        wall_ns: 1,
    }
}

/// A run with three points, its points, and the directory above it.
fn a_written_run() -> (TempDir, Vec<Point>) {
    let dir = tempfile::tempdir().unwrap();
    let points: Vec<Point> = (0..3).map(a_point).collect();
    let mut writer = RunWriter::create(dir.path(), &a_run()).unwrap();
    points.iter().for_each(|point| writer.append(point).unwrap());
    (dir, points)
}

fn why<T: std::fmt::Debug>(result: crate::Result<T>) -> String {
    result.expect_err("it should have been refused").to_string()
}

#[test]
fn points_that_later_ones_show_to_have_been_far_are_marked_by_the_reader() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), &a_run()).unwrap();
    for (id, ns) in [(0, 188.4), (1, 28.3)] {
        let calibration = Some(Calibration { before_ns: ns, after_ns: ns, best_ns: Some(ns) });
        writer.append(&Point { calibration, unstable: None, ..a_point(id) }).unwrap();
    }
    let points = RunReader::open(dir.path()).unwrap().into_parts().1;
    assert!(points[0].unstable.as_ref().unwrap().contains("188 ns, 6.7 times the best seen"), "{points:?}");
    assert_eq!(points[1].unstable, None);
}

#[test]
fn what_was_written_is_read_back() {
    let (dir, mut points) = a_written_run();
    let reader = RunReader::open(dir.path()).unwrap();
    assert_eq!(reader.run(), &a_run());
    assert_eq!(reader.points(), points);
    assert!(!reader.is_torn());

    // Every status, and every optional field absent.
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(&dir.path().join("a/b"), &a_run()).unwrap();
    points[0].status = Status::NotMeasured { reason: "no such device".to_owned() };
    points[1].status = Status::Failed { error: "timed out".to_owned() };
    for point in &mut points[..2] {
        (point.latency, point.throughput, point.iterations, point.unstable) = (None, None, None, None);
        (point.ends, point.counters) = (Vec::new(), BTreeMap::new());
    }
    points.iter().for_each(|point| writer.append(point).unwrap());
    let ended = Run { ended: Some("2025-01-01T00:01:00Z".to_owned()), ..a_run() };
    writer.finish(&ended).unwrap();
    let (run, read) = RunReader::open(&dir.path().join("a/b")).unwrap().into_parts();
    assert_eq!((run, read), (ended, points));
    let names: Vec<_> =
        fs::read_dir(dir.path().join("a/b")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left over: {names:?}");
}

#[test]
fn a_run_is_never_overwritten() {
    let (dir, points) = a_written_run();
    let error = RunWriter::create(dir.path(), &a_run()).unwrap_err();
    assert!(matches!(error, Error::RunExists { .. }), "{error}");
    assert!(error.to_string().ends_with("choose another directory or move that run away"));
    assert_eq!(RunReader::open(dir.path()).unwrap().points(), points);
    // One file of a run is enough to make a directory a run.
    for file in [RUN_FILE, POINTS_FILE] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(file), "x").unwrap();
        assert!(matches!(RunWriter::create(dir.path(), &a_run()), Err(Error::RunExists { .. })), "{file}");
        assert_eq!(fs::read(dir.path().join(file)).unwrap(), b"x");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = why(RunWriter::create(&file.join("run"), &a_run()));
    assert!(error.starts_with("cannot create the directory") && error.contains("Not a directory"), "{error}");
    // If the record cannot be written, nothing remains that looks like a run.
    let overhead = Overhead { tick_hz: f64::NAN, ..Overhead::default() };
    let spoilt = Run { overheads: vec![overhead], ..a_run() };
    assert!(matches!(RunWriter::create(dir.path(), &spoilt), Err(Error::Encode { .. })));
    assert!(!dir.path().join(POINTS_FILE).exists());
}

#[test]
fn samples_are_written_beside_the_points() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(dir.path(), &a_run()).unwrap();
    assert_eq!(writer.samples(12, "1", &[5, 6]).unwrap(), "samples/000012-1.u64");
    let path = writer.samples(1_234_567, "0", &[7]).unwrap();
    assert_eq!(path, "samples/1234567-0.u64");
    assert!(why(writer.samples(12, "1", &[8])).contains("File exists"));

    let reader = RunReader::open(dir.path()).unwrap();
    let end = |samples: Option<&str>| End { samples: samples.map(str::to_owned), ..End::default() };
    assert_eq!(reader.samples(&end(Some("samples/000012-1.u64"))).unwrap(), Some(vec![5, 6]));
    assert_eq!(reader.samples(&end(None)).unwrap(), None);
    assert!(why(reader.samples(&end(Some("samples/000099-0.u64")))).contains("No such file"));
    for outside in ["../../etc/passwd", "/etc/passwd", "samples/../../x"] {
        assert!(
            why(reader.samples(&end(Some(outside)))).contains("leads out of the run's directory"),
            "{outside}"
        );
    }
}

#[test]
fn links_do_not_lead_samples_in_or_out() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(dir.path(), &a_run()).unwrap();
    symlink(outside.path(), dir.path().join(SAMPLES_DIR)).unwrap();
    assert!(why(writer.samples(0, "0", &[5])).contains("File exists"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    fs::write(outside.path().join("secret"), [1; 16]).unwrap();
    let reader = RunReader::open(dir.path()).unwrap();
    assert!(why(reader.sample_file("samples/secret")).contains("leads out of the run's directory"));
    symlink("run.json", dir.path().join("inside")).unwrap();
    assert!(why(reader.sample_file("inside")).contains("not a multiple of the 8 bytes"));
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    for name in [RUN_FILE, POINTS_FILE] {
        let (dir, _) = a_written_run();
        let path = dir.path().join(name);
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let error = why(RunReader::open(dir.path()));
        assert!(error.contains(name) && error.contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_kill_at_any_byte_keeps_every_whole_point() {
    let (dir, points) = a_written_run();
    let path = dir.path().join(POINTS_FILE);
    let text = fs::read(&path).unwrap();
    let ends: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 3);
    for len in 0..=text.len() {
        fs::write(&path, &text[..len]).unwrap();
        let reader = RunReader::open(dir.path()).unwrap();
        // A line that lacks only its newline is whole.
        let whole = ends.iter().filter(|&&end| end <= len).count();
        assert_eq!(reader.points(), &points[..whole], "{len} bytes");
        let is_between = len == 0 || ends.iter().any(|&end| len == end || len == end + 1);
        assert_eq!(reader.is_torn(), !is_between, "{len} bytes");
    }
    // After a loss of power there may be zeros.
    fs::write(&path, [&text[..ends[1] + 1], &[0; 100]].concat()).unwrap();
    assert_eq!(RunReader::open(dir.path()).unwrap().points(), &points[..2]);
}

#[test]
fn a_corrupt_line_is_named() {
    let (dir, _) = a_written_run();
    let path = dir.path().join(POINTS_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1] = "{\"id\": 1, \"experiment\"";
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = why(RunReader::open(dir.path()));
    assert!(error.starts_with("line 2 of ") && error.contains("points.jsonl is not a point: EOF"), "{error}");
    // A last line that ends in a newline was not torn by a kill.
    fs::write(&path, format!("{}\n\n{{}}\n", lines[0])).unwrap();
    let error = why(RunReader::open(dir.path()));
    assert!(error.starts_with("line 3 of ") && error.contains("missing field"), "{error}");
}

#[test]
fn what_is_no_run_is_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    assert!(
        why(RunReader::open(&dir.path().join("x")))
            .contains("x does not hold a run: there is no such directory")
    );
    assert!(why(RunReader::open(dir.path())).contains("it has no run.json"));
    fs::write(dir.path().join(RUN_FILE), serde_json::to_vec(&a_run()).unwrap()).unwrap();
    assert!(why(RunReader::open(&dir.path().join(RUN_FILE))).contains("it is not a directory"));
    assert!(why(RunReader::open(dir.path())).contains("it has no points.jsonl"));
    fs::write(dir.path().join(RUN_FILE), "{\"title\": 3}").unwrap();
    assert!(why(RunReader::open(dir.path())).contains("run.json is not the record of a run: "));
}

#[test]
fn a_newer_record_is_refused_and_an_older_one_with_unknown_fields_is_read() {
    let (dir, points) = a_written_run();
    let path = dir.path().join(RUN_FILE);
    let mut record = serde_json::to_value(a_run()).unwrap();
    record["schema_version"] = json!(SCHEMA_VERSION + 1);
    // Its other fields may be anything.
    record["command"] = json!({});
    fs::write(&path, record.to_string()).unwrap();
    let error = why(RunReader::open(dir.path()));
    assert!(error.contains("has schema version 2 and this program reads versions up to 1"), "{error}");

    let mut record = serde_json::to_value(a_run()).unwrap();
    record["of_another_program"] = json!(1);
    fs::write(&path, record.to_string()).unwrap();
    assert_eq!(RunReader::open(dir.path()).unwrap().points(), points);
}

#[test]
fn a_number_that_json_does_not_have_is_refused_before_it_spoils_the_file() {
    let (dir, points) = a_written_run();
    drop(dir);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), &a_run()).unwrap();
    let mut spoilt = points[0].clone();
    spoilt.throughput.as_mut().unwrap().bytes_per_s = f64::NAN;
    assert!(matches!(writer.append(&spoilt), Err(Error::Encode { .. })));
    writer.append(&points[1]).unwrap();
    assert_eq!(RunReader::open(dir.path()).unwrap().points(), &points[1..2]);
}

/// A disk with room for `room` bytes; cutting its file may be refused.
#[derive(Debug)]
struct Disk {
    content: Vec<u8>,
    room: usize,
    syncs: bool,
    cuts: bool,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room - self.content.len());
        self.content.extend(&bytes[..taken]);
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Storage for &mut Disk {
    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        if !self.cuts {
            return Err(io::ErrorKind::Other.into());
        }
        self.content.truncate(bytes as usize);
        Ok(())
    }

    fn sync_data(&mut self) -> io::Result<()> {
        if self.syncs { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
    }
}

#[test]
fn a_full_disk_leaves_whole_lines() {
    let mut disk = Disk { content: Vec::new(), room: 10, syncs: true, cuts: true };
    let mut lines = Lines::new(&mut disk);
    lines.append(b"first\n").unwrap();
    assert_eq!(lines.append(b"second\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
    // There is room for a shorter line, and for the same one after the disk was cleared.
    lines.append(b"3rd\n").unwrap();
    assert_eq!(disk.content, b"first\n3rd\n");
}

#[test]
fn a_line_that_did_not_reach_the_disk_is_taken_back() {
    let mut disk = Disk { content: Vec::new(), room: 100, syncs: false, cuts: true };
    Lines::new(&mut disk).append(b"first\n").unwrap_err();
    assert_eq!(disk.content, b"");
}

#[test]
fn a_torn_line_that_could_not_be_cut_is_cut_before_the_next() {
    let mut disk = Disk { content: Vec::new(), room: 10, syncs: true, cuts: false };
    let mut lines = Lines::new(&mut disk);
    lines.append(b"first\n").unwrap();
    lines.append(b"second\n").unwrap_err();
    lines.append(b"3rd\n").expect_err("behind the torn line it would be lost");
    lines.storage_mut().cuts = true;
    lines.append(b"3rd\n").unwrap();
    assert_eq!(disk.content, b"first\n3rd\n");
}

#[test]
fn a_device_that_is_always_full_says_so() {
    let full = fs::OpenOptions::new().append(true).open("/dev/full").unwrap();
    let cause = Lines::new(full).append(b"first\n").unwrap_err();
    let error = Error::io("append a point to", Path::new("/dev/full"))(cause).to_string();
    assert!(error.contains("No space left on device") && error.contains("free space"), "{error}");
}
