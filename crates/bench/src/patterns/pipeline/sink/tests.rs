use std::fs;

use tempfile::TempDir;

use super::*;
use crate::axis;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern;

/// A point with samples of two values, which are kept in a directory.
fn spec(sink: Sink, sink_dir: Option<&TempDir>) -> PointSpec {
    let sink_dir = sink_dir.map(|directory| directory.path().to_str().unwrap().to_owned());
    let settings = Settings { iterations: Some(4), warmup: Some(1), sink_dir, ..Settings::default() };
    let settings = settings.axis(axis::SINK.value(sink)).axis(axis::VALUES.value(2));
    let plan = Plan::new("x", "X").experiment("e", Pattern::PIPELINE, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0)
}

/// Rows by a clock whose ticks are ns: steps are generated every us, and each sample is received
/// one us later.
fn rows(spec: &PointSpec, rank: u32, steps: u64) -> Rows {
    let mut rows = Rows::new(spec, rank, steps, Clock::monotonic()).unwrap().unwrap();
    assert!(rows.handing_over_ns > 0.0 && rows.rows == 0);
    for step in 0..steps {
        let at = 1000 * step;
        let values = [step as f64 / 2.0, -1.5].map(f64::to_bits);
        rows.fill([step, at, at + 1000], |value| Ok(values[value])).unwrap();
    }
    rows
}

fn reference(ticks: u64, realtime_ns: u64) -> ClockReference {
    ClockReference { ticks, realtime_ns, tick_hz: 1e9 }
}

const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

#[test]
fn samples_are_in_their_files_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let one = Times { source: Some(reference(0, BEGIN_NS)), target: reference(0, 0), is_one: true };
    for (sink, name, first) in [
        (Sink::Csv, "000000_RC-2-10000-5_output.csv", "1700000000,000000000,0.000001000,0,0.0,-1.5"),
        (Sink::Human, "000000_RC-2-10000-5_output.villas", "1700000000.000000000+1.000000e-06(0)\t0.0\t-1.5"),
    ] {
        let spec = spec(sink, Some(&directory));
        let sink_report = rows(&spec, 1, 5).write(1, &one, Clock::monotonic());
        let text = fs::read_to_string(directory.path().join(name)).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (6, first));
        assert!(lines[0].starts_with('#'), "{text}");
        assert_eq!(
            (sink_report.rank, sink_report.samples, sink_report.missing, sink_report.bytes),
            (1, 5, 0, text.len() as u64)
        );
        assert!(
            sink_report.error.is_none() && sink_report.path.as_ref().is_some_and(|path| path.ends_with(name))
        );
        // An existing file belongs to another run.
        let again = Rows::new(&spec, 1, 5, Clock::monotonic()).err().unwrap().to_string();
        assert!(again.contains("another run wrote it"), "{again}");
        assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), text);
    }
}

#[test]
fn files_that_nobody_asked_for_do_not_stay() {
    let spec = spec(Sink::Csv, None);
    let one = Times { source: None, target: reference(0, 0), is_one: true };
    let sink_report = rows(&spec, 0, 5).write(0, &one, Clock::monotonic());
    assert_eq!((sink_report.samples, sink_report.path.as_ref(), sink_report.error.as_ref()), (5, None, None));
    assert!(sink_report.bytes > 0 && sink_report.write_ns > 0);
    // The file has no name.
    let place = rows(&spec, 0, 5).place.path.clone();
    assert_eq!(place, None);
}

/// A failed point leaves no file.
#[test]
fn a_file_that_nothing_was_written_to_goes() {
    let directory = tempfile::tempdir().unwrap();
    drop(rows(&spec(Sink::Csv, Some(&directory)), 0, 5));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A time of day follows from the clock of the rank that stamped; between two clocks, the offset is
/// the difference of both times of day.
#[test]
fn stamps_of_two_clocks_are_times_of_day() {
    let source = reference(5000, BEGIN_NS);
    let target = ClockReference { ticks: 0, realtime_ns: BEGIN_NS, tick_hz: 2e9 };
    let two = Times { source: Some(source), target, is_one: false };
    // Generated 1000 ns before the generator's reference, received 400 ticks of 0.5 ns after the
    // receiver's.
    let head = two.head([3, 4000, 400]);
    assert_eq!((head.origin_ns, head.offset_ns, head.sequence), (Some(BEGIN_NS - 1000), Some(1200), 3));
    assert_eq!(two.head([3, 4000, Stamps::NONE]).offset_ns, None);
    let unknown = Times { source: None, ..two };
    assert_eq!(
        (unknown.head([3, 4000, 400]).origin_ns, unknown.head([3, 4000, 400]).offset_ns),
        (None, None)
    );
    // With one clock, the offset is a difference of its stamps.
    let one = Times { source: Some(source), target: source, is_one: true };
    assert_eq!(one.head([3, 4000, 4700]).offset_ns, Some(700));
    let clock = Clock::calibrate();
    let now = ClockReference::now(&clock);
    let again = ClockReference::of_words(now.words());
    let day = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let ns = again.realtime_ns(clock.now().0);
    assert!(day.abs_diff(ns) < 1_000_000_000, "{day} {ns}");
}
