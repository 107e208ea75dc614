//! A run whose file may not grow: the kernel's limit on the size of files makes a write stop in the
//! middle of a line, as a full disk does.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use measure::Error;
use measure::record::{Point, Run};
use measure::store::{POINTS_FILE, RunReader, RunWriter};
use serde_json::json;

/// Set in the process that has the limit: the directory to write to.
const LIMITED_DIR: &str = "MEASURE_TEST_LIMITED_DIR";

#[test]
fn a_write_that_stops_in_the_middle_leaves_whole_points() {
    if let Some(dir) = env::var_os(LIMITED_DIR) {
        return fill(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    // The signal of the limit is ignored, so that the write returns an error. A block is 512 bytes
    // or 1 KiB.
    let script = "trap '' XFSZ && ulimit -f 8 && exec \"$0\" --exact --nocapture \
                  a_write_that_stops_in_the_middle_leaves_whole_points";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(LIMITED_DIR, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(dir.path().join(POINTS_FILE)).unwrap();
    assert!(text.len() > 2048 && text.ends_with(b"\n"), "the other process wrote {} bytes", text.len());
}

/// Appends points until the limit is reached.
fn fill(dir: &Path) {
    let run: Run = serde_json::from_value(json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0"}, "command": [], "started": "", "title": "",
        "plan": {}, "points_planned": 1,
    }))
    .unwrap();
    let mut point: Point = serde_json::from_value(json!({
        "id": 0, "experiment": "e", "pattern": "p", "axes": {}, "status": "measured", "repetition": 0, "wall_ns": 1,
    }))
    .unwrap();
    let mut writer = RunWriter::create(dir, &run).unwrap();
    let error = loop {
        match writer.append(&point) {
            Ok(()) => point.id += 1,
            Err(error) => break error,
        }
    };
    let Error::Io { cause, .. } = &error else { panic!("{error}") };
    assert_eq!(cause.kind(), std::io::ErrorKind::FileTooLarge, "{error}");
    assert!(error.to_string().contains("raise the limit on file sizes"), "{error}");
    let reader = RunReader::open(dir).unwrap();
    assert_eq!((reader.points().len() as u64, reader.is_torn()), (point.id, false));
}
